"""What a training says of itself, wherever its hook was made: `smdebug.log(accuracy=0.9)`."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from operator import index
from typing import Any, NamedTuple

from smdebug.amounts import counted
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.files.names import LEARNING_RATES, SYSTEM
from smdebug.logger import get_logger
from smdebug.saving.hooks import singleton
from smdebug.saving.logged.keeping import split
from smdebug.saving.place.checkpoint_writing import checked_path

MOST_WAITING = 1000


class _Logged(NamedTuple):
    """What was logged before there was a hook."""

    given: Mapping[str, Any]
    step: int | None


_waiting: list[_Logged] = []


def log(given: Mapping[str, Any] | None = None, /, *, step: int | None = None, **named: Any) -> None:
    """Log numbers of the training: `smdebug.log(accuracy=0.9)` or `smdebug.log({"val/f1": 0.8})`.

    They belong to the step that runs, or ran last, unless `step` names another. Before the first step of the
    first training they wait for it. Each is a series of the run, like its loss: `trial.series("accuracy")`.

    What is not a number is kept to be looked at: images (arrays and tensors of height, width and channels,
    of PIL), texts, tables (lists of dictionaries), and what `smdebug.Image`, `Text`, `Table`,
    `ConfusionMatrix`, `Histogram` and `Audio` wrap. `trial.logged()` lists it.
    """
    given = {**(given or {}), **named}
    hook: Any = singleton.current_hook()
    if hook is not None:
        hook.log(given, step=step)
        return
    numbers, values = split(checked_names(given))
    at, now = checked_step(step), {**checked_numbers(float, numbers), **values}
    if not _waiting:
        atexit.unregister(_report_waiting)
        atexit.register(_report_waiting)
    if len(_waiting) < MOST_WAITING:
        _waiting.append(_Logged(now, at))


def mark_checkpoint(path: Any, *, step: int | None = None) -> None:
    """Note that the weights were saved at `path`, after the step that runs or ran last, or after `step`.

    What is found later names the last checkpoint before the problem began: `smdebug.mark_checkpoint("a.pt")`.
    """
    hook: Any = singleton.current_hook()
    if hook is not None:
        hook.mark_checkpoint(path, step=step)
    else:
        get_logger().warning(
            "smdebug.mark_checkpoint: %s is not kept, because no training is watched yet", checked_path(path)
        )


def hand_over(hook: Any) -> None:
    """Give a hook that was made what was logged before it."""
    waiting, _waiting[:] = _waiting[:], []
    for given, step in waiting:
        hook.log(given, step=step)


def _report_waiting() -> None:
    if _waiting:
        names = dict.fromkeys(name for given, _ in _waiting for name in given)
        get_logger().warning(
            "smdebug.log: %s (%s) were not saved, because no training was watched. "
            'Call smdebug.start("runs/a") before the training',
            counted(len(_waiting), "call"),
            ", ".join(names),
        )


def checked_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what to log; raise if a name is none."""
    for name in given:
        if not isinstance(name, str) or not name.strip():
            raise SMDebugTypeError(f"What is logged has a name, such as log(accuracy=0.9), not {name!r}")
        if name.startswith((LEARNING_RATES, f"{SYSTEM}/")):
            raise SMDebugValueError(f"{name} is measured by the library: log it under another name")
    return dict(given)


def checked_numbers(number_of: Callable[[Any], Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers to log; raise if a value is not one number."""
    numbers = {}
    for name, value in given.items():
        try:
            number = None if isinstance(value, str | bytes) else number_of(value)
        except (TypeError, ValueError, RuntimeError):
            number = None
        if number is None:
            raise SMDebugTypeError(
                f"{name} must be one real number to be logged, not {_short(value)}{_hint(value)}"
            )
        numbers[name] = number
    return numbers


def checked_step(step: Any) -> int | None:
    """Return the step to log numbers for; raise if it is none."""
    if step is None:
        return None
    try:
        number = index(step)
    except TypeError:
        raise SMDebugTypeError(f"step is the number of a training step, not {step!r}") from None
    if number < 0:
        raise SMDebugValueError(f"step is the number of a training step, from 0 on, not {number}")
    return number


def _hint(value: Any) -> str:
    if isinstance(value, str):
        return f". To log it as a text: smdebug.Text({value!r:.60})"
    shape = getattr(value, "shape", None)
    return "" if shape is None or len(shape) != 1 else ". For its distribution: smdebug.Histogram(…)"


def _short(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"{value!r:.60}" if shape is None else f"a {type(value).__name__} of shape {tuple(shape)}"
