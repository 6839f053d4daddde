"""The rules of a group on a run: made once, with their stored state, and evaluated step by step."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from functions.decisions.configuration import check
from functions.decisions.diagnoses import restored
from functions.decisions.rule_states import is_inline
from functions.evaluation.other_runs import refuse_strangers
from functions.evaluation.reading_shards import ShardReader
from functions.evaluation.run_history import IndexedHistory
from functions.evaluation.run_views import as_listed, collections_of
from functions.ports import TooMuch
from functions.telemetry import about_rule
from functions.world import World
from smdebug.diagnosis.evidence import Evidence, evidence_of
from smdebug.exceptions import NewerRecord, SMDebugError, StepNotYetAvailable, StorageUnavailable
from smdebug.files.names import END_MARKER, EVENTS_FOLDER, index_key
from smdebug.rules.asking import AT_STEP, ask, error_sentence
from smdebug.rules.construction import make_rule
from smdebug.rules.generic import every_rule, find_rule
from smdebug.rules.memory.state import restore_state, save_state
from smdebug.rules.outcomes import Behind, Failed, Found, Outcome
from smdebug.rules.rule import Rule, asks_at_end
from smdebug.rules.rule_sets import documentation_of
from smdebug.service.records import (
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RunRecord,
    StepRecord,
)
from smdebug.service.step_index.items import state_key
from smdebug.storage import Storage
from smdebug.trials.past.as_of import AsOfTrial
from smdebug.trials.past.history import StepSummary

NOT_ITS_FAULT = (StorageUnavailable, TooMuch, NewerRecord)
"""What evaluating a rule may raise without a fault of the rule: the step is evaluated again later."""
_WARM_RUNS = 4


class RuleBench:
    """The rules of one group on one run, for as long as a lease lasts."""

    def __init__(self, world: World, record: RunRecord):
        self._world = world
        self._record = record
        self._rules: dict[str, Rule] = {}
        self._seen: set[str] = set()
        self._others: dict[str, _OtherRun] = {}
        self._storage: Storage | None = None
        self.summary: StepSummary | None = None
        self.saved: float | None = None
        self.earlier_attempt: int | None = None  # that has saved the step after it was resumed

    @property
    def storage(self) -> Storage:
        """The storage of the run."""
        if self._storage is None:
            self._storage = self._world.open_run(self._record.run)
        return self._storage

    @property
    def trial(self) -> AsOfTrial:
        """The run as of the step that is evaluated."""
        return _view(self._world, self._record, self.storage).trial

    def previous_step(self, step: int, worker: str) -> int | None:
        """Return the step that the worker saved before this one, according to its index file."""
        written = self.trial.written_by(step, [worker]).get(worker)
        return None if written is None else written.previous_step

    def read_index_files(self, step: StepRecord) -> None:
        """Fetch all index files of a step together, as they are read one by one later."""
        self.trial.written_by(step.step, sorted(step.complete_workers))

    def reading_ahead(self, step: StepRecord, most_bytes: int) -> Callable[[], None]:
        """Return what fetches a later step, up to that size."""
        return self.trial.reading_ahead(step.step, sorted(step.complete_workers), most_bytes)

    def move_to(self, step: StepRecord) -> str | None:
        """Limit the run to the step; return the problem with its files, or None."""
        view = _view(self._world, self._record, self.storage)
        workers = sorted(step.complete_workers)
        summary = view.trial.move_to(step.step, workers)
        missing = [worker for worker in workers if worker not in summary.workers]
        self.summary = summary if summary.workers else None
        if self.summary is not None:
            view.history.add_layout(view.trial.layout(summary.layout))
            written = view.trial.written_by(step.step, summary.workers).values()
            named = [saved.attempt for saved in written if saved.attempt.run_id is not None]
            number = min((origin.training_run for origin in named), default=self._record.training_run)
            attempt = number + self._record.training_base
            self.earlier_attempt = attempt if attempt < self._record.training_run else None
            self.saved = max((index_file.saved_at or 0.0 for index_file in written), default=0.0) or None
        if not missing:
            return None
        damaged = view.trial.damaged_files
        files = (index_key(step.step, worker) for worker in missing)
        problems = [str(damaged[file]) for file in files if file in damaged][-3:]
        return (
            f"Step {step.step} cannot be read as saved by {', '.join(missing[:8])}"
            f"{' and others' if len(missing) > 8 else ''}: "
            + ("; ".join(problems) or "the index file is empty or was removed")
        )

    def asks_at_end(self, configuration: RuleConfiguration) -> bool:
        """Whether the rule is evaluated at the end of a run."""
        try:
            return asks_at_end(find_rule(configuration.rule).load())
        except SMDebugError:  # the rule no longer exists
            return False

    def ask(
        self,
        record: RuleRecord,
        configuration: RuleConfiguration,
        step: int,
        *,
        occasion: str = AT_STEP,
        silent_for: float | None = None,
    ) -> Outcome | Behind:
        """Evaluate a rule at the step, or on the occasion that the run is over or silent."""
        with about_rule(self._record.run, configuration.name, step, configuration.logging_level):
            try:
                rule = self._rule(record, configuration)
            except NOT_ITS_FAULT:
                raise
            except Exception as problem:  # noqa: BLE001 - a rule may raise anything
                return Failed(error_sentence(problem))
            before = save_state(rule) if configuration.other_trials else None
            outcome = self._ask(rule, configuration, step, occasion, silent_for)
            if isinstance(outcome, Behind):
                if before is not None:
                    restore_state(rule, before)
                return outcome
            self._seen.add(record.id)
            if isinstance(outcome, Found):
                return _with_evidence(outcome, rule, configuration, step)
            return outcome

    def _ask(
        self,
        rule: Rule,
        configuration: RuleConfiguration,
        step: int,
        occasion: str,
        silent_for: float | None,
    ) -> Outcome | Behind:
        try:
            for other in configuration.other_trials:
                self._other(other).limit_to(step)
        except StepNotYetAvailable as behind:
            return Behind(str(behind))
        return ask(rule, step, occasion, silent_for=silent_for, not_its_fault=NOT_ITS_FAULT)

    def damage_at(self, step: int) -> list[str]:
        """Return the problems of the step's tensors that could not be read."""
        folder = f"{EVENTS_FOLDER}{step:012}/"
        damaged = self.trial.damaged_files.items()
        return [str(problem) for file, problem in damaged if file.startswith(folder)]

    def open_evidence(self, record: RuleRecord, configuration: RuleConfiguration) -> tuple[Evidence, ...]:
        """Return the evidence of the rule's open issue, with its advice."""
        if not record.has_open_issue or not record.evidence:
            return ()
        try:
            rule = find_rule(configuration.rule).load()
            advice, docs = rule.advice, documentation_of(configuration.rule)
        except SMDebugError:  # a custom rule
            advice, docs = {}, ""
        last = record.last_found or 0
        return restored(configuration.name, record.evidence, last, advice=advice, docs=docs)

    def remembered(self, record: RuleRecord, group: GroupRecord) -> RuleRecord:
        """Return the rule's record with its present state; a large state is written to an object."""
        if record.id not in self._seen or record.is_over:
            return record
        try:
            state = save_state(self._rules[record.id]).data
        except SMDebugError as problem:
            raise StateTooLarge(record.id, str(problem)) from problem
        if is_inline(state):
            return replace(record, state=state, state_key="")
        key = state_key(group.group, record.id, group.token)
        self.storage.write(key, state)
        return replace(record, state=b"", state_key=key)

    def write(self, key: str, body: bytes) -> None:
        """Write an object beside the run's files."""
        self.storage.write(key, body)

    def _rule(self, record: RuleRecord, configuration: RuleConfiguration) -> Rule:
        known = self._rules.get(record.id)
        if known is not None:
            return known
        problem = check(configuration, every_rule())
        if problem is not None:
            raise SMDebugError(problem)
        refuse_strangers(self._world.settings.tenants, self._record.run, configuration)
        rule = make_rule(
            find_rule(configuration.rule).load(),
            self.trial,
            configuration.parameters,
            [self._other(other).trial for other in configuration.other_trials],
        )
        state = self.storage.read(record.state_key) if record.state_key else record.state
        if state:
            restore_state(rule, state)
        self._rules[record.id] = rule
        return rule

    def _other(self, place: str) -> _OtherRun:
        run = place.removeprefix("s3://").strip("/")
        if run not in self._others:
            self._others[run] = _OtherRun(self._world, run)
        return self._others[run]


