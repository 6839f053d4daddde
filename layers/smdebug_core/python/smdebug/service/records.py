"""What the step index holds, as values: runs, their steps, the rules that watch them.

Values only: no table, no clock. `smdebug.service.items` says how each is written as an item of the
table, and the functions of the application decide what becomes of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

BUILT_IN = "builtin"  # the group of all built-in rules
LANE = "lane-"  # begins the name of a group in which one rule catches up
NOTHING_EVALUATED = -1


class RunState(StrEnum):
    """What is known of a run as a whole."""

    RUNNING = "Running"
    SILENT = "Silent"  # nothing has come for longer than it should
    ENDING = "Ending"  # its end was announced; the last files may be on their way
    ENDED = "Ended"  # everything has been seen, what is missing will not come
    FINISHED = "Finished"  # every rule has its last status, the summary is out


class RuleStatus(StrEnum):
    """The statuses of SageMaker's rule evaluations."""

    IN_PROGRESS = "InProgress"
    NO_ISSUES_FOUND = "NoIssuesFound"
    ISSUES_FOUND = "IssuesFound"
    ERROR = "Error"
    STOPPING = "Stopping"
    STOPPED = "Stopped"

    @property
    def is_final(self) -> bool:
        """Will the rule not look again?"""
        return self in (RuleStatus.ERROR, RuleStatus.STOPPED)


@dataclass(frozen=True)
class RuleConfiguration:
    """One rule as a run wants it: what is asked, of which steps, and what happens when it is met."""

    name: str
    rule: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    source: str | None = None  # s3://… of a custom rule; None for a built-in or a deployed one
    other_trials: tuple[str, ...] = ()
    start_step: int = 0
    end_step: int | None = None
    actions: tuple[Mapping[str, Any], ...] = ()
    repeat: str | None = None  # "every_step": publish again while the issue is open
    logging_level: str | None = None

    @cached_property
    def wants(self) -> str:
        """The digest of everything but the name."""
        from hashlib import sha256
        from json import dumps

        told = {key: value for key, value in self.to_dict().items() if key != "name"}
        return sha256(dumps(told, sort_keys=True).encode()).hexdigest()[:12]

    @cached_property
    def id(self) -> str:
        """The same for the same configuration, and another one for any other."""
        return f"{self.name}-{self.wants}"

    def to_dict(self) -> dict[str, Any]:
        """As `rules.json` has it; what is left at its default is left out."""
        told: dict[str, Any] = {
            "name": self.name,
            "rule": self.rule,
            "parameters": dict(self.parameters),
            "source": self.source,
            "other_trials": list(self.other_trials),
            "start_step": self.start_step,
            "end_step": self.end_step,
            "actions": [dict(action) for action in self.actions],
            "repeat": self.repeat,
            "logging_level": self.logging_level,
        }
        always = {"name", "rule"}
        return {key: value for key, value in told.items() if key in always or value not in _EMPTY}


_EMPTY: tuple[Any, ...] = (None, {}, [], 0)

RequestedRule = str | RuleConfiguration | Mapping[str, Any]
"""The name of a built-in rule, a configuration, or an entry as rules.json has it."""


@dataclass(frozen=True)
class RunRecord:
    """What is known of one run."""

    run: str  # bucket/prefix
    num_workers: int | None = None  # until a collections file has come
    wide: bool = False  # more workers than one item of a step holds
    run_id: str | None = None  # runs of the old library have none
    training_run: int = 0  # 1, 2, … after resuming from a checkpoint
    training_base: int = 0  # what to add to the number the files tell: another run was here before
    attempt_began: float = 0.0  # when that attempt wrote its collections; 0: it is the first
    attempt_noted: float = 0.0  # and when they were noted here
    state: RunState = RunState.RUNNING
    groups: tuple[str, ...] = ()  # of rules, each evaluated by itself
    job: str | None = None  # the SageMaker training job, if it is one
    first_seen: float = 0.0
    ended_at: float | None = None
    check_until: float = 0.0  # a check is waiting in the queue until then
    rules_version: str = ""  # the S3 sequencer of the rules.json that counts
    collections_version: str = ""  # the sequencer of the collections file that counts
    collections_worker: str = ""  # whose it is: all workers write the same, one is read
    collections_uploaded: float = 0.0  # when that was written, by S3's clock
    troubles: Mapping[str, str] = field(default_factory=dict)  # about what: what is wrong with it
    summary: str = ""  # the digest of the last summary that was told
    progress: str = ""  # how far the rules were when an ended run was checked last
    in_vain: int = 0  # checks of it since then that found them no further
    outbox: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    version: int = 0  # of this record: who changes it says which one was read

    @property
    def location(self) -> str:
        return f"s3://{self.run}"

    @property
    def trouble(self) -> str:
        """What is wrong with the run's files now, for a person."""
        return "\n".join(self.troubles.values())

    def with_trouble(self, about: str, problem: str) -> RunRecord:
        """The run with that problem in place of what was wrong in this respect; "" if it is right now."""
        others = {key: value for key, value in self.troubles.items() if key != about}
        return replace(self, troubles={**others, about: problem} if problem else others)

    @property
    def tells_previous_steps(self) -> bool:
        """Does each index file say which step its worker saved before?"""
        return self.run_id is not None

    @property
    def has_ended(self) -> bool:
        return self.state in (RunState.ENDED, RunState.FINISHED)


