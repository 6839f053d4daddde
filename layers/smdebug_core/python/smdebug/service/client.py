"""Asking a deployed debugger about runs, from a notebook or the command line.

debugger = smdebug.service.connect()
debugger.runs()
run = debugger.run("s3://my-bucket/resnet")
run.statuses()
run.findings(rule="VanishingGradient")
run.wait(on_news=print)
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from smdebug.exceptions import (
    ObjectMissing,
    RuleUnknown,
    RunUnknown,
    SMDebugRuntimeError,
    SMDebugValueError,
    StackUnknown,
    StorageUnavailable,
    WaitedTooLong,
)
from smdebug.service import items, statuses
from smdebug.service.reading import (
    ActionOutcome,
    FindingEvent,
    LogLine,
    News,
    RuleStatusOf,
    RunSnapshot,
    RunSummary,
    StepStatus,
    action_outcome,
    finding_event,
    news,
    snapshot,
    step_statuses,
)
from smdebug.service.records import RuleConfiguration, RunRecord, RunState
from smdebug.service.rules_file import RULES_FILE, in_our_form, nearest_of, parse_rules
from smdebug.service.tables import Rows

if TYPE_CHECKING:
    from smdebug.storage import Storage
    from smdebug.trials import Trial

DEFAULT_STACK = "smdebug"
STOP = "control/stop"

Wanted = str | RuleConfiguration | Mapping[str, Any]
"""A rule: the name of a built-in one, a configuration, or an entry as rules.json has it."""

_AT_A_TIME = 8
_A_PAGE = 200
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0


class ItemReader(Protocol):
    """The step index, to be read."""

    def get(self, pk: str, sk: str) -> items.Item | None: ...

    def query(
        self,
        pk: str,
        *,
        first: str = "",
        last: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[items.Item]: ...


class LogReader(Protocol):
    """What the functions said of a rule on a run."""

    def lines(self, run: str, rules: Sequence[str], since: float | None) -> Iterator[LogLine]: ...


class Clock(NamedTuple):
    """How time passes for one who waits."""

    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


def connect(
    stack: str | None = None,
    *,
    table: str | None = None,
    bucket: str | None = None,
    log_groups: Sequence[str] = (),
    client: Callable[[str], Any] | None = None,
) -> Debugger:
    """The debugger of that stack, or over that table.

    Without either it is the one that `SMDEBUG_TABLE` and `SMDEBUG_BUCKET` name (a local stack prints them),
    else the stack `SMDEBUG_STACK`, else "smdebug". `client` makes the clients, such as
    `boto3.Session(profile_name="research").client`.
    """
    from smdebug.service.aws import (
        Deployment,
        Logs,
        Table,
        default_clients,
        find_deployment,
        run_storage,
    )

    clients = _kept(client or default_clients())
    told = os.environ
    if stack is None and table is None and told.get("SMDEBUG_TABLE"):
        table, bucket = told["SMDEBUG_TABLE"], bucket or told.get("SMDEBUG_BUCKET")
        log_groups = log_groups or tuple(
            filter(None, told.get("SMDEBUG_LOG_GROUPS", "").split(","))
        )
    if table is not None:
        found = Deployment(table, bucket or "", log_groups=tuple(log_groups))
    else:
        found = find_deployment(stack or told.get("SMDEBUG_STACK") or DEFAULT_STACK, clients)
    groups = tuple(log_groups) or found.log_groups
    return Debugger(
        Table(found.table, clients),
        lambda run: run_storage(run, clients),
        logs=Logs(groups, clients) if groups else None,
        bucket=bucket or found.bucket,
        name=str(found),
        outputs=found.outputs or {},
    )


class Debugger:
    """A deployed debugger: the runs that it has seen."""

    def __init__(
        self,
        index: ItemReader,
        open_run: Callable[[str], Storage],
        *,
        logs: LogReader | None = None,
        bucket: str = "",
        name: str = "",
        outputs: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ):
        self.bucket = bucket
        self.outputs = dict(outputs or {})
        self._name = name
        self._index = index
        self._open_run = open_run
        self._logs = logs
        self._clock = clock or Clock()

    def __repr__(self) -> str:
        runs = f" of the runs in s3://{self.bucket}" if self.bucket else ""
        return f"<the debugger{runs}, {self._name or 'in memory'}>"

    def runs(self, *, watched: bool = False) -> Rows[RunSummary]:
        """The runs that were seen, the newest first; with `watched` those alone that have not finished."""
        names = self._names(watched=watched)
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            seen = [one.summary for one in pool.map(self._snapshot, names) if one is not None]
        seen.sort(key=lambda one: (one.first_seen is not None, one.first_seen), reverse=True)
        return Rows(seen, RunSummary.columns, "No run was seen yet.")

    def run(self, name: str) -> WatchedRun:
        """The run at `s3://bucket/prefix`, or of a SageMaker training job of that name.

        The bucket may be left out if it is the stack's own.
        """
        wanted = name.strip().removeprefix("s3://").rstrip("/")
        own = f"{self.bucket}/{wanted}" if wanted else self.bucket
        for candidate in dict.fromkeys([wanted, own] if self.bucket else [wanted]):
            if candidate and self._record(candidate) is not None:
                return self._watched(candidate)
        if wanted and "/" not in wanted:
            for item in self._index.query(items.job_pk(wanted)):
                return self._watched(item["sk"])
        raise RunUnknown(name, self._nearest(wanted))

    def _nearest(self, wanted: str) -> str | None:
        """Compared without the stack's own bucket, the longest part of a name, which may be left out."""
        names = self._names()
        own = f"{self.bucket}/"
        by_prefix = {name.removeprefix(own): name for name in names}
        near = nearest_of(wanted.removeprefix(own), by_prefix)
        return by_prefix[near] if near is not None else nearest_of(wanted, names)

    def _watched(self, run: str) -> WatchedRun:
        return WatchedRun(run, self._index, self._open_run, self._logs, self._clock)

    def _names(self, *, watched: bool = False) -> list[str]:
        lists = (items.RUNS,) if watched else (items.RUNS, items.PAST_RUNS)
        found = (item["sk"] for pk in lists for item in self._index.query(pk))
        return list(dict.fromkeys(found))

    def _record(self, run: str) -> RunRecord | None:
        item = self._index.get(items.run_pk(run), items.RUN)
        return None if item is None else items.run_of(item)

    def _snapshot(self, run: str) -> RunSnapshot | None:
        return read_run(self._index, run)


