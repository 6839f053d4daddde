"""The records of the step index: runs, their steps, the rules that watch them.

Values only, without table or clock. `smdebug.service.step_index.items` stores them in the table, and the
deployed functions decide how they change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

REFUSED = "location"  # the subject of why a place is not watched as a run
BUILT_IN = "builtin"  # the group of all built-in rules
LANE = "lane-"  # begins the name of a group in which one rule catches up
NOTHING_EVALUATED = -1
STOP_TRAINING, SMS, EMAIL, ZOOM_IN = "stoptraining", "sms", "email", "zoomin"
ACTIONS = (STOP_TRAINING, SMS, EMAIL, ZOOM_IN)  # the names of the actions that a rule can request


class RunState(StrEnum):
    """The state of a run as a whole."""

    RUNNING = "Running"
    SILENT = "Silent"  # no file has arrived for longer than expected
    ENDING = "Ending"  # its end was announced; the last files may still arrive
    ENDED = "Ended"  # all files have arrived; missing ones will not
    FINISHED = "Finished"  # every rule has its final status, the summary was sent


class RuleStatus(StrEnum):
    """The statuses of SageMaker's rule evaluations, and one more."""

    IN_PROGRESS = "InProgress"
    NO_ISSUES_FOUND = "NoIssuesFound"
    NOT_CHECKED = "NotChecked"  # no step held anything for the rule; to SageMaker it found no issues
    ISSUES_FOUND = "IssuesFound"
    ERROR = "Error"
    STOPPING = "Stopping"
    STOPPED = "Stopped"

    @property
    def is_final(self) -> bool:
        """Whether the rule will evaluate no more steps."""
        return self in (RuleStatus.ERROR, RuleStatus.STOPPED)

    @property
    def of_sagemaker(self) -> str:
        """The status by which SageMaker's own readers know it."""
        is_ours = self is RuleStatus.NOT_CHECKED
        return RuleStatus.NO_ISSUES_FOUND.value if is_ours else self.value


class RunVerdict(StrEnum):
    """The result of a finished run. Without evidence for every due step there is no good one."""

    # Every rule has evaluated every due step, and some checked it.
    NO_ISSUES_FOUND = "NoIssuesFound"
    ISSUES_FOUND = "IssuesFound"
    ERROR = "Error"  # a rule failed, and no other found an issue
    INCOMPLETE = "Incomplete"  # nothing was found, and some due step was not evaluated as a whole
    NOT_CHECKED = "NotChecked"  # every due step was evaluated, and no rule had anything to check


