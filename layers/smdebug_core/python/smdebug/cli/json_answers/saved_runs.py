"""What commands answer about saved runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from smdebug.cli.json_answers.parts import (
    Attempt,
    Checkpoint,
    Issue,
    LeftOut,
    Loss,
    MissingSteps,
    Origin,
    Statistics,
)


class StepsOfMode(TypedDict):
    """The saved steps of a mode."""

    mode: str
    count: int
    first: int
    last: int
    interval: Annotated[int | None, "null if it varies"]


class SavedTensor(TypedDict):
    """A tensor of a run."""

    name: str
    collections: list[str]
    steps: int
    saved: Annotated[list[str], "`value`, or names of statistics"]
    bytes: int
    last_step: int
    latest: Statistics


class MeasuredTensor(TypedDict):
    """A tensor of which the default plan measures statistics."""

    name: str
    kind: Annotated[str, "parameters, gradients, updates, outputs, …"]
    steps: Annotated[int, "at how many steps tensors of its kind were measured"]
    last_step: int | None
    latest: Statistics | None
    part: Annotated[str | None, "of a sharded tensor, the part that was measured: 1 of 2 along dp"]


class LoggedValues(TypedDict):
    """The images, texts, tables or sounds that were logged under a name."""

    name: str
    kind: Annotated[str, "image, text, table, confusion_matrix, histogram or audio"]
    count: int
    first: Annotated[int, "the first step"]
    last: Annotated[int, "the last step"]
    bytes: int


class Inspection(TypedDict):
    """What a run holds."""

    path: str
    state: Literal["ended", "failed", "not ended"]
    ended: bool
    num_workers: int
    workers: list[str]
    digest_workers: Annotated[int, "workers that saved digests alone"]
    attempt: int
    attempts: list[Attempt]
    steps: list[StepsOfMode]
    incomplete_steps: list[int]
    collections: Annotated[dict[str, int], "how many tensors each has"]
    tensors: list[SavedTensor]
    bytes: int
    index_files: int
    first_saved: str | None
    last_saved: str | None
    seconds_per_step: float | None
    loss: Loss | None
    losses: Annotated[dict[str, list[list[float]]], "pairs of a step and a value, by name"]
    damaged: Annotated[dict[str, str], "what is wrong with a file, by its name"]
    missing_steps: MissingSteps
    origin: Origin | None
    logged: list[LoggedValues]
    measured: list[MeasuredTensor]


class TensorAtStep(Statistics):
    """A tensor at one of its steps."""

    step: int
    workers: NotRequired[list[str]]
    problem: NotRequired[Annotated[str, "why it cannot be read there"]]
    part: NotRequired[Annotated[str, "of a sharded tensor, if these are statistics of a part"]]


class MeasuredPart(TypedDict):
    """The part of a sharded tensor that the numbers are of."""

    worker: str
    part: Annotated[str, "1 of 2 along dp"]


class TensorSeries(TypedDict):
    """A tensor over its steps."""

    tensor: str
    mode: str
    loss: NotRequired[Annotated[Loss, "if the tensor is the training loss"]]
    part: NotRequired[Annotated[MeasuredPart, "if some are statistics of a part of the tensor"]]
    steps: list[TensorAtStep]
    left_out: list[LeftOut]


class TensorValue(Statistics):
    """A tensor at one step."""

    part: NotRequired[Annotated[str, "of a sharded tensor, if these are statistics of a part"]]
    tensor: str
    mode: str
    step: int
    value: NotRequired[Annotated[Any, "a number, or lists of lists of numbers"]]
    sample: NotRequired[Annotated[list[Any], "some of the numbers of a tensor too large to print"]]
    worker: NotRequired[str]


class VerifiedProblem(TypedDict):
    """What is wrong with a file."""

    file: str
    problem: str
    tensor: str | None
    step: int | None
    harmless: Annotated[bool, "whether the run is whole nevertheless"]


class Verification(TypedDict):
    """Whether the stored bytes of a run are those that were written."""

    path: str
    ended: bool
    index_files: int
    event_files: int
    records: int
    checksummed: int
    bytes: int
    problems: list[VerifiedProblem]
    notes: list[VerifiedProblem]
    attempts: list[Attempt]
    is_sound: bool


class Difference(TypedDict):
    """A tensor in which two runs differ at a step."""

    step: int
    tensor: str
    worker: str
    why: str
    largest: Annotated[float | None, "the largest difference between two numbers"]
    mode: str | None
    kind: str | None


class CollectionDifferences(TypedDict):
    """How far two runs differ in the tensors of a collection."""

    compared: int
    different: int
    tensors: int
    tensors_different: int
    first_step: int | None
    largest: float


class ConfigDifference(TypedDict):
    """A setting in which two runs differ."""

    name: str
    first: Any
    other: Any


ComparedRuns = TypedDict("ComparedRuns", {"one": str, "other": str})  # noqa: UP013 - of one, no name says more


class Comparison(ComparedRuns):
    """Where two runs diverge."""

    is_same: bool
    steps: Annotated[int, "how many both saved"]
    only_in_one: Annotated[list[int], "steps"]
    only_in_other: Annotated[list[int], "steps"]
    tensors_only_in_one: list[str]
    tensors_only_in_other: list[str]
    compared: int
    number_different: int
    differences: list[Difference]
    collections: dict[str, CollectionDifferences]
    first: Difference | None
    losses: Annotated[list[Loss | None], "of both runs"]
    config: list[ConfigDifference]
    left_out: list[LeftOut]


class ListedRun(TypedDict):
    """A run of a folder or bucket."""

    path: str
    name: str
    state: Annotated[str, "`ended`, `failed`, `not ended` or `unreadable`"]
    steps: int
    last_step: int | None
    training_step: Annotated[int | None, "the last one that has a loss: evaluations are not counted"]
    loss: float | None
    best_loss: float | None
    metrics: Annotated[dict[str, float], "the last value of each number that was logged"]
    sizes: Annotated[
        dict[str, float], "parameters, batch_size, samples and tokens per second, where measured"
    ]
    differs: Annotated[str, "how the measured learning rate differs from the configured one"]
    saved_at: str | None
    origin: Origin
    problems: Annotated[list[str] | None, "null unless the run was evaluated"]
    last_good: Annotated[Checkpoint | None, "the last checkpoint before the first problem"]
    error: str


class Exported(TypedDict):
    """What was written to a file or folder."""

    form: str
    output: str
    values: int
    left_out: list[LeftOut]


class Sent(Exported):
    """What another tool got."""

    run_id: Annotated[str | None, "the run in that tool"]
    problems: int
    notes: list[str]


class Drawn(TypedDict):
    """A picture."""

    output: str
    bytes: int
    left_out: list[LeftOut]


class VerdictInReport(TypedDict):
    """What a rule said."""

    name: str
    status: str
    steps_found: list[int]


class Report(TypedDict):
    """A page of HTML about a run."""

    output: str
    bytes: int
    issues: list[Issue]
    verdicts: list[VerdictInReport]
    left_out: list[LeftOut]


class SeriesRead(TypedDict):
    """How a series of another tool is named here."""

    series: str
    mode: str


class ImportedRun(TypedDict):
    """A run made of what another tool logged."""

    format: str
    source: str
    run: str
    values: int
    steps: int
    series: dict[str, SeriesRead]
    left_out: Annotated[dict[str, Any], "what was not imported, and why"]
    config: dict[str, Any]


class NotImported(TypedDict):
    """A run of another tool that could not be read."""

    source: str
    name: str
    error: str


class Imported(TypedDict):
    """The runs that were made, and those that could not be."""

    imported: list[ImportedRun]
    failed: list[NotImported]


class Annotations(TypedDict):
    """What people have written about a run."""

    run: str
    tags: list[str]
    note: str
    group: str | None
    pinned: Annotated[bool, "whether it is a baseline"]


class ZoomRequest(TypedDict):
    """A request for whole tensors."""

    run: str
    tensors: Annotated[list[str], "regular expressions"]
    steps: int
    workers: list[str]
    matching: Annotated[list[str], "tensors that the run has saved so far"]
    unmatched: Annotated[list[str], "expressions that match none of those"]


class StopRequest(TypedDict):
    """A request to end a training."""

    run: str
    reason: str
    finding_id: str | None
    stop_at_step: int | None
    run_id: NotRequired[str]
    training_run: NotRequired[int]


class LookedAt(TypedDict):
    """The state of a run that is followed: printed when it has changed."""

    event: Literal["progress", "ended"]
    run: str
    state: str
    steps_saved: int
    last_step: int | None
    loss: float | None
    missing_steps: int
    open: Annotated[int, "issues"]
    error: str | None


class IssueChanged(TypedDict):
    """An issue was found, or is no longer."""

    event: Literal["opened", "resolved"]
    run: str
    step: int
    issue: Issue


class RuleFailed(TypedDict):
    """A rule ended with an error."""

    event: Literal["failed"]
    run: str
    rule: str
    error: str


class Unread(TypedDict):
    """Files that could not be read."""

    event: Literal["unread"]
    run: str
    left_out: list[LeftOut]
