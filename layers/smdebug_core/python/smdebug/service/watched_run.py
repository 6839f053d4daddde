"""One run, as a deployed debugger knows it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import (
    RuleUnknown,
    RunUnknown,
    SMDebugRuntimeError,
    SMDebugValueError,
    StackUnknown,
)
from smdebug.files.names import STOP_KEY
from smdebug.plain_text import nearest_of
from smdebug.service import sagemaker_statuses
from smdebug.service.attached_rules import AttachedRules, RequestedRules
from smdebug.service.findings import ActionRecord, FindingEvent, action_outcome, finding_event
from smdebug.service.log_lines import LogLine, LogReader
from smdebug.service.news import News
from smdebug.service.records import RuleConfiguration, RunRecord, RunState
from smdebug.service.run_status import RuleStatusOf, RunSnapshot, snapshot
from smdebug.service.step_index import items
from smdebug.service.step_index.formats import ReadableItems
from smdebug.service.step_index.item_reader import Item, ItemReader
from smdebug.service.step_index.packing import unpacked
from smdebug.service.step_status import StepStatus, step_statuses
from smdebug.service.tables import Rows
from smdebug.service.waiting import Clock, Condition, condition, wait_until

if TYPE_CHECKING:
    from smdebug.storage import Storage
    from smdebug.trials import Trial

_PAGE = 200


def read_run(index: ItemReader, run: str) -> RunSnapshot | None:
    """Return a run and its rules as they are now, with one query; None if the run is unknown."""
    found = index.query(items.run_pk(run), first=items.GROUP_PREFIX, last=items.RUN)
    by_key = {item["sk"]: item for item in found}
    if items.RUN not in by_key:
        return None
    record = items.run_of(by_key[items.RUN])
    # A group that the run does not name was begun by a function that died.
    named = [by_key.get(items.group_sk(group)) for group in record.groups]
    groups = [items.group_of(item) for item in named if item is not None]
    return snapshot(record, groups, items.rules_of(by_key.get(items.RULES)))


class WatchedRun:
    """One run, as the debugger knows it. Every call reads the current state."""

    def __init__(
        self,
        run: str,
        index: ItemReader,
        open_run: Callable[[str], Storage],
        logs: LogReader | None = None,
        clock: Clock | None = None,
    ):
        self.run = run
        self._index = ReadableItems(index)
        self._open_run = open_run
        self._logs = logs
        self._clock = clock or Clock()

    @property
    def location(self) -> str:
        return f"s3://{self.run}"

    def __repr__(self) -> str:
        return f"<the run {self.location}>"

    # Its state

    def look(self) -> RunSnapshot:
        """Return the run and all its rules as they are now."""
        run = read_run(self._index, self.run)
        if run is None:
            raise RunUnknown(self.run)
        return run

    @property
    def record(self) -> RunRecord:
        """The record of the run in the step index."""
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
        """Return the status of each rule, with its reason."""
        return self.look().statuses

    def status(self, rule: str) -> RuleStatusOf:
        """Return the status of the rule with that name, id or class."""
        return _find_rule(self.look(), rule)

    def describe_rule_execution_jobs(self) -> Rows[dict[str, Any]]:
        """Return the statuses in the form of tornasole's method of that name."""
        return sagemaker_statuses.rule_execution_jobs(self.statuses())

    def debug_rule_evaluation_statuses(self) -> Rows[dict[str, Any]]:
        """Return the statuses as `describe_training_job()["DebugRuleEvaluationStatuses"]` has them."""
        run = self.look()
        return sagemaker_statuses.rule_evaluation_statuses(run.statuses, run.summary.first_seen)

    rule_job_summary = debug_rule_evaluation_statuses

    # Its history

    def findings(
        self, rule: str | None = None, since_step: int | None = None, limit: int | None = None
    ) -> Rows[FindingEvent]:
        """Return the findings in the order of steps; with `limit` the last ones."""
        if rule is not None:
            _find_rule(self.look(), rule)
        begin = f"{items.FINDING_PREFIX}{max(0, since_step or 0):012}#"
        found: list[FindingEvent] = []
        for item in self._newest_first(begin, items.FINDING_PREFIX + items.LAST):
            if limit is not None and len(found) >= limit:
                break
            finding = finding_event(items.finding_of(item))
            if rule is None or finding.is_of(rule):
                found.append(finding)
        found.reverse()
        return Rows(found, FindingEvent.columns, "No findings.")

    def actions(self, finding_id: str | None = None) -> Rows[ActionRecord]:
        """Return the outcomes of all actions, or of those that one finding requested."""
        first = items.ACTION_PREFIX + (f"{finding_id}#" if finding_id else "")
        found = self._index.query(items.run_pk(self.run), first=first, last=first + items.LAST)
        outcomes = [action_outcome(str(item.get("rule", "")), unpacked(item["body"])) for item in found]
        outcomes.sort(key=lambda outcome: outcome.at.timestamp() if outcome.at else 0.0)
        return Rows(outcomes, ActionRecord.columns, "No actions were requested.")

    def _newest_first(self, first: str, last: str) -> Iterator[Item]:
        pk = items.run_pk(self.run)
        while True:
            page = self._index.query(pk, first=first, last=last, limit=_PAGE, newest_first=True)
            yield from (item for item in page if item["sk"] != last)
            if len(page) < _PAGE:
                return
            last = page[-1]["sk"]  # the next page includes it once more, and it is skipped there

    def steps(self, first: int = 0, last: int | None = None) -> Rows[StepStatus]:
        """Return which workers have written each step, and whether the rules have evaluated it.

        If the training was resumed, these are the steps of the newest attempt.
        """
        run = self.look()
        prefix = items.steps_prefix(run.record.training_run)
        end = prefix if last is None else f"{prefix}{last:012}#"
        found = self._index.query(
            items.run_pk(self.run), first=f"{prefix}{max(0, first):012}#", last=end + items.LAST
        )
        return step_statuses(run, items.steps_of(found))

    def newest_step(self, training_run: int) -> int | None:
        """Return the last step of that attempt of which a file has arrived, with one query."""
        prefix = items.steps_prefix(training_run)
        found = self._index.query(
            items.run_pk(self.run),
            first=prefix,
            last=prefix + items.LAST,
            limit=1,
            newest_first=True,
        )
        return max((step.step for step in items.steps_of(found)), default=None)

    def logs(self, rule: str, since: datetime | timedelta | float | None = None) -> Rows[LogLine]:
        """Return the log lines of a rule on this run.

        `since` is a date, or how long ago; without it they begin when the run was first seen.
        """
        if self._logs is None:
            raise StackUnknown(
                self.location,
                "the log groups are not known: connect by the name of the stack, or with "
                "log_groups=[…] (SMDEBUG_LOG_GROUPS)",
            )
        run = self.look()
        status = _find_rule(run, rule)
        begin = _seconds(since, default=run.record.first_seen)
        found = self._logs.lines(self.run, tuple(dict.fromkeys([status.name, status.id])), begin)
        lines = sorted(found, key=lambda line: line.time.timestamp() if line.time else 0.0)
        return Rows(lines, LogLine.columns, f"No log lines of {status.name}.")

    def trial(self, **options: Any) -> Trial:
        """Open the run, to read its tensors."""
        from smdebug.trials.utils import create_trial

        return create_trial(self._open_run(self.run), **options)

    def wait(
        self,
        until: str | int | Condition = "finished",
        *,
        timeout: float | None = None,
        on_news: Callable[[News], Any] | None = None,
    ) -> RunSnapshot:
        """Wait until the run has finished, passing each change to `on_news`; return its last state.

        `until` may also be "found" (a rule has found something, or the run has finished), a step that
        every rule is to have evaluated, or a function of a snapshot. Raise `WaitedTooLong` after
        `timeout` seconds.
        """
        return wait_until(
            condition(until),
            self.look,
            location=self.location,
            clock=self._clock,
            timeout=timeout,
            on_news=on_news,
        )

    # Its rules

    def rules(self) -> tuple[RuleConfiguration, ...]:
        """Return the rules in the run's rules.json, or else those of the stack."""
        return self.attached_rules().read()

    def attach(self, rules: RequestedRules) -> tuple[RuleConfiguration, ...]:
        """Add these rules, which evaluate the run from its first step; return all its rules.

        A rule replaces another of the same name.
        """
        return self.attached_rules().add(rules)

    def detach(self, names: str | Iterable[str]) -> tuple[RuleConfiguration, ...]:
        """Remove these rules, by name; return the remaining ones."""
        return self.attached_rules().remove(names)

    def set_rules(self, rules: RequestedRules) -> tuple[RuleConfiguration, ...]:
        """Replace all rules of the run."""
        return self.attached_rules().replace(rules)

    def attached_rules(self) -> AttachedRules:
        """Return the rules beside the run, to read and to change."""
        return AttachedRules(self.location, self._open_run(self.run), lambda: self.configurations)

    # Its end

    def stop(self, reason: str = "no reason was given", *, stop_at_step: int | None = None) -> dict[str, Any]:
        """Ask the training to stop at its next saved step, or at `stop_at_step`.

        Return the content of the control file.
        """
        state = self.state
        if state in (RunState.ENDED, RunState.FINISHED):
            raise SMDebugRuntimeError(f"{self.location} is {state.value}: no training is left to stop")
        if stop_at_step is not None and stop_at_step < 0:
            raise SMDebugValueError(f"stop_at_step must be a step number, not {stop_at_step}")
        request = {"reason": reason, "finding_id": None, "stop_at_step": stop_at_step}
        self._open_run(self.run).write(STOP_KEY, json.dumps(request, ensure_ascii=False).encode())
        return request


def _find_rule(run: RunSnapshot, rule: str) -> RuleStatusOf:
    """The rule of that name or id; else the only one of that class."""
    named = [status for status in run.statuses if rule in (status.name, status.id)]
    of_class = [status for status in run.statuses if status.rule == rule]
    if named or len(of_class) == 1:
        return (named or of_class)[0]
    known = tuple(dict.fromkeys(status.name for status in run.statuses))
    raise RuleUnknown(rule, run.record.location, known, nearest_of(rule, known))


def _seconds(since: datetime | timedelta | float | None, *, default: float) -> float | None:
    """A time in seconds; numbers and timedeltas count back from now."""
    match since:
        case None:
            return default or None
        case datetime():
            return since.timestamp()
        case timedelta():
            return time.time() - since.total_seconds()
    return time.time() - float(since)
