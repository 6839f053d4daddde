"""What commands answer about a deployed debugger, a job of SageMaker, and this machine."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict


class WatchedRun(TypedDict):
    """A run, as the deployed debugger knows it."""

    run: str
    state: str
    first_seen: str
    ended_at: str | None
    job: str | None
    workers: int
    evaluated_through: int | None
    rules: Annotated[dict[str, int], "how many have each status"]
    open_issues: int
    trouble: str
    verdict: str | None


class RuleStatus(TypedDict):
    """The status of a rule on a watched run."""

    name: str
    rule: str
    status: str
    reason: str
    issue_since: int | None
    last_found: int | None
    last_good: int | None
    evaluated_through: int | None
    catching_up: bool
    attached: bool
    changed_at: str | None
    parameters: dict[str, Any]
    id: str
    group: str


class RunStatus(TypedDict):
    """A watched run, with the status of each rule."""

    run: str
    state: str
    summary: WatchedRun
    statuses: list[RuleStatus]


class NewsItem(TypedDict):
    """What has changed in a watched run."""

    what: Literal["state", "status", "issue", "evaluated", "trouble"]
    text: str
    rule: str | None


class RuleReference(TypedDict):
    """The configuration of the rule of an event."""

    id: str
    name: str
    parameters: dict[str, Any]


class Evidence(TypedDict):
    """What an event rests on."""

    count: int
    worst: list[dict[str, Any]]
    rest: NotRequired[Annotated[str | None, "where the others are stored"]]


class FindingEvent(TypedDict):
    """A finding, as the event on the bus has it: docs/events.md lists the names that are not here."""

    id: str
    run: str
    rule: str
    configuration: RuleReference
    step: int
    mode: str | None
    reason: str
    evidence: Evidence
    last_good_step: int | None


class AttachedRule(TypedDict):
    """A rule of a run, as its `rules.json` has it; what is not set is left out."""

    name: str
    rule: str
    parameters: NotRequired[dict[str, Any]]
    source: NotRequired[str]
    other_trials: NotRequired[list[str]]
    start_step: NotRequired[int]
    end_step: NotRequired[int]
    actions: NotRequired[list[dict[str, Any]]]
    repeat: NotRequired[str]
    logging_level: NotRequired[str]


class LogLine(TypedDict):
    """A line that a rule logged."""

    time: str
    message: str
    level: str
    step: int | None
    rule: str
    fields: Annotated[dict[str, Any], "the line as it stands in the log"]


class PolicyStatements(TypedDict):
    """An IAM policy."""

    Version: str
    Statement: list[dict[str, Any]]


class Policies(TypedDict):
    """The policies of a training's role."""

    policy: Annotated[PolicyStatements, "what it may do"]
    trust: Annotated[PolicyStatements, "who may take it"]


class ConvertedJob(TypedDict):
    """The files made of a SageMaker job's configuration."""

    job: str
    files: list[str]
    rules: list[str]
    notes: Annotated[list[str], "what has no counterpart"]


class ScannedLine(TypedDict):
    """A line of code that uses SageMaker Debugger."""

    file: str
    cell: Annotated[int | None, "of a notebook"]
    line: int
    verdict: Literal["works", "changes", "unclear", "unreadable"]
    code: str
    message: str
    replacement: str


class Conversion(TypedDict):
    """The files made of an estimator's configuration."""

    file: str
    cell: int | None
    line: int
    written: list[str]
    notes: list[str]


class Migration(TypedDict):
    """What changes in code for SageMaker Debugger."""

    files: list[str]
    counts: dict[str, int]
    findings: list[ScannedLine]
    conversions: list[Conversion]


class Check(TypedDict):
    """A thing that was checked on this machine or in the account."""

    what: str
    state: Annotated[str, "`wrong` for what must be mended"]
    found: str
    hint: str


class Serving(TypedDict):
    """A server of this machine has begun."""

    address: str
    port: int
    token: NotRequired[Annotated[str, "the secret that a client sends"]]


class LocalStack(TypedDict):
    """The stack of this machine has begun."""

    endpoint: str
    bucket: str
    environment: Annotated[dict[str, str], "variables for the training"]
    stop_queues: Annotated[dict[str, str], "the addresses of the queues of this setting, by name"]
    export_queues: Annotated[dict[str, str], "the addresses of the queues of this setting, by name"]


class StoppedBy(TypedDict):
    """The action that stopped a training of the demo."""

    action: str
    rule: str
    step: int
    how: str


class DemoRule(TypedDict):
    """The status of a rule in the demo."""

    name: str
    status: str
    reason: str


class SecondsAfterUpload(TypedDict, total=False):
    """How long after the upload of a step each of these was done, as far as it is known."""

    indexed: float
    evaluated: float
    published: float


class DemoFinding(TypedDict):
    """A finding of the demo."""

    id: str
    step: int
    rule: str
    messages: list[str]
    diagnosis: Any
    seconds_after_upload: SecondsAfterUpload


class DemoRun(TypedDict):
    """A training of the demo."""

    name: str
    path: str
    steps: Annotated[list[int], "those evaluated"]
    steps_planned: int
    ended: str
    stopped_by: list[StoppedBy]
    rules: list[DemoRule]
    findings: list[DemoFinding]
    alerts: list[Any]
    report: str | None


class Demo(TypedDict):
    """What the demo saw."""

    as_it_should_be: bool
    seconds: float
    summary: Annotated[str, "a file"]
    kept: Annotated[str | None, "the folder of the runs"]
    runs: list[DemoRun]


class WatchedTrainings(TypedDict):
    """The runs that a script saved: `smdebug run --json FILE` writes them to a file."""

    runs: list[str]


class Completion(TypedDict):
    """The script that completes commands in a shell."""

    shell: str
    script: str