@dataclass(frozen=True)
class RuleConfiguration:
    """One rule of a run: its parameters, its range of steps, and the actions of its findings."""

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
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False)  # fields of a newer release, kept

    @cached_property
    def wants(self) -> str:
        """The digest of everything but the name."""
        from hashlib import sha256
        from json import dumps

        settings = {key: value for key, value in self.to_dict().items() if key != "name"}
        return sha256(dumps(settings, sort_keys=True).encode()).hexdigest()[:12]

    @cached_property
    def id(self) -> str:
        """Equal for equal configurations, different for others."""
        return f"{self.name}-{self.wants}"

    def to_dict(self) -> dict[str, Any]:
        """As `rules.json` has it, without defaults."""
        content: dict[str, Any] = {
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
        known = {key: value for key, value in content.items() if key in always or value not in _EMPTY}
        return {**known, **self.unknown}


_EMPTY: tuple[Any, ...] = (None, {}, [], 0)

RequestedRule = str | RuleConfiguration | Mapping[str, Any]
"""The name of a built-in rule, a configuration, or an entry as rules.json has it."""


@dataclass(frozen=True)
class RunRecord:
    """One run."""

    run: str  # bucket/prefix
    num_workers: int | None = None  # None until a collections file arrives
    chief: str = ""  # the worker whose files complete a step, if the others save digests alone
    wide: bool = False  # more workers than one item of a step holds
    run_id: str | None = None  # runs of the old library have none
    training_run: int = 0  # 1, 2, … after resuming from a checkpoint
    training_base: int = 0  # added to the number in the files, if another run was here before
    attempt_began: float = 0.0  # when that attempt wrote its collections; 0: it is the first
    attempt_noted: float = 0.0  # and when they were recorded here
    attempt_starts: Mapping[str, int] = field(default_factory=dict)  # first steps, by attempt
    state: RunState = RunState.RUNNING
    groups: tuple[str, ...] = ()  # of rules; each is evaluated separately
    job: str | None = None  # the SageMaker training job, if it is one
    first_seen: float = 0.0
    ended_at: float | None = None
    check_until: float = 0.0  # a check is due then
    listed_at: float = 0.0  # when its files were last listed
    listed_through: str = ""  # a listing at its end continues after this key
    rules_version: str = ""  # the S3 sequencer of the current rules.json
    collections_version: str = ""  # the sequencer of the current collections file
    collections_worker: str = ""  # the worker whose file is read; all write the same
    collections_uploaded: float = 0.0  # when it was written, by S3's clock
    troubles: Mapping[str, str] = field(default_factory=dict)  # subject: problem
    summary: str = ""  # the digest of the last published summary
    verdict: str = ""  # in that summary: a `RunVerdict`
    progress: str = ""  # of the rules at the last check of an ended run
    in_vain: int = 0  # checks since then without progress
    outbox: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    expires: int | None = None  # when the table may delete it: only of a finished run
    version: int = 0  # of this record; a change names the version it has read
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False)  # fields of a newer release, kept

    @property
    def location(self) -> str:
        return f"s3://{self.run}"

    @property
    def trouble(self) -> str:
        """The current problems of the run's files, as text."""
        return "\n".join(self.troubles.values())

    def with_trouble(self, about: str, problem: str) -> RunRecord:
        """The run with this problem in place of any other about the same subject; "" removes it."""
        others = {key: value for key, value in self.troubles.items() if key != about}
        return replace(self, troubles={**others, about: problem} if problem else others)

    @property
    def is_refused(self) -> bool:
        """Whether this place may not be a run: nothing of it is read or evaluated."""
        return REFUSED in self.troubles

    @property
    def records_previous_steps(self) -> bool:
        """Whether each index file names the step that its worker saved before."""
        return self.run_id is not None

    def is_whole(self, step: StepRecord) -> bool:
        """Whether all has arrived that the step waits for."""
        return step.is_complete(self.num_workers, self.chief)

    @property
    def has_ended(self) -> bool:
        return self.state in (RunState.ENDED, RunState.FINISHED)

    @property
    def is_ending(self) -> bool:
        """Whether its end was announced; its last files may still arrive."""
        return self.state is RunState.ENDING or self.has_ended


@dataclass(frozen=True)
class StepRecord:
    """The workers that have written one step, and its contents once evaluated."""

    step: int
    training_run: int = 0
    with_event: frozenset[str] = frozenset()  # workers whose event file is there
    with_index: frozenset[str] = frozenset()
    uploaded: float = 0.0  # when the last file reached S3, by its clock
    indexed: float = 0.0  # when that was recorded here
    mode: str | None = None
    mode_step: int | None = None
    layout: str | None = None  # the digest of its tensors' names
    evaluated_by: frozenset[str] = frozenset()  # groups; recorded for runs of the old library

    @property
    def complete_workers(self) -> frozenset[str]:
        return self.with_event & self.with_index

    def is_complete(self, num_workers: int | None, chief: str = "") -> bool:
        """Whether every worker has written both its files; where there is a chief, whether it has."""
        if chief and num_workers is not None:
            return chief in self.complete_workers
        return num_workers is not None and len(self.complete_workers) >= num_workers


