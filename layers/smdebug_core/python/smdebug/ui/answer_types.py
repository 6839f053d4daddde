"""The forms of the server's answers; OpenAPI's schemas and the types of the page's scripts are made of them.

It is long because it lists every form.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class DeployedAnswer(TypedDict):
    """What the table of a deployed debugger has about a run."""

    state: str
    verdict: str | None
    evaluated_through: int | None
    open_issues: int
    rules: dict[str, int]
    job: str | None
    trouble: str


class StatusAnswer(TypedDict):
    """The status of a rule that a deployed debugger evaluates."""

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
    parameters: dict[str, str]


class DeployedRunAnswer(DeployedAnswer):
    """The same, with the status of each rule."""

    statuses: list[StatusAnswer]


class RowAnswer(TypedDict):
    """One run in the list."""

    id: str
    name: str
    path: str
    state: str
    error: str
    note: str
    steps: int
    last_step: int | None
    training_step: int | None
    first_saved: float | None
    last_saved: float | None
    duration: float | None
    workers: int
    loss_name: str
    loss: float | None
    curve: list[float | None]
    issues: int | None
    issue: str
    since: int | None
    checked: int
    passed: int | None
    missing: str
    check: str
    configuration: dict[str, Any]
    metrics: dict[str, float | None]
    cost: float | None
    cost_title: str
    deployed: DeployedAnswer | None


class Runs(TypedDict):
    """The list of runs. While `looking`, a place was not listed yet."""

    version: int
    looking: bool
    places: list[str]
    runs: list[RowAnswer]
    errors: list[str]


class IssueAnswer(TypedDict):
    """A problem: its parts in words, and in `parts` with labels."""

    rules: list[str]
    since: int
    headline: str
    sentence: str
    where: list[str]
    parts: list[list[Any]]


class FoundAnswer(TypedDict):
    """What a rule found at a step: the worst finding, and how many there are."""

    step: int
    text: str
    count: int
    tensors: list[str]


class RuleAnswer(TypedDict):
    """The result of a rule so far: `waiting`, `passed`, `found`, `failed`, `not checked`."""

    name: str
    rule: str
    state: str
    sentence: str
    detects: str
    seconds: float | None
    parameters: dict[str, Any]
    steps_found: list[int]
    found: list[FoundAnswer]


class LogLine(TypedDict):
    """A finding."""

    step: int
    mode: str | None
    rule: str
    message: str
    tensor: str


class LogAnswer(TypedDict):
    """What the rules reported."""

    total: int
    lines: list[LogLine]


class VerdictAnswer(TypedDict):
    """What the rules found, and their log."""

    rules: list[RuleAnswer]
    log: LogAnswer


class SeriesName(TypedDict):
    """A scalar, how many values it has, and the modes in which it has them.

    `is_tensor` is whether it is a tensor of one element, which has a row in a heat map, too.
    """

    name: str
    count: int
    modes: list[str]
    is_tensor: bool


class KindAnswer(TypedDict):
    """A kind of tensors; `joined` saved steps share a column of the heat map."""

    name: str
    tensors: int
    joined: int


class NamedTensor(TypedDict):
    """A tensor that a finding names, or that was saved whole on request."""

    kind: str
    name: str


class RunAnswer(TypedDict):
    """One run: its progress, its diagnosis, and what it holds. While `listing`, there are more steps.

    Its axes besides steps are lines through points: `training_steps` at steps, seconds at steps in `times`,
    and in `epochs` how many are over at training steps. Without those, `no_epochs` says why.
    """

    id: str
    name: str
    path: str
    version: int
    state: str
    error: str
    notes: list[str]
    steps: int
    listing: bool
    steps_read: int
    steps_checked: int
    first_step: int | None
    last_step: int | None
    first_saved: float | None
    last_saved: float | None
    duration: float | None
    workers: list[str]
    issues: list[IssueAnswer]
    rules: list[RuleAnswer]
    series: list[SeriesName]
    training_steps: list[tuple[int, int]]
    epochs: list[tuple[int, float]]
    no_epochs: str
    times: list[tuple[int, float]]
    kinds: list[KindAnswer]
    statistics: list[str]
    missing: str
    modes: list[list[Any]]
    damaged: list[list[str]]
    configuration: dict[str, Any]
    cost: float | None
    cost_title: str
    named: list[NamedTensor]
    deployed: DeployedRunAnswer | None


class BestAnswer(TypedDict):
    """The best value of a scalar, with its training step and its epoch, from 1 on."""

    value: float
    is_highest: bool
    step: int
    epoch: int | None


class SeriesAnswer(TypedDict):
    """A scalar over a window of steps: each part with its extremes.

    Of one mode, `training_steps` are those that the parts begin at. `epoch_means` has the mean of each epoch.
    """

    name: str
    first: list[int]
    last: list[int]
    low: list[float | None]
    high: list[float | None]
    not_finite: list[int]
    exact: bool
    total: int
    training_steps: list[int] | None
    best: BestAnswer | None
    epoch_means: list[tuple[int, float | None]]


class RowsAnswer(TypedDict):
    """The rows of a kind's heat map. If they are `folded`, a row has all tensors of a module."""

    names: list[str]
    tensors: int
    folded: bool


