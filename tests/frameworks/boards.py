"""What a framework's own callback has logged for TensorBoard, read by TensorBoard itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

_CLOCKS = ("runtime", "per_second", "evaluation_time")


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Return the steps and values of each scalar in the folder and below, without those of the clock."""
    return {
        name: values
        for file in sorted(folder.rglob("events.out.tfevents.*"))
        for name, values in _of(file, str(file.parent.relative_to(folder)))
        if not name.endswith(_CLOCKS)
    }


def _of(file: Path, part: str) -> Iterator[tuple[str, list[tuple[int, float]]]]:
    board = EventAccumulator(str(file), size_guidance={"tensors": 0, "scalars": 0})
    board.Reload()
    for name in board.Tags()["scalars"]:
        yield f"{part}/{name}", [(event.step, event.value) for event in board.Scalars(name)]
    for name in board.Tags()["tensors"]:  # those of TensorFlow 2
        values = [(event.step, make_ndarray(event.tensor_proto)) for event in board.Tensors(name)]
        if all(value.ndim == 0 and value.dtype.kind == "f" for _, value in values):
            yield f"{part}/{name}", [(step, float(value)) for step, value in values]
