"""What commands answer about rules."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from smdebug.cli.json_answers.parts import Issue, LeftOut


class Finding(TypedDict):
    """The evidence for a problem that a rule found: `message` is always there."""

    message: str
    tensor: NotRequired[str]
    statistic: NotRequired[str]
    value: NotRequired[Annotated[Any, "a number, unless the rule is a custom one"]]
    threshold: NotRequired[Annotated[Any, "the limit that it was compared with"]]
    worker: NotRequired[str]
    step: NotRequired[int]
    cause: NotRequired[str]
    since: NotRequired[int]
    title: NotRequired[str]
    why: NotRequired[list[str]]
    advice: NotRequired[list[str]]
    details: NotRequired[dict[str, Any]]


class FoundAtStep(TypedDict):
    """What a rule found at a step."""

    step: int
    mode: str | None
    mode_step: int | None
    count: int
    findings: Annotated[list[Finding], "the first of them"]


class RuleOutcome(TypedDict):
    """What a rule says of a run."""

    name: str
    rule: str
    parameters: dict[str, Any]
    status: str
    looked: Annotated[int, "steps at which there was something to check"]
    without_data: Annotated[int, "steps at which there was nothing to check"]
    first_step: int | None
    last_step: int | None
    steps_found: list[int]
    found: list[FoundAtStep]
    error: str | None
    not_checked: Annotated[str | None, "why nothing was checked"]
    damaged_steps: int
    seconds: float
    processes: int
    issues: Annotated[list[Issue], "those that it found, or of which it found a symptom"]
    left_out: list[LeftOut]


class Gate(TypedDict):
    """Whether a run may pass."""

    path: str
    outcome: str
    reason: str
    exit_code: int
    ended: bool
    last_step: int | None
    saved_at: str | None
    age_seconds: float | None
    max_age_seconds: float | None
    issues: list[Issue]
    passed: Annotated[list[str], "rules"]
    not_checked: Annotated[dict[str, str], "why, by the rule's name"]
    failed: Annotated[dict[str, str], "the error, by the rule's name"]
    left_out: list[LeftOut]


class Parameter(TypedDict):
    """A parameter of a rule."""

    name: str
    type: str
    default: Any
    sentence: str
    required: bool
    aliases: list[str]


class CatalogEntry(TypedDict):
    """A built-in rule."""

    name: str
    module: str
    sentence: str
    collections: list[str]
    aliases: list[str]
    set: Annotated[str | None, "`default` for the rules that judge every run"]
    parameters: list[Parameter]


class BacktestRow(TypedDict):
    """What a rule says of one of many runs."""

    run: str
    rule: str
    status: str
    first_finding: str
    first_step: int | None
    onset: int | None
    findings: int
    steps_found: int
    looked: int
    seconds: float
    note: str
    statistic: str
    lowest: float | None
    highest: float | None
    limit: float | None
    label: str
    changed: Annotated[str | None, "how the verdict differs from the other version's"]
    status_before: str | None


class BacktestSummary(TypedDict):
    """What a rule says of all runs together."""

    rule: str
    runs: int
    fires: int
    passes: int
    seconds: float
    failing: Annotated[int, "runs that are labelled as failing"]
    failing_found: int
    healthy: int
    healthy_found: int
    changed: int
    others: Annotated[int, "runs that were not judged"]


class Backtest(TypedDict):
    """The table of a backtest."""

    runs: int
    reused: Annotated[int, "rows that an earlier call had already made"]
    rows: list[BacktestRow]
    rules: list[BacktestSummary]


class BacktestEstimate(TypedDict):
    """What a backtest in an account takes: the answer of `--dry-run`."""

    runs: int
    chunks: int
    steps: int
    dollars: float
    seconds: float
    bundled: Annotated[int, "runs that have a bundle, and so take few requests"]
    dollars_bundled: Annotated[float, "what it would cost if all runs had one"]
    writes_bundles: Annotated[
        bool, "whether this backtest writes the others, so that the next one costs that"
    ]
    slows_live_runs: Annotated[
        bool, "whether the account is so small that live runs are slowed down meanwhile"
    ]


class BacktestCancelled(TypedDict):
    """The answer of `--cancel`."""

    cancelled: Annotated[str | None, "the name of what was ended"]


class Replay(TypedDict):
    """A rule at one step, as it was deployed."""

    run: str
    rule: str
    step: int
    outcome: str
    sentence: str
    findings: list[Finding]
    state_before: dict[str, Any]
    state_after: dict[str, Any]
    left_out: Annotated[list[str], "attributes that are not plain data, and so are not kept"]
    steps_before: int
    tensors: int