@dataclass(frozen=True)
class StepRecord:
    """Who has written what of one step, and once it was evaluated, what it holds."""

    step: int
    training_run: int = 0
    with_event: frozenset[str] = frozenset()  # workers whose event file is there
    with_index: frozenset[str] = frozenset()
    uploaded: float = 0.0  # when the last file reached S3, as S3 says
    indexed: float = 0.0  # when that was noted here
    mode: str | None = None
    mode_step: int | None = None
    layout: str | None = None  # the digest of its tensors' names
    evaluated_by: frozenset[str] = frozenset()  # groups; kept for runs of the old library

    @property
    def complete_workers(self) -> frozenset[str]:
        return self.with_event & self.with_index

    def is_complete(self, num_workers: int | None) -> bool:
        """Has every worker written both its files?"""
        return num_workers is not None and len(self.complete_workers) >= num_workers


@dataclass(frozen=True)
class RuleRecord:
    """How far one rule has come on one run, and what it thinks."""

    id: str
    name: str
    status: RuleStatus = RuleStatus.IN_PROGRESS
    reason: str = ""  # why the status is what it is
    issue_since: int | None = None  # the step at which the open issue began; None: none is open
    last_found: int | None = None
    last_good: int | None = None  # the last step that was clear
    changed_at: float = 0.0  # when the status last changed
    catch_up_through: int = NOTHING_EVALUATED  # steps up to here came before the rule was attached
    state: bytes = b""
    state_key: str = ""  # where a larger state is kept
    outcomes: tuple[Mapping[str, Any], ...] = ()  # what became of its last actions
    source_digest: str = ""  # of a custom rule's code: a run keeps to what it began with
    asks_at_end: bool = False  # a custom rule that has something to say at the end of a run
    died_at: int | None = None  # the step at which a custom rule's function died last
    deaths: int = 0  # and how often it did, there

    @property
    def has_open_issue(self) -> bool:
        return self.issue_since is not None


@dataclass(frozen=True)
class GroupRecord:
    """The rules of a run that are evaluated together, and who holds them at the moment."""

    group: str
    token: int = 0  # rises with every lease: an older holder's commit is refused
    lease_until: float = 0.0
    deaths: int = 0  # leases in a row that ended without a commit
    training_run: int = 0
    cursor: int = NOTHING_EVALUATED  # every due step up to here was evaluated
    rules: tuple[RuleRecord, ...] = ()
    passed: frozenset[int] = frozenset()  # steps below the cursor that were given up, not evaluated
    gaps: tuple[tuple[int, int], ...] = ()  # between these nobody could tell what was given up
    late_done: frozenset[int] = frozenset()  # those of them that came after all and were evaluated
    alone: tuple[
        str, ...
    ] = ()  # after two deaths: the rules that were tried alone at the next step
    finished: bool = False  # every rule has its last status
    outbox: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def gave_up(self, step: int) -> bool:
        """Was the step passed over, as far as one knew of it at all?"""
        return step in self.passed or any(first < step < last for first, last in self.gaps)

    def rule(self, id: str) -> RuleRecord:
        return next(rule for rule in self.rules if rule.id == id)

    def with_rule(self, changed: RuleRecord) -> GroupRecord:
        rules = tuple(changed if rule.id == changed.id else rule for rule in self.rules)
        return replace(self, rules=rules)


@dataclass(frozen=True)
class Layout:
    """The names of the tensors that some steps hold, and where it was first seen."""

    digest: str
    names: tuple[str, ...]
    mode: str
    first_step: int
    workers: tuple[str, ...] = ()
