"""A bench that reaches far into the rules still runs, at its smallest: how fast it is says the bench."""

import pytest

from bench import default_rules
from smdebug_default_rules.catalog import CATALOG


def test_the_bench_of_the_default_rules_times_each_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    default_rules.main(["--steps", "4", "--tensors", "4"])
    said = capsys.readouterr().out
    assert len([line for line in said.splitlines() if line.endswith("us a step")]) == len(CATALOG)
    assert said.count("workers with digests of") == 3
