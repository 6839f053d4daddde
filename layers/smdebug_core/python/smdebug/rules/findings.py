"""What a rule saw: which tensor, which number, which limit."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from smdebug.exceptions import SMDebugTypeError


@dataclass(frozen=True)
class Finding:
    """The evidence for one thing that a rule found: leave a list of these in `self.findings`.

    Everything is optional. `message` is the sentence for a human; without one it is put together from
    the rest. `details` holds whatever else is worth keeping, as plain data.
    """

    tensor: str | None = None
    statistic: str | None = None
    value: Any = None
    threshold: Any = None
    worker: str | None = None
    message: str = ""
    step: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message or _sentence(self)

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON has it: numbers for numpy's numbers, "NaN" and "Infinity" as text."""
        told = {name: plain(getattr(self, name)) for name in _FIELDS}
        told["message"] = str(self)
        return {name: value for name, value in told.items() if value is not None and value != {}}


_FIELDS = tuple(field.name for field in fields(Finding))


def as_finding(seen: Any, *, names_a_tensor: Callable[[str], bool] = lambda name: False) -> Finding:
    """What a rule left in `self.findings`, as a `Finding`.

    A string is the name of a tensor, if there is one of that name, or else the message; a mapping has
    the fields of a finding, and what it has besides goes into `details`.
    """
    if isinstance(seen, Finding):
        return seen
    if isinstance(seen, str):
        return Finding(tensor=seen) if names_a_tensor(seen) else Finding(message=seen)
    if isinstance(seen, Mapping):
        known = {key: value for key, value in seen.items() if key in _FIELDS}
        rest = {str(key): value for key, value in seen.items() if key not in _FIELDS}
        details = known.pop("details", None)
        rest = {**details, **rest} if isinstance(details, Mapping) else rest
        known["message"] = str(known.get("message") or "")
        return Finding(**known, details=rest)
    raise SMDebugTypeError(
        f"A finding is a Finding, a string or a mapping, not {type(seen).__name__}: {seen!r:.80}"
    )


def as_findings(
    seen: Any, *, names_a_tensor: Callable[[str], bool] = lambda name: False
) -> list[Finding]:
    """The findings in `seen`: none, one, or many, in their order."""
    if seen is None:
        return []
    if isinstance(seen, (Finding, str, Mapping)):
        seen = [seen]
    if not isinstance(seen, Iterable):
        raise SMDebugTypeError(
            f"self.findings holds a list of findings, not {type(seen).__name__}: {seen!r:.80}"
        )
    return [as_finding(one, names_a_tensor=names_a_tensor) for one in seen]


def plain(value: Any) -> Any:
    """A value as JSON can hold it; small arrays as lists, the rest as text."""
    np = sys.modules.get("numpy")  # who tells of findings need not load it: a value of numpy's has
    if np is not None and isinstance(value, np.ndarray):
        value = value.tolist() if value.size <= 64 else repr(value)
    elif np is not None and isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(one) for one in value]
    return str(value)


def _sentence(finding: Finding) -> str:
    subject = finding.tensor or "the run"
    if finding.worker is not None:
        subject += f" (worker {finding.worker})"
    told = finding.statistic or ("value" if finding.value is not None else "")
    if finding.value is not None:
        told += f" is {number(finding.value)}"
    if finding.threshold is not None:
        told += f", the limit is {number(finding.threshold)}"
    return f"{subject}: {told}" if told else subject


def number(value: Any) -> str:
    """A number as a sentence has it: four digits are enough."""
    value = plain(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