class StateTooLarge(Exception):
    """The rule's state is larger than is kept."""

    def __init__(self, rule: str, problem: str):
        super().__init__(rule, problem)
        self.rule = rule
        self.problem = problem


def _with_evidence(found: Found, rule: Rule, configuration: RuleConfiguration, step: int) -> Found:
    """Return the findings with their evidence by cause, and the rule's advice."""
    evidence = evidence_of(
        configuration.name,
        [(step, found.findings)],
        advice=rule.advice,
        docs="" if configuration.source else documentation_of(configuration.rule),
        cause=rule.cause,
    )
    return replace(found, evidence=tuple(evidence))


class _OtherRun:
    """A run that a rule compares with, from the step index if it is known there, or else by listing."""

    def __init__(self, world: World, run: str):
        self._world = world
        self._record = world.index.run(run)
        self._storage = world.open_run(run)
        if self._record is not None:
            self.trial = _view(world, self._record, self._storage).trial
        else:
            self.trial = as_listed(run.rpartition("/")[2], self._storage)

    def limit_to(self, step: int) -> None:
        """Limit the other run to the step; `StepNotYetAvailable` while the step may still arrive."""
        self.trial.limit_to(step, passed=self._has_passed(step))

    def _has_passed(self, step: int) -> bool:
        record = self._record
        if record is None:
            return self._storage.exists(END_MARKER)
        if record.has_ended:
            return True
        later = self._world.index.steps(record.run, record.training_run, first=step, limit=5)
        return any(record.is_whole(later_step) for later_step in later)


class _View:
    """The view of a run that is kept between invocations."""

    def __init__(self, world: World, record: RunRecord, storage: Storage):
        self.version = _version(record)
        self.history = IndexedHistory(world.index, record, storage)
        self.trial = AsOfTrial(
            record.run.rpartition("/")[2],
            storage,
            history=self.history,
            collections=collections_of(world.index.collections(record.run), storage),
            num_workers=record.num_workers or 1,
            together=ShardReader(world, record.run),
        )


def _view(world: World, record: RunRecord, storage: Storage) -> _View:
    """Return the view of a run, a kept one if this process has seen the run before."""
    kept: OrderedDict[str, _View] = world.kept_views
    view = kept.get(record.run)
    if view is None or view.version != _version(record):
        view = kept[record.run] = _View(world, record, storage)
    kept.move_to_end(record.run)
    while len(kept) > _WARM_RUNS:
        kept.popitem(last=False)
    return view


def _version(record: RunRecord) -> tuple[Any, ...]:
    return (record.training_run, record.collections_version, record.num_workers)
