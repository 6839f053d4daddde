"""Arguments of trials, checked."""

from __future__ import annotations

from operator import index as as_int

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.mode_keys import ModeKeys, str_to_mode_keys

StepRange = tuple[int | None, int | None]


class InvalidStepRange(SMDebugValueError, AssertionError):
    """range_steps is (first, end): whole numbers from 0, either may be None, first below end."""


def checked_range(range_steps: StepRange | None) -> StepRange | None:
    """Return `range_steps` as integers; `InvalidStepRange` if it is not a range."""
    if range_steps is None:
        return None
    try:
        first, end = (None if step is None else as_int(step) for step in range_steps)
    except (TypeError, ValueError) as error:
        raise InvalidStepRange(
            f"range_steps is (first, end), each a whole number or None, not {range_steps!r}"
        ) from error
    if (first or 0) < 0 or (end is not None and end <= (first or 0)):
        raise InvalidStepRange(
            "range_steps should be of the form (begin, end) where begin is less than end, "
            f"and both are not negative; got {range_steps!r}"
        )
    return (first, end)


def checked_attempt(attempt: int | None) -> int | None:
    """Return the number of an attempt, or None; raise if it is not a number that an attempt can have."""
    if attempt is None:
        return None
    try:
        number = as_int(attempt)
    except TypeError as error:
        raise SMDebugTypeError(f"attempt is a whole number or None, not {attempt!r}") from error
    if number < 0:
        raise SMDebugValueError(
            f"attempt is the number of an attempt, 0 for the first, not {number}: trial.attempts() lists them"
        )
    return number


def as_mode(mode: ModeKeys | str | None) -> ModeKeys:
    """Return the mode for an argument: None means GLOBAL, and text is the name of a mode."""
    if isinstance(mode, ModeKeys):
        return mode
    if mode is None:
        return ModeKeys.GLOBAL
    if isinstance(mode, str):
        try:
            return str_to_mode_keys(mode)
        except KeyError:
            raise SMDebugValueError(
                f"{mode!r} is not a mode: use one of {', '.join(known.name for known in ModeKeys)}"
            ) from None
    raise SMDebugTypeError(f"A mode is one of smdebug.modes, not {mode!r}")
