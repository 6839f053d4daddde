"""Credentials for a run whose name has wildcards of policies, or a slash at its end, reach that run alone."""

from __future__ import annotations

import re

import pytest

from functions.custom_rules.credentials import session_policy

STRANGE = ("runs/*", "runs/?", "runs/a*", "runs/${x}", "runs/${aws:username}", "runs/x/")
OTHERS = ("runs/mnist", "runs/a", "runs/ab", "runs/x", "runs/x2", "other/x", "runs/_")


def matches(pattern: str, arn: str) -> bool:
    """Whether a resource of a policy matches, as IAM does: `${*}` is an asterisk, `*` is anything.

    Another `${…}` is a policy variable, which stands for something else or makes the policy invalid.
    """
    if re.search(r"\$\{[^*?$]", pattern):
        return False
    parts = re.split(r"(\$\{[*?$]\}|[*?])", pattern)
    wild = {"*": ".*", "?": ".", "${*}": r"\*", "${?}": r"\?", "${$}": r"\$"}
    return re.fullmatch("".join(wild.get(part, re.escape(part)) for part in parts), arn) is not None


def reached(run: str, action: str) -> list[str]:
    statements = session_policy(run, "state/custom-rule/")["Statement"]
    allowed = [s for s in statements if s["Effect"] == "Allow" and action in s["Action"]]
    resources = [s["Resource"] for s in allowed]
    return [arn for found in resources for arn in ([found] if isinstance(found, str) else found)]


@pytest.mark.parametrize("run", STRANGE)
@pytest.mark.parametrize(
    ("action", "key"),
    [("s3:GetObject", "index/000000000/x.json"), ("s3:PutObject", "state/custom-rule/1.state")],
)
def test_credentials_reach_their_own_run_alone(run, action, key):
    patterns = reached(run, action)
    assert any(matches(pattern, f"arn:aws:s3:::{run.strip('/')}/{key}") for pattern in patterns)
    for other in OTHERS:
        if other == run.strip("/"):
            continue
        arn = f"arn:aws:s3:::{other}/{key}"
        assert not any(matches(pattern, arn) for pattern in patterns), f"{patterns} reach {arn}"


@pytest.mark.parametrize(
    ("state", "other"), [("state/*/", "state/a/"), ("state/${x}/", "state/x/"), ("s/?/", "s/a/")]
)
def test_a_rule_with_a_strange_id_reaches_its_own_state_alone(state, other):
    statements = session_policy("runs/mnist", state)["Statement"]
    (pattern,) = [s["Resource"] for s in statements if s["Action"] == "s3:PutObject"]
    assert matches(pattern, f"arn:aws:s3:::runs/mnist/{state}1.state")
    assert not matches(pattern, f"arn:aws:s3:::runs/mnist/{other}1.state")


@pytest.mark.parametrize("run", STRANGE)
def test_a_listing_is_limited_to_the_run(run):
    statements = session_policy(run, "state/")["Statement"]
    (listing,) = [s for s in statements if s["Action"] == "s3:ListBucket"]
    prefixes = listing["Condition"]["StringLike"]["s3:prefix"]
    own = run.strip("/").partition("/")[2]
    assert any(matches(prefix, f"{own}/index/") for prefix in prefixes)
    for other in OTHERS:
        name = other.partition("/")[2]
        if name != own and other.startswith("runs/"):
            assert not any(matches(prefix, f"{name}/index/") for prefix in prefixes)