class MembersAnswer(TypedDict):
    """A page of the tensors that share a row."""

    names: list[str]
    total: int


class HistoryAnswer(TypedDict):
    """Every statistic of a tensor: each column is a stretch of steps with its extremes."""

    name: str
    kind: str
    first: list[int]
    last: list[int]
    exact: bool
    low: dict[str, list[float | None]]
    high: dict[str, list[float | None]]


class SampleAnswer(TypedDict):
    """A histogram of sampled values."""

    count: int
    counts: list[int]
    edges: list[float | None]


class ValuesAnswer(TypedDict):
    """The first rows and columns of a tensor that was saved whole."""

    shape: list[int]
    dtype: str
    rows: list[list[float | None]]


class AtStepAnswer(TypedDict):
    """What a step has of a tensor."""

    step: int
    name: str
    workers: dict[str, dict[str, float | None]]
    sample: SampleAnswer | None
    values: ValuesAnswer | None


class NumbersAnswer(TypedDict):
    """Every statistic of a kind's tensors where each was measured last, with the extremes of joined steps."""

    names: list[str]
    shapes: list[str]
    first: list[int | None]
    last: list[int | None]
    low: dict[str, list[float | None]]
    high: dict[str, list[float | None]]


class InputAnswer(TypedDict):
    """The content of an input at the step of a finding: pictures as data URIs, or rows of text."""

    name: str
    step: int
    shape: list[int]
    rules: list[str]
    pictures: list[str]
    texts: list[str]


class SpreadAnswer(TypedDict):
    """How much the workers' mean magnitude of a tensor differs, relative to their mean."""

    name: str
    steps: list[int]
    spread: list[float | None]


class LatencyAnswer(TypedDict):
    """The seconds that a stage took from saving to publishing."""

    stage: str
    median: float
    p99: float


class AboutAnswer(TypedDict):
    """What reading a whole run tells: its size and origin, inputs in findings, how workers differ, costs."""

    facts: list[list[str]]
    origin: list[list[str]]
    waiting: float | None
    inputs: list[InputAnswer]
    unsaved_inputs: list[str]
    spread: list[SpreadAnswer]
    cost: str
    cost_basis: str
    latency: list[LatencyAnswer]


class LoggedValueAnswer(TypedDict):
    """A value that was logged to be looked at."""

    worker: str
    number: int
    name: str
    kind: str
    step: int
    mode: str
    bytes: int
    caption: str
    note: str
    shape: list[int]


class LoggedAnswer(TypedDict):
    """What was logged to be looked at, in the order of steps; a report has `omitted` some."""

    values: list[LoggedValueAnswer]
    left_out: dict[str, int]
    omitted: int
    problem: str


class LoggedContentAnswer(TypedDict):
    """A logged text, table, confusion matrix or histogram: what its kind has."""

    text: NotRequired[str]
    columns: NotRequired[list[str]]
    rows: NotRequired[list[list[Any]]]
    classes: NotRequired[list[str]]
    counts: NotRequired[list[Any]]
    edges: NotRequired[list[float]]
    not_finite: NotRequired[int]


