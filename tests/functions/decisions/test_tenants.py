"""What a run may name of others, and which places are no runs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.decisions.tenants import MOST_FOLDERS, Tenants

TWO = Tenants((("vision", "runs/vision/"), ("vision", "archive/vision/"), ("speech", "runs/speech/")))
EACH = Tenants((("team", "runs/teams/*/"), ("team", "archive/*/")))
NOBODY = Tenants()
OURS = "runs/vision/a"


@pytest.mark.parametrize(
    ("tenants", "run", "other"),
    [
        (TWO, OURS, "s3://runs/vision/b"),
        (TWO, OURS, "s3://runs/vision/2026/b"),
        (TWO, OURS, "s3://archive/vision/b"),
        (EACH, "runs/teams/x/a", "s3://runs/teams/x/b"),
        (EACH, "runs/teams/x/a", "s3://archive/x/b"),
        (EACH, "archive/x/a", "s3://runs/teams/x/b"),
        (NOBODY, "runs/vision/a", "s3://runs/vision/b"),
        (Tenants(shared=("archive/",)), "runs/a", "s3://archive/b"),
        (Tenants((("all", "runs/"),)), "runs/a", "s3://runs/b"),
    ],
)
def test_a_run_may_name_runs_of_its_own_tenant(tenants, run, other):
    assert tenants.refusal_of_other(run, other) == ""


@pytest.mark.parametrize(
    "other",
    [
        "s3://runs/speech/secret",
        "s3://runs/vision/../speech/secret",
        "s3://runs/vision/./b",
        "s3://runs/vision//b",
        "s3://runs/vision/",
        "s3://runs/vision",
        "s3://runs",
        "s3://runs/",
        "s3://runs/vision-2/b",
        "s3://runs/Vision/b",
        "s3://runs/v\u0456sion/b",  # a Cyrillic i
        "s3://runs/vision\u200b/b",
        "s3://runs/vision/%2e%2e/speech/secret",
        "s3://runs/vision/..%2Fspeech/secret",
        "s3://runs/vision\\..\\speech",
        "s3://runs/vision/b/",
        "s3://runs2/vision/b",
        "s3://archive/speech/b",
        "s3://RUNS/vision/b",
        "s3:///runs/vision/b",
        "https://runs/vision/b",
        "/runs/vision/b",
        " s3://runs/vision/b",
        "s3://runs/vision/b\n",
        "s3://runs/*/b",
        "",
    ],
)
def test_nothing_of_another_tenant_can_be_named(other):
    refusal = TWO.refusal_of_other(OURS, other)
    assert "may not read" in refusal or "is not the address of a run" in refusal


def test_each_folder_that_a_star_stands_for_is_a_tenant_of_its_own():
    for other in ("s3://runs/teams/y/b", "s3://archive/y/b", "s3://runs/teams/*/b", "s3://runs/other/b"):
        assert "may not read" in EACH.refusal_of_other("runs/teams/x/a", other)


def test_without_tenants_a_run_may_name_those_in_its_own_folder_and_never_the_whole_bucket():
    assert "runs/vision/, and nothing else" in NOBODY.refusal_of_other(OURS, "s3://runs/speech/b")
    assert "belongs to nobody" in NOBODY.refusal_of_other("runs/a", "s3://runs/b")
    assert "may not read" in NOBODY.refusal_of_other("runs/a", "s3://archive/b")


def test_a_run_below_no_prefix_of_a_tenant_may_name_none():
    assert "below no prefix" in TWO.refusal_of_other("runs/stray/a", "s3://runs/stray/b")
    assert "below no prefix" in TWO.refusal_of_other("runs/vision", "s3://runs/vision/b")


def test_a_refusal_says_where_the_runs_of_its_tenant_are_and_who_can_change_that():
    refusal = TWO.refusal_of_other(OURS, "s3://runs/speech/secret")
    assert refusal == (
        "s3://runs/vision/a may not read s3://runs/speech/secret: its tenant has s3://runs/vision/, "
        "s3://archive/vision/, and nothing else. Compare with a run below that, or have the deployer name "
        "another prefix in the setting `tenants`."
    )


@pytest.mark.parametrize(
    ("tenants", "run", "why"),
    [
        (NOBODY, "runs", "is a whole bucket"),
        (TWO, "runs/vision", "contains the runs of a tenant (vision)"),
        (EACH, "runs/teams", "contains the runs of a tenant"),
        (EACH, "runs/teams/x", "contains the runs of a tenant"),
        (Tenants((("all", "runs/"),)), "runs", "is a whole bucket"),
        (NOBODY, "runs" + "/a" * (MOST_FOLDERS + 1), "folders deep"),
    ],
)
def test_roots_and_parents_of_tenants_are_no_runs(tenants, run, why):
    assert why in tenants.refusal_of_run(run)


def test_other_places_are_runs():
    for tenants, run in ((NOBODY, "runs/a"), (TWO, OURS), (TWO, "runs/visions"), (EACH, "runs/teams/x/a")):
        assert tenants.refusal_of_run(run) == ""


def test_a_tenant_has_rules_of_its_own_below_its_prefixes():
    assert TWO.source_prefixes_of(OURS) == (
        "s3://runs/vision/rule-sources/",
        "s3://archive/vision/rule-sources/",
    )
    assert NOBODY.source_prefixes_of(OURS) == ()


def test_tenants_are_read_as_infra_writes_them():
    text = json.dumps({"prefixes": [["a", "runs/a/"]], "shared": ["archive/"]})
    assert Tenants.parse(text) == Tenants((("a", "runs/a/"),), ("archive/",))


FOLDERS = st.lists(st.sampled_from(["a", "b", "..", "", ".", "%2e%2e", "vision", "*"]), max_size=4)


@given(FOLDERS, FOLDERS)
def test_whatever_may_be_named_is_below_a_prefix_of_the_tenant(run, other):
    place = "/".join(["runs", "teams", *other])
    if EACH.refusal_of_other("/".join(["runs", "teams", *run]), f"s3://{place}") == "":
        assert other[0] == run[0]
        assert len(other) > 1
        assert not {"", ".", ".."} & set(other)
