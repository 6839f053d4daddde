"""What the credentials of a custom rule allow: its run, the runs it compares with, its own state."""

from __future__ import annotations

import fnmatch
import json
from typing import Any

import pytest

from functions.custom_rules.credentials import (
    LENT_FOR,
    LONGEST_POLICY,
    TooManyRuns,
    as_text,
    session_policy,
)

STATE = "state/custom-mine/mine/"
POLICY = session_policy("runs/mnist", STATE, ["other/before"])


def allows(policy: dict[str, Any], action: str, place: str, prefix: str | None = None) -> bool:
    """What IAM would say: allowed by some statement, denied by none."""
    arn = f"arn:aws:s3:::{place}"

    def matches(pattern: str) -> bool:
        for letter in "*?$":
            pattern = pattern.replace(f"${{{letter}}}", f"[{letter}]")
        return fnmatch.fnmatchcase(arn, pattern)

    def speaks_of(statement: dict[str, Any]) -> bool:
        actions = statement["Action"]
        if action not in ([actions] if isinstance(actions, str) else actions):
            return False
        wanted = statement.get("Condition", {}).get("StringLike", {}).get("s3:prefix")
        if wanted is not None and not any(fnmatch.fnmatchcase(prefix or "", w) for w in wanted):
            return False
        named = statement.get("Resource", statement.get("NotResource"))
        one_matches = any(map(matches, [named] if isinstance(named, str) else named))
        return one_matches if "Resource" in statement else not one_matches

    about = [statement for statement in policy["Statement"] if speaks_of(statement)]
    return bool(about) and all(statement["Effect"] == "Allow" for statement in about)


@pytest.mark.parametrize(
    "place",
    [
        "runs/mnist/events/000000000001/000000000001_worker_0.tfevents",
        "runs/mnist/index/000000000/000000000001_worker_0.json",
        "runs/mnist/collections/000000000/worker_0_collections.json",
        "runs/mnist/training_job_end.ts",
        "other/before/events/000000000001/000000000001_worker_0.tfevents",
        f"runs/mnist/{STATE}00000001.state",
    ],
)
def test_it_reads_what_its_runs_have_saved_and_its_own_memory(place):
    assert allows(POLICY, "s3:GetObject", place)


@pytest.mark.parametrize(
    "place",
    [
        "runs/mnist-2/events/000000000001/000000000001_worker_0.tfevents",
        "runs/other/events/000000000001/000000000001_worker_0.tfevents",
        "runs/events/000000000001/000000000001_worker_0.tfevents",
        "other/another/index/000000000/000000000001_worker_0.json",
        "runs/mnist/rules.json",
        "runs/mnist/control/stop",
        "runs/mnist/report/findings/1.finding",
        "runs/mnist/state/custom-other/other/00000001.state",
        "runs/mnist/state/custom-mine/mine-2/00000001.state",
        f"other/before/{STATE}00000001.state",
        "runs/rule-sources/rule.py",
    ],
)
def test_it_reads_nothing_else(place):
    assert not allows(POLICY, "s3:GetObject", place)


def test_it_reads_nothing_of_runs_in_folders_below_its_own():
    below = "runs/mnist/victim/events/000000000001/000000000001_worker_0.tfevents"
    assert not allows(POLICY, "s3:GetObject", below)
    assert not allows(POLICY, "s3:ListBucket", "runs", prefix="mnist/victim/index/")
    assert not allows(POLICY, "s3:ListBucket", "runs", prefix="mnist/")


def test_it_writes_its_own_memory_and_nothing_else():
    assert allows(POLICY, "s3:PutObject", f"runs/mnist/{STATE}00000001.state")
    for place in (
        "runs/mnist/state/custom-other/other/00000001.state",
        f"other/before/{STATE}00000001.state",
        "runs/mnist/control/stop",
        "runs/mnist/events/000000000001/000000000001_worker_0.tfevents",
        "runs/mnist/rules.json",
    ):
        assert not allows(POLICY, "s3:PutObject", place)


def test_it_lists_its_runs_only():
    assert allows(POLICY, "s3:ListBucket", "runs", prefix="mnist/index/")
    assert allows(POLICY, "s3:ListBucket", "other", prefix="before/")
    for bucket, prefix in (
        ("runs", ""),
        ("runs", "mnist-2/"),
        ("other", "mnist/"),
        ("x", "mnist/"),
    ):
        assert not allows(POLICY, "s3:ListBucket", bucket, prefix=prefix)


def test_a_prefix_with_characters_that_mean_something_in_a_policy_means_itself():
    policy = session_policy("runs/a*b?c$", STATE)
    end = "events/000000000001/000000000001_worker_0.tfevents"
    assert allows(policy, "s3:GetObject", f"runs/a*b?c$/{end}")
    assert not allows(policy, "s3:GetObject", f"runs/aXXbYc$/{end}")


def test_a_source_that_is_too_long_for_the_job_can_be_read_and_just_that_one():
    policy = session_policy("runs/mnist", STATE, source="s3://runs/rule-sources/long.py")
    assert allows(policy, "s3:GetObject", "runs/rule-sources/long.py")
    assert not allows(policy, "s3:GetObject", "runs/rule-sources/other.py")


def test_no_more_than_sts_takes_and_for_a_quarter_of_an_hour():
    many = [f"bucket-{n}/" + "x" * 100 for n in range(20)]
    with pytest.raises(TooManyRuns, match="name fewer in other_trials"):
        session_policy("runs/mnist", STATE, many)
    assert len(as_text(POLICY)) <= LONGEST_POLICY
    assert json.loads(as_text(POLICY)) == POLICY
    assert LENT_FOR <= 900


@pytest.mark.parametrize("length", [9, 60, 90])
def test_a_run_with_a_long_name_has_credentials_for_its_own_files(length):
    run = f"{'b' * 63}/{'run' * (length // 3)}"
    source = f"s3://{'b' * 63}/rule-sources/{'0123456789abcdef' * 4}.py"
    policy = session_policy(run, f"state/{'f' * 32}/a-rule-with-a-name/", source=source)
    assert len(as_text(policy)) <= LONGEST_POLICY
    own, other = f"{run}/index/000000000/000000000001_worker_0.json", f"{run}-2/index/0.json"
    assert [allows(policy, "s3:GetObject", place) for place in (own, other)] == [True, False]
    assert allows(policy, "s3:ListBucket", "b" * 63, f"{run.partition('/')[2]}/index/")
    assert not allows(policy, "s3:ListBucket", "b" * 63, "other/index/")
