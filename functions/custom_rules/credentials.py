"""The permissions of a custom rule while it runs: read the runs that it evaluates, write its own state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from smdebug.amounts import counted
from smdebug.exceptions import SMDebugError
from smdebug.files.names import END_MARKER

LENT_FOR = 900  # seconds: the shortest session of STS
LONGEST_POLICY = 2048  # characters that STS accepts
_READ = ("events/*", "index/*", "collections/*", END_MARKER)


class TooManyRuns(SMDebugError):
    """The rule reads more runs than a session policy has room for."""


def session_policy(
    run: str,
    state: str,
    others: Sequence[str] = (),
    *,
    source: str | None = None,
    partition: str = "aws",
) -> dict[str, Any]:
    """Return the session policy: read the files of these runs, keep state below `state`.

    Only files that trainings write can be read, not those that the application keeps beside a run. Of the run
    itself not those of runs in folders below it either, unless long names leave no room to say so: whoever
    writes to a folder makes it a run.
    """
    for own in (_READ, ("*",)):
        policy = _policy(run, state, others, own, source=source, partition=partition)
        if len(as_text(policy)) <= LONGEST_POLICY:
            return policy
    raise TooManyRuns(
        f"The rule reads {counted(len({run, *others}), 'run')}, and credentials cannot be restricted to "
        "names of this length: name fewer in other_trials, or runs with shorter prefixes."
    )


def reading_policy(run: str, *, bundle: str = "", partition: str = "aws") -> dict[str, Any]:
    """Return the session policy of a backtest: read the files of this run, write nothing.

    The bundle of the run may be read too, unless a long name leaves no room to say so.
    """
    policy = session_policy(run.removeprefix("s3://"), "state/none/", partition=partition)
    policy["Statement"] = [each for each in policy["Statement"] if each["Action"] != "s3:PutObject"]
    if bundle:
        wider = _with_bundle(policy, bundle.removeprefix("s3://"), partition)
        if len(as_text(wider)) <= LONGEST_POLICY:
            return wider
    return policy


def _with_bundle(policy: dict[str, Any], bundle: str, partition: str) -> dict[str, Any]:
    """Return the policy with one object more that may be read, or found missing; no other is named."""
    arn = f"arn:{partition}:s3:::{bundle}"

    def wider(statement: dict[str, Any]) -> dict[str, Any]:
        match statement:
            case {"Action": "s3:GetObject", "Effect": "Allow", "Resource": resources}:
                return {**statement, "Resource": [*resources, arn]}
            case {"Action": "s3:GetObject", "NotResource": resources}:
                return {**statement, "NotResource": [*resources, arn]}
            case {"Action": "s3:ListBucket", "Condition": {"StringLike": {"s3:prefix": prefixes}}}:
                prefixes = [*prefixes, bundle.partition("/")[2]]
                return {**statement, "Condition": {"StringLike": {"s3:prefix": prefixes}}}
        return statement

    return {**policy, "Statement": list(map(wider, policy["Statement"]))}


def _policy(
    run: str,
    state: str,
    others: Sequence[str],
    own_files: Sequence[str],
    *,
    source: str | None,
    partition: str,
) -> dict[str, Any]:
    def arn(place: str) -> str:
        return f"arn:{partition}:s3:::{place}"

    runs = list(dict.fromkeys(f"{place.strip('/')}/" for place in (run, *others)))
    files = [f"{_literal(runs[0])}{kind}" for kind in own_files]
    compared = [f"{_literal(place)}*" for place in runs[1:]]
    own_state = arn(f"{_literal(run.strip('/'))}/{_literal(state)}*")
    own_memory = [own_state] if own_files is _READ else []  # else it is among the files
    sources = [arn(_literal(source.removeprefix("s3://")))] if source else []
    by_bucket: dict[str, list[str]] = {}
    for place in (*files, *compared):
        bucket, _, prefix = place.partition("/")
        by_bucket.setdefault(bucket, []).append(prefix)
    statements: list[dict[str, Any]] = [
        {
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": [*map(arn, files), *own_memory, *map(arn, compared), *sources],
        },
        {
            "Effect": "Deny",
            "Action": "s3:GetObject",
            "NotResource": [*(arn(f"*/{kind}") for kind in _READ), own_state, *sources],
        },
        {"Effect": "Allow", "Action": "s3:PutObject", "Resource": own_state},
        *(
            {
                "Effect": "Allow",
                "Action": "s3:ListBucket",
                "Resource": arn(bucket),
                "Condition": {"StringLike": {"s3:prefix": prefixes}},
            }
            for bucket, prefixes in by_bucket.items()
        ),
        {
            # The role itself allows only the stack's own keys.
            "Effect": "Allow",
            "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
            "Resource": "*",
            "Condition": {"StringLike": {"kms:ViaService": "s3.*"}},
        },
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def as_text(policy: dict[str, Any]) -> str:
    """Return the policy as STS accepts it."""
    return json.dumps(policy, separators=(",", ":"))


def _literal(text: str) -> str:
    """Return the text with the wildcards of policies escaped."""
    return "".join(f"${{{letter}}}" if letter in "*?$" else letter for letter in text)