@dataclass(frozen=True)
class RuleRecord:
    """The progress, status and state of one rule on one run."""

    id: str
    name: str
    status: RuleStatus = RuleStatus.IN_PROGRESS
    reason: str = ""  # of the status
    issue_since: int | None = None  # the step at which the open issue began; None: none is open
    issue_id: str = ""  # of the open issue; rules whose findings have one cause share it
    issue_role: str = ""  # of this rule in it: "cause" or "symptom"
    evidence: tuple[Mapping[str, Any], ...] = ()  # of the open issue: cause, what, since, places
    last_found: int | None = None
    last_good: int | None = None  # the last step without a finding
    changed_at: float = 0.0  # when the status last changed
    catch_up_through: int = NOTHING_EVALUATED  # the steps up to here are older than the rule
    state: bytes = b""
    state_key: str = ""  # the object with a larger state
    outcomes: tuple[Mapping[str, Any], ...] = ()  # of its last actions
    source_digest: str = ""  # of a custom rule's code, which a run never changes
    asks_at_end: bool = False  # whether a custom rule evaluates the end of a run
    died_at: int | None = None  # the last step at which a custom rule's function died
    deaths: int = 0  # the number of times it died there
    # Due steps that it had not evaluated when the run ended: Stopped until they come.
    unseen: int = 0
    out_of_budget: bool = False  # Stopped as the run's budget for custom rules was spent
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False)  # fields of a newer release, kept

    @property
    def is_over(self) -> bool:
        """Whether the rule evaluates no more steps, even if more of them arrive."""
        return self.status.is_final and not self.unseen

    @property
    def has_open_issue(self) -> bool:
        return self.issue_since is not None


@dataclass(frozen=True)
class GroupRecord:
    """The rules of a run that are evaluated together, and their current lease."""

    group: str
    token: int = 0  # rises with every lease; commits with an older one are refused
    lease_until: float = 0.0
    deaths: int = 0  # consecutive leases without a commit
    training_run: int = 0
    cursor: int = NOTHING_EVALUATED  # every due step up to here was evaluated
    rules: tuple[RuleRecord, ...] = ()
    passed: frozenset[int] = frozenset()  # steps below the cursor that were given up
    gaps: tuple[tuple[int, int], ...] = ()  # ranges in which skipped steps are unknown
    late_done: frozenset[int] = frozenset()  # given-up steps that arrived later and were evaluated
    lost: frozenset[int] = frozenset()  # steps that a worker has saved and that were not evaluated
    forgotten: int = 0  # the number of lost steps that are too many to be kept
    evaluated: int = 0  # the number of steps evaluated as a whole
    partly: int = 0  # and of those of which some workers' values were missing
    checked: int = NOTHING_EVALUATED  # at the end of a run, late steps were looked for up to here
    alone: tuple[str, ...] = ()  # after two deaths: the rules that were tried alone at the next step
    finished: bool = False  # every rule has its final status
    outbox: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False)  # fields of a newer release, kept

    @property
    def not_evaluated(self) -> int:
        """The number of due steps that were not evaluated, as far as they are known."""
        return len(self.lost) + self.forgotten

    @property
    def unseen(self) -> int:
        """The number of due steps that were not evaluated as a whole."""
        return self.not_evaluated + self.partly

    def gave_up(self, step: int) -> bool:
        """Whether the step was given up, as far as it was known."""
        return step in self.passed or any(first < step < last for first, last in self.gaps)

    def rule(self, id: str) -> RuleRecord:
        return next(rule for rule in self.rules if rule.id == id)

    def with_rule(self, changed: RuleRecord) -> GroupRecord:
        rules = tuple(changed if rule.id == changed.id else rule for rule in self.rules)
        return replace(self, rules=rules)


@dataclass(frozen=True)
class StepLayout:
    """The names of the tensors in some steps, and the first of these steps."""

    digest: str
    names: tuple[str, ...]
    mode: str
    first_step: int
    workers: tuple[str, ...] = ()
