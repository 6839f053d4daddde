"""Forms that are parts of several answers."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict


class LeftOut(TypedDict):
    """A file that could not be read: what follows from it is missing in the answer."""

    run: str
    file: str
    problem: str
    step: int | None
    worker: str | None
    missing_steps: Annotated[int, "how many steps were never written, by the files around the gap"]


class Loss(TypedDict):
    """The training loss of a run."""

    name: str
    last: float
    last_step: int
    best: float
    best_step: int
    values: Annotated[int, "how many were saved"]


class Symptom(TypedDict):
    """A finding that an issue explains."""

    cause: str
    title: str
    what: str
    since: int
    last: int
    where: Annotated[list[str], "tensors"]
    rules: list[str]
    because: str


class Checkpoint(TypedDict):
    """A checkpoint of a training, as far as its run knows."""

    step: int
    path: str
    time: float | None


Issue = TypedDict(  # `try` is a word of Python
    "Issue",
    {
        "cause": Annotated[str, "a name that stays the same between releases"],
        "title": str,
        "what": str,
        "since": Annotated[int, "the first step at which it was found"],
        "last": int,
        "where": Annotated[list[str], "tensors"],
        "workers": list[str],
        "why": Annotated[list[str], "the numbers that convince"],
        "try": Annotated[list[str], "what to do, the likeliest first"],
        "rules": list[str],
        "docs": Annotated[str, "the address of the page that explains it"],
        "symptoms": list[Symptom],
        "resume_from": Annotated[Checkpoint | None, "the last checkpoint from before the problem"],
    },
)
Issue.__doc__ = "A problem of a run: its cause, what shows it, and what to try."


class Statistics(TypedDict):
    """Statistics of a tensor; those that were not saved are left out."""

    count: NotRequired[int]
    non_finite: NotRequired[int]
    nan: NotRequired[int]
    infinite: NotRequired[int]
    zeros: NotRequired[int]
    min: NotRequired[float]
    max: NotRequired[float]
    mean: NotRequired[float]
    abs_mean: NotRequired[float]
    rms: NotRequired[float]
    std: NotRequired[float]
    l2: NotRequired[float]
    dtype: NotRequired[str]
    shape: NotRequired[list[int]]
    p01: NotRequired[float]
    p05: NotRequired[float]
    p25: NotRequired[float]
    p50: NotRequired[float]
    p75: NotRequired[float]
    p95: NotRequired[float]
    p99: NotRequired[float]


class Attempt(TypedDict):
    """A part of a run, from a start of the training to its end or interruption."""

    number: int
    run_id: str | None
    first_step: int
    last_step: int
    num_steps: int
    workers: list[str]
    first_saved: Annotated[float | None, "seconds since 1970"]
    last_saved: Annotated[float | None, "seconds since 1970"]
    outcome: str
    hides_from: Annotated[int, "the first step of an earlier attempt that this one replaces"]
    hidden_steps: int


class Origin(TypedDict):
    """Where a run comes from."""

    run_id: str
    training_run: int
    started: str
    command: list[str]
    python: str
    platform: str
    host: str
    packages: dict[str, str]
    commit: str
    branch: str
    dirty: bool | None
    config: dict[str, Any]
    tags: list[str]
    note: str
    not_secret: Annotated[list[str], "names whose values are kept although they look secret"]
    pinned: Annotated[bool, "whether people have pinned it as a baseline"]
    imported: Any


class Gap(TypedDict):
    """Steps of a worker that were not written."""

    worker: str
    count: int
    first: int | None
    last: int | None
    reason: str


class MissingSteps(TypedDict):
    """Steps that a run ought to have."""

    count: int
    first: int | None
    gaps: list[Gap]
    not_closed: Annotated[list[str], "workers that ended without a word"]