def read_run(index: ItemReader, run: str) -> RunSnapshot | None:
    """A run and its rules as they are now, with one query; None if it is not known."""
    found = index.query(items.run_pk(run), first=items.GROUP_PREFIX, last=items.RUN)
    told = {item["sk"]: item for item in found}
    if items.RUN not in told:
        return None
    record = items.run_of(told[items.RUN])
    # One that the run does not name was begun by somebody who died.
    named = [told.get(items.group_sk(group)) for group in record.groups]
    groups = [items.group_of(one) for one in named if one is not None]
    return snapshot(record, groups, items.rules_of(told.get(items.RULES)))


class WatchedRun:
    """One run, as the debugger knows it. Everything is looked up when it is asked for."""

    def __init__(
        self,
        run: str,
        index: ItemReader,
        open_run: Callable[[str], Storage],
        logs: LogReader | None = None,
        clock: Clock | None = None,
    ):
        self.run = run
        self._index = index
        self._open_run = open_run
        self._logs = logs
        self._clock = clock or Clock()

    @property
    def location(self) -> str:
        return f"s3://{self.run}"

    def __repr__(self) -> str:
        return f"<the run {self.location}>"

    # Looking

    def look(self) -> RunSnapshot:
        """The run and all its rules as they are now."""
        seen = read_run(self._index, self.run)
        if seen is None:
            raise RunUnknown(self.run)
        return seen

    @property
    def record(self) -> RunRecord:
        """All that is known of the run as a whole."""
        return self.look().record

    @property
    def state(self) -> RunState:
        """Running, Silent, Ending, Ended or Finished."""
        return self.look().state

    @property
    def configurations(self) -> tuple[RuleConfiguration, ...]:
        """The rules that watch the run, as the debugger has read them."""
        return self.look().configurations

    def to_dict(self) -> dict[str, Any]:
        return self.look().to_dict()

    def statuses(self) -> Rows[RuleStatusOf]:
        """How each rule stands, and why."""
        return self.look().statuses

    def status(self, rule: str) -> RuleStatusOf:
        """How that rule stands; it is named by its name, its id or its class."""
        return _one_of(self.look(), rule)

    def describe_rule_execution_jobs(self) -> Rows[dict[str, Any]]:
        """The statuses in the words of tornasole's call of that name."""
        return statuses.rule_execution_jobs(self.statuses())

    def debug_rule_evaluation_statuses(self) -> Rows[dict[str, Any]]:
        """The statuses as SageMaker's `describe_training_job()["DebugRuleEvaluationStatuses"]` had them."""
        seen = self.look()
        return statuses.rule_evaluation_statuses(seen.statuses, seen.summary.first_seen)

    rule_job_summary = debug_rule_evaluation_statuses

    def findings(
        self, rule: str | None = None, since_step: int | None = None, limit: int | None = None
    ) -> Rows[FindingEvent]:
        """What was found, in the order of steps; the last `limit` of them."""
        if rule is not None:
            _one_of(self.look(), rule)
        begin = f"{items.FINDING_PREFIX}{max(0, since_step or 0):012}#"
        found: list[FindingEvent] = []
        for item in self._newest_first(begin, items.FINDING_PREFIX + items.LAST):
            if limit is not None and len(found) >= limit:
                break
            one = finding_event(items.finding_of(item))
            if rule is None or one.is_of(rule):
                found.append(one)
        found.reverse()
        return Rows(found, FindingEvent.columns, "Nothing was found.")

    def actions(self, finding_id: str | None = None) -> Rows[ActionOutcome]:
        """What became of the actions that findings asked for, or that one did."""
        first = items.ACTION_PREFIX + (f"{finding_id}#" if finding_id else "")
        found = self._index.query(items.run_pk(self.run), first=first, last=first + items.LAST)
        told = [
            action_outcome(str(one.get("rule", "")), items.unpacked(one["body"])) for one in found
        ]
        told.sort(key=lambda one: one.at.timestamp() if one.at else 0.0)
        return Rows(told, ActionOutcome.columns, "No action was asked for.")

    def _newest_first(self, first: str, last: str) -> Iterator[items.Item]:
        pk = items.run_pk(self.run)
        while True:
            page = self._index.query(pk, first=first, last=last, limit=_A_PAGE, newest_first=True)
            yield from (item for item in page if item["sk"] != last)
            if len(page) < _A_PAGE:
                return
            last = page[-1]["sk"]  # which comes once more, and is left out

    def steps(self, first: int = 0, last: int | None = None) -> Rows[StepStatus]:
        """Who has written what of each step, and whether the rules have looked at it.

        Of the newest attempt, if the training was resumed.
        """
        seen = self.look()
        prefix = items.steps_prefix(seen.record.training_run)
        end = prefix if last is None else f"{prefix}{last:012}#"
        found = self._index.query(
            items.run_pk(self.run), first=f"{prefix}{max(0, first):012}#", last=end + items.LAST
        )
        return step_statuses(seen, items.steps_of(found))

    def logs(self, rule: str, since: datetime | timedelta | float | None = None) -> Rows[LogLine]:
        """The lines that the rule has logged on this run, since then: a date, or so long ago.

        Without, since the run was first seen.
        """
        if self._logs is None:
            raise StackUnknown(
                self.location,
                "where its functions log is not known: connect by the name of the stack, or with "
                "log_groups=[…] (SMDEBUG_LOG_GROUPS)",
            )
        seen = self.look()
        status = _one_of(seen, rule)
        begin = _seconds(since, default=seen.record.first_seen)
        found = self._logs.lines(self.run, tuple(dict.fromkeys([status.name, status.id])), begin)
        lines = sorted(found, key=lambda one: one.time.timestamp() if one.time else 0.0)
        return Rows(lines, LogLine.columns, f"{status.name} has said nothing.")

    def trial(self, **options: Any) -> Trial:
        """The run itself, to look at its tensors."""
        from smdebug.trials.utils import create_trial

        return create_trial(self._open_run(self.run), **options)

    def wait(
        self,
        until: str | int | Callable[[RunSnapshot], bool] = "finished",
        *,
        timeout: float | None = None,
        on_news: Callable[[News], Any] | None = None,
    ) -> RunSnapshot:
        """Look again and again until the run has finished, telling what is new; the run as it is then.

        `until` may also be "found" (a rule has found something, or the run has finished), a step (which
        every rule has been shown), or what decides by a snapshot. `WaitedTooLong` after `timeout` seconds.
        """
        has_happened = _condition(until)
        begun = self._clock.now()
        before: RunSnapshot | None = None
        pause = _SHORTEST_PAUSE
        while True:
            seen = self._look_patiently() or before
            told = news(before, seen) if seen is not None else []
            for one in told if on_news is not None else ():
                assert on_news is not None
                on_news(one)
            if seen is not None and has_happened(seen):
                return seen
            pause = _SHORTEST_PAUSE if told else min(pause * 1.5, _LONGEST_PAUSE)
            waited = self._clock.now() - begun
            if timeout is not None and waited >= timeout:
                state = "unreachable" if seen is None else seen.state.value
                raise WaitedTooLong(self.location, timeout, state)
            left = pause if timeout is None else min(pause, timeout - waited)
            self._clock.pause(left)
            before = seen

    def _look_patiently(self) -> RunSnapshot | None:
        try:
            return self.look()
        except StorageUnavailable:  # it may be there the next time
            return None

    # Changing which rules watch it

    def rules(self) -> tuple[RuleConfiguration, ...]:
        """What the run's rules.json says, else the rules that it was given by the stack."""
        try:
            data = self._open_run(self.run).read(RULES_FILE)
        except ObjectMissing:
            return self.configurations
        return parse_rules(data, file=self._rules_file)

    def attach(self, rules: Wanted | Sequence[Wanted]) -> tuple[RuleConfiguration, ...]:
        """Have these rules watch the run, too, from its first step; all that do then.

        One of a name that is there takes its place.
        """
        more = self._configurations(rules)
        names = {one.name for one in more}
        kept = (one for one in self.rules() if one.name not in names)
        return self._write_rules((*kept, *more))

    def detach(self, names: str | Iterable[str]) -> tuple[RuleConfiguration, ...]:
        """Have these rules, by name, look at the run no longer; those that still do."""
        gone = {names} if isinstance(names, str) else set(names)
        before = self.rules()
        known = tuple(one.name for one in before)
        for name in sorted(gone - set(known)):
            raise RuleUnknown(name, self.location, known, nearest_of(name, known))
        return self._write_rules(one for one in before if one.name not in gone)

    def set_rules(self, rules: Wanted | Sequence[Wanted]) -> tuple[RuleConfiguration, ...]:
        """Have these rules, and no others, watch the run."""
        return self._write_rules(self._configurations(rules))

    @property
    def _rules_file(self) -> str:
        return f"{self.location}/{RULES_FILE}"

    def _configurations(self, rules: Wanted | Sequence[Wanted]) -> tuple[RuleConfiguration, ...]:
        if isinstance(rules, Mapping) and not {"rule", "RuleName", "RuleParameters"} & set(rules):
            return parse_rules(rules, file="the rules given")  # a whole rules.json
        many = [rules] if isinstance(rules, str | RuleConfiguration | Mapping) else rules
        told = [one.to_dict() if isinstance(one, RuleConfiguration) else one for one in many]
        return parse_rules(told, file="the rules given")

    def _write_rules(self, rules: Iterable[RuleConfiguration]) -> tuple[RuleConfiguration, ...]:
        told = json.dumps(in_our_form(rules), indent=2, ensure_ascii=False) + "\n"
        written = parse_rules(told.encode(), file=self._rules_file)
        self._open_run(self.run).write(RULES_FILE, told.encode())
        return written

    # Ending it

    def stop(
        self, reason: str = "somebody asked for it", *, stop_at_step: int | None = None
    ) -> dict[str, Any]:
        """Ask the training to stop, at its next save step or at that one; what it is told."""
        state = self.state
        if state in (RunState.ENDED, RunState.FINISHED):
            raise SMDebugRuntimeError(
                f"{self.location} is {state.value}: there is no training left that could be stopped"
            )
        if stop_at_step is not None and stop_at_step < 0:
            raise SMDebugValueError(f"stop_at_step has to be the number of a step: {stop_at_step}")
        told = {"reason": reason, "finding_id": None, "stop_at_step": stop_at_step}
        self._open_run(self.run).write(STOP, json.dumps(told, ensure_ascii=False).encode())
        return told