class FactsAnswer(TypedDict):
    """Changes of what was true of the steps: step, name, value."""

    changes: list[list[Any]]


class RanksAnswer(TypedDict):
    """The state of each worker at each step: 0 as most workers, 1 different, 2 absent."""

    workers: list[str]
    steps: list[int]
    state: list[list[int]]


class DivergenceAnswer(TypedDict):
    """The first step and tensor whose statistics differ."""

    step: int
    kind: str
    tensor: str
    rms: list[float | None]


class ComparedRun(TypedDict):
    """One of the compared runs."""

    id: str
    name: str
    ready: bool
    error: str
    steps: int
    issues: list[IssueAnswer]
    checked: int
    passed: int
    missing: str
    series: list[SeriesName]
    training_steps: list[tuple[int, int]]
    epochs: list[tuple[int, float]]
    no_epochs: str
    times: list[tuple[int, float]]
    configuration: dict[str, Any]
    divergence: DivergenceAnswer | None


class DifferenceAnswer(TypedDict):
    """A parameter, with its value in each run."""

    name: str
    values: list[Any]


class ComparedCollection(TypedDict):
    """How the values of a collection differ between two runs; `largest` is the largest |a − b|."""

    name: str
    tensors: int
    tensors_different: int
    compared: int
    different: int
    first_step: int | None
    largest: float | None


class ComparedValues(TypedDict):
    """Two runs compared value by value, which only a report does."""

    outcome: str
    configuration: list[DifferenceAnswer]
    collections: list[ComparedCollection]


class ComparisonAnswer(TypedDict):
    """Several runs, compared with the first of them."""

    runs: list[ComparedRun]
    configuration: list[DifferenceAnswer]
    series: list[str]
    values: ComparedValues | None


class RuleOfRun(TypedDict):
    """A rule that checks a run."""

    name: str
    rule: str
    parameters: dict[str, Any]


class KnownRule(TypedDict):
    """A built-in rule, with what it detects."""

    name: str
    sentence: str


class RulesAnswer(TypedDict):
    """The rules of a run, and those that can be attached or evaluated."""

    attached: list[RuleOfRun]
    built_in: list[KnownRule]
    in_file: list[str]


class AttachedAnswer(TypedDict):
    """The rules of a run after a change."""

    attached: list[RuleOfRun]


class ZoomAnswer(TypedDict):
    """The known tensors that a request to zoom in selects."""

    matching: list[str]
    count: int


class StopRequest(TypedDict):
    """The content of the control file."""

    reason: str
    finding_id: str | None
    stop_at_step: int | None
    run_id: NotRequired[str]
    training_run: NotRequired[int]


class StopAnswer(TypedDict):
    """A stop that was requested."""

    requested: StopRequest


class EvaluatedAnswer(TypedDict):
    """The result of a rule that was evaluated."""

    rule: RuleAnswer
    log: LogAnswer


class ZoomBody(TypedDict):
    """Patterns of tensors to save whole."""

    tensors: list[str]
    steps: NotRequired[int]
    reason: NotRequired[str]


class StopBody(TypedDict):
    """Why the training is to stop."""

    reason: NotRequired[str]


class AnnotateBody(TypedDict):
    """What changes of a run's tags, note and pin, and the version that was read."""

    version: str
    tags: NotRequired[list[str]]
    note: NotRequired[str]
    pinned: NotRequired[bool]
    group: NotRequired[str]


class AnnotationsAnswer(TypedDict):
    """What people have written about a run."""

    tags: list[str]
    note: str
    pinned: bool
    version: str
    group: str | None


class AttachBody(TypedDict):
    """Names of built-in rules, or entries of rules.json."""

    rules: list[Any]


class DetachBody(TypedDict):
    """Names of the rules to remove."""

    rules: list[str]


class EvaluateBody(TypedDict):
    """A rule and its parameters."""

    rule: str
    parameters: NotRequired[dict[str, Any]]
