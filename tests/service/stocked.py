"""A step index in memory, filled as the deployed functions would fill it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from functions.adapters.in_memory import MemoryItems
from functions.ports import ItemStore
from functions.step_index import StepIndex
from smdebug.service.client import Clock, Debugger, WatchedRun
from smdebug.service.records import (
    BUILT_IN,
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RuleStatus,
    RunRecord,
    RunState,
)
from smdebug.service.step_index import items
from smdebug.service.step_index.items import RulesOfRun
from smdebug.storage.memory import MemoryStorage
from tests.functions.deployed_settings import KEPT_FOR
from tests.rules.made_runs import made_run

RUN = "my-bucket/teams/resnet"
BEGUN = 1_763_707_116.0  # 2025-11-21 06:38:36
VANISHING = RuleConfiguration("fc", "VanishingGradient", {"threshold": "1e-6"})
LOSS = RuleConfiguration("loss", "LossNotDecreasing")
OWN = RuleConfiguration("mine", "MyRule", source="s3://my-bucket/rule.py")


class Stock:
    """The index and the bucket of a debugger, with methods to fill them."""

    def __init__(self, store: ItemStore | None = None) -> None:
        self.store = store or MemoryItems()
        self.index = StepIndex(self.store, kept_for=KEPT_FOR)
        self.places: dict[str, MemoryStorage] = {}
        self.paused: list[float] = []
        self.events: list[Any] = []  # what happens at each pause of a wait
        self.debugger = Debugger(
            self.store,
            self.open,
            bucket="my-bucket",
            name="stack tests",
            clock=Clock(now=lambda: sum(self.paused), pause=self._pause),
        )

    def open(self, run: str) -> MemoryStorage:
        return self.places.setdefault(run, MemoryStorage())

    def run(self, run: str = RUN) -> WatchedRun:
        return self.debugger.run(run)

    def _pause(self, seconds: float) -> None:
        self.paused.append(seconds)
        if self.events:
            self.events.pop(0)()

    # What the functions write

    def begin(
        self,
        run: str = RUN,
        *,
        wanted: Iterable[RuleConfiguration] = (VANISHING, LOSS),
        detached: Iterable[RuleConfiguration] = (),
        **fields: Any,
    ) -> RunRecord:
        record = RunRecord(run, **{"num_workers": 1, "run_id": "a", "first_seen": BEGUN, **fields})
        self.index.list_run(run, BEGUN)
        self.index.put_rules(run, RulesOfRun(tuple(wanted), tuple(detached)), "1")
        assert self.index.begin_run(record)
        return record

    def become(self, state: RunState, run: str = RUN, **fields: Any) -> None:
        record = self.index.run(run)
        assert record is not None
        assert self.index.change_run(record, replace(record, state=state, **fields))

    def group(self, *rules: RuleRecord, run: str = RUN, group: str = BUILT_IN, **fields: Any) -> None:
        self.store.put(items.item_of_group(run, GroupRecord(group, rules=rules, **fields)))
        record = self.index.run(run)
        if record is not None and group not in record.groups:
            self.index.change_run(record, replace(record, groups=(*record.groups, group)))

    def wrote(
        self,
        step: int,
        *workers: str,
        run: str = RUN,
        training_run: int = 0,
        event_only: bool = False,
    ) -> None:
        for worker in workers or ("worker_0",):
            for is_index in (False,) if event_only else (False, True):
                self.index.note_arrivals(
                    run,
                    training_run,
                    step,
                    items.shard_of(worker),
                    frozenset([items.token_of(worker, is_index=is_index)]),
                    uploaded=BEGUN + step,
                    indexed=BEGUN + step + 0.5,
                )

    def found(self, configuration: RuleConfiguration, step: int, **more: Any) -> None:
        self.index.put_finding(RUN, step, f"id-{step}", finding(configuration, step, **more))


def rule(configuration: RuleConfiguration, **fields: Any) -> RuleRecord:
    return RuleRecord(configuration.id, configuration.name, **fields)


def failing(configuration: RuleConfiguration, step: int, **fields: Any) -> RuleRecord:
    """The record of a rule with a finding at the step."""
    reason = (
        f"RuleEvaluationConditionMet: Evaluation of the rule {configuration.rule} at step {step} "
        "resulted in the condition being met"
    )
    fields = {"issue_since": step, "last_found": step, "changed_at": BEGUN + 9, **fields}
    return rule(configuration, status=RuleStatus.ISSUES_FOUND, reason=reason, **fields)


def finding(configuration: RuleConfiguration, step: int, **more: Any) -> Mapping[str, Any]:
    """The detail of a finding's event."""
    worst = {"tensor": "gradient/fc", "statistic": "abs_mean", "value": 1e-9, "threshold": 1e-7}
    return {
        "id": f"id-{step}",
        "run": RUN,
        "rule": configuration.rule,
        "configuration": {"id": configuration.id, "name": configuration.name, "parameters": {}},
        "step": step,
        "mode": "TRAIN",
        "reason": f"the rule {configuration.rule} at step {step}",
        "evidence": {"count": 3, "worst": [worst], "rest": None},
        "last_good_step": step - 1,
        **more,
    }


def failing_run() -> Stock:
    """A debugger that watches a failing run with two workers: the example of `docs/asking.md`."""
    stock = Stock()
    run = "my-bucket/resnet"
    stock.begin(run, num_workers=2, job="resnet-2026-11-21")
    storage = stock.open(run)
    made_run({step: {"loss": [1.0], "gradient/fc": [1e-9]} for step in (0, 10, 20)}, storage)
    for step in (0, 10):
        stock.wrote(step, "worker_0", "worker_1", run=run)
    stock.wrote(20, "worker_0", run=run)
    stock.group(failing(VANISHING, 10, last_good=0), rule(LOSS, last_good=10), run=run, cursor=10)
    detail = {**finding(VANISHING, 10), "run": run}
    stock.index.put_finding(run, 10, "id-10", detail)
    stock.events = [lambda: stock.become(RunState.FINISHED, run)]
    return stock