def _one_of(run: RunSnapshot, rule: str) -> RuleStatusOf:
    """The rule of that name or id; else the only one of that class."""
    named = [one for one in run.statuses if rule in (one.name, one.id)]
    of_class = [one for one in run.statuses if one.rule == rule]
    if named or len(of_class) == 1:
        return (named or of_class)[0]
    known = tuple(dict.fromkeys(one.name for one in run.statuses))
    raise RuleUnknown(rule, run.record.location, known, nearest_of(rule, known))


def _condition(until: str | int | Callable[[RunSnapshot], bool]) -> Callable[[RunSnapshot], bool]:
    if callable(until):
        return until
    if isinstance(until, int) and not isinstance(until, bool):
        return lambda run: run.evaluated_through is not None and run.evaluated_through >= until
    if until == "finished":
        return lambda run: run.state is RunState.FINISHED
    if until == "found":
        return lambda run: run.has_found_something or run.state is RunState.FINISHED
    raise SMDebugValueError(
        f"until has to be 'finished', 'found', the number of a step or a function, not {until!r}"
    )


def _seconds(since: datetime | timedelta | float | None, *, default: float) -> float | None:
    """A time in seconds; numbers and spans are so long ago."""
    match since:
        case None:
            return default or None
        case datetime():
            return since.timestamp()
        case timedelta():
            return time.time() - since.total_seconds()
    return time.time() - float(since)


def _kept(clients: Callable[[str], Any]) -> Callable[[str], Any]:
    """One client of each service, however often it is asked for."""
    from threading import Lock

    made: dict[str, Any] = {}
    lock = Lock()

    def client(service: str) -> Any:
        with lock:
            if service not in made:
                made[service] = clients(service)
            return made[service]

    return client


__all__ = ["Clock", "Debugger", "ItemReader", "LogReader", "WatchedRun", "connect", "read_run"]
