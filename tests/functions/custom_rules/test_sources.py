"""Where the code of a custom rule may come from, and the error if it may not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.custom_rules import sources
from functions.custom_rules.sources import (
    SourceRefused,
    allowed,
    inlined,
    refuse_elsewhere,
    source_of,
    text_in,
)
from smdebug.exceptions import SMDebugValueError
from smdebug.service.records import RuleConfiguration
from tests.functions.deployed_settings import settings
from tests.functions.small_world import SmallWorld

URI = "s3://runs/rule-sources/rule.py"
WANTED = RuleConfiguration("mine", "Mine", source=URI)


def world_with(text: bytes | None = b"class Mine: ..."):
    small = SmallWorld(settings(sandbox="sandbox"))
    if text is not None:
        small.place("rule-sources").write("rule.py", text)
    return small.world


def test_the_code_is_handed_over_with_its_digest():
    source = source_of(world_with(), "runs/mnist", WANTED)
    assert source.function == "sandbox"
    assert source.handed["sha256"] == source.digest
    assert text_in(source.handed["text"]) == b"class Mine: ..."
    assert source_of(world_with(), "runs/mnist", WANTED, pinned=source.digest) == source


def test_code_that_is_not_what_the_run_began_with_is_refused():
    with pytest.raises(SourceRefused, match="was changed while the rule was watching this run"):
        source_of(world_with(), "runs/mnist", WANTED, pinned="0" * 64)


def test_code_too_long_for_a_job_is_named_instead(monkeypatch):
    monkeypatch.setattr(sources, "LARGEST_INLINE", 10)
    handed = source_of(world_with(), "runs/mnist", WANTED).handed
    assert set(handed) == {"uri", "sha256"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "There is no s3://runs/rule-sources/rule.py: upload the rule"),
        (b"", "is empty"),
        (b"#" * ((1 << 20) + 1), "has more than 1 MB"),
    ],
)
def test_code_that_cannot_be_fetched_is_reported(text, problem):
    with pytest.raises(SourceRefused, match=problem):
        source_of(world_with(text), "runs/mnist", WANTED)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://elsewhere/rule-sources/rule.py",
        "s3://runs/mnist/rule.py",
        "s3://runs/rule-sources-2/rule.py",
        "s3://runs/rule-sources/../mnist/rule.py",
        "s3://runs/rule-sources//rule.py",
        "s3://runs/rule-sources/./rule.py",
        "https://runs/rule-sources/rule.py",
        "s3://runs",
        "/etc/passwd",
        "",
    ],
)
def test_code_from_elsewhere_is_refused(uri):
    with pytest.raises(SourceRefused):
        refuse_elsewhere(uri, allowed((), "runs/mnist"))


def test_the_stack_limits_the_sources_of_rules():
    prefixes = ("s3://shared/rules/",)
    refuse_elsewhere("s3://shared/rules/of/us.py", allowed(prefixes, "runs/mnist"))
    with pytest.raises(SourceRefused, match="this run may use s3://shared/rules/"):
        refuse_elsewhere(URI, allowed(prefixes, "runs/mnist"))


def test_without_a_function_for_them_no_rules_from_s3_are_run():
    world = world_with()
    world = replace(world, settings=replace(world.settings, sandbox=""))
    with pytest.raises(SourceRefused, match="this stack has no function for rules from S3"):
        source_of(world, "runs/mnist", WANTED)


def test_an_archive_larger_than_its_declared_size_is_not_unpacked():
    bomb = inlined(bytes(200 << 20))
    assert len(text_in(bomb)) == sources.LARGEST_SOURCE + 1
    for damaged in ("?", "AAAA"):
        with pytest.raises(SMDebugValueError, match="cannot be unpacked"):
            text_in(damaged)
