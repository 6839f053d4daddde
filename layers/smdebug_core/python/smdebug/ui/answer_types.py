"""The forms of the server's answers; OpenAPI's schemas are made of them."""

from __future__ import annotations

from typing import Any, TypedDict


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
    check: str
    configuration: dict[str, Any]
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


class RuleAnswer(TypedDict):
    """The result of a rule so far: `waiting`, `passed`, `found`, `failed`, `not checked`."""

    name: str
    rule: str
    state: str
    sentence: str
    parameters: dict[str, Any]
    steps_found: list[int]


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
    """What the rules found, and what they could not check."""

    rules: list[RuleAnswer]
    not_checked: list[str]
    log: LogAnswer


class SeriesName(TypedDict):
    """A scalar, and how many values it has."""

    name: str
    count: int


class KindAnswer(TypedDict):
    """A kind of tensors; `joined` saved steps share a column of the heat map."""

    name: str
    tensors: int
    joined: int


class RunAnswer(TypedDict):
    """One run: its progress, its diagnosis, and what it holds."""

    id: str
    name: str
    path: str
    version: int
    state: str
    error: str
    notes: list[str]
    steps: int
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
    not_checked: list[str]
    series: list[SeriesName]
    kinds: list[KindAnswer]
    statistics: list[str]
    modes: list[list[Any]]
    damaged: list[list[str]]
    configuration: dict[str, Any]
    cost: float | None
    cost_title: str
    deployed: DeployedRunAnswer | None


class SeriesAnswer(TypedDict):
    """A scalar over a window of steps: each part with its extremes."""

    name: str
    first: list[int]
    last: list[int]
    low: list[float | None]
    high: list[float | None]
    not_finite: list[int]
    exact: bool
    total: int
