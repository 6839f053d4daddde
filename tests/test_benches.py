"""A bench that reaches far into the rules still runs, at its smallest: how fast it is says the bench."""

import pytest

from bench import default_rules
from bench.costs.live_share import NOTICED, Account, CallSeconds
from infra.backtesting.share import most_at_once
from smdebug_default_rules.catalog import CATALOG


def test_the_bench_of_the_default_rules_times_each_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    default_rules.main(["--steps", "4", "--tensors", "4"])
    said = capsys.readouterr().out
    assert len([line for line in said.splitlines() if line.endswith("us a step")]) == len(CATALOG)
    assert said.count("workers with digests of") == 3


@pytest.mark.parametrize("limit", [40, 200])
def test_live_runs_notice_a_backtest_only_without_its_share(limit: int) -> None:
    def seconds(judging_at_once: int) -> float:
        account = Account(limit, CallSeconds([0.1], [0.3]), minutes=2)
        waited = account.live(judging_at_once=judging_at_once)
        assert waited.most_judging == judging_at_once
        assert len(waited.steps) > 60 * account.steps_a_second
        return waited.at(99)

    alone = seconds(0)
    assert seconds(most_at_once(limit, reserved=0)) <= NOTICED * alone
    assert seconds(limit) > 5 * alone
