"""The evidence of a rule: which tensor, which number, which limit."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any

from smdebug.exceptions import SMDebugTypeError


@dataclass(frozen=True)
class Finding:
    """The evidence for one problem that a rule found: put a list of these in `self.findings`.

    Every field is optional. `message` is the sentence for a human; without it, the sentence is made from
    the other fields. `cause` is the kind of problem, such as those of `smdebug.diagnosis.causes`, and
    `since` the first step at which it was visible. `title` is the headline for this case, `why` the two or
    three numbers that convince, as sentences, and `advice` what to try in this case, the first thing first:
    without them, the cause has a title, the other fields give the numbers and the rule has its advice.
    `details` holds anything else worth keeping, as plain data.
    """

    tensor: str | None = None
    statistic: str | None = None
    value: Any = None
    threshold: Any = None
    worker: str | None = None
    message: str = ""
    step: int | None = None
    cause: str = ""
    since: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    why: Sequence[str] = ()
    advice: Sequence[str] = ()

    def __str__(self) -> str:
        return self.message or _sentence(self)

    def _repr_html_(self) -> str:
        facts = {name: text for name in _FIELDS if (text := _shown(getattr(self, name)))}
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in facts.items()
            if name != "message"
        )
        return f"<p><b>{escape(str(self))}</b></p><table><tbody>{rows}</tbody></table>"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON: numpy numbers as numbers, "NaN" and "Infinity" as text."""
        payload = {name: plain(getattr(self, name)) for name in _FIELDS}
        payload["message"] = str(self)
        for name in ("cause", "title", "why", "advice"):
            if not payload[name]:
                del payload[name]
        return {name: value for name, value in payload.items() if value is not None and value != {}}


_FIELDS = tuple(field.name for field in fields(Finding))


def as_finding(evidence: Any, *, names_a_tensor: Callable[[str], bool] = lambda name: False) -> Finding:
    """Return an item of `self.findings` as a `Finding`.

    A string is the name of a tensor, if one has that name, or else the message; a mapping has the fields
    of a finding, and its other keys go into `details`.
    """
    if isinstance(evidence, Finding):
        return evidence
    if isinstance(evidence, str):
        return Finding(tensor=evidence) if names_a_tensor(evidence) else Finding(message=evidence)
    if isinstance(evidence, Mapping):
        known = {key: value for key, value in evidence.items() if key in _FIELDS}
        rest = {str(key): value for key, value in evidence.items() if key not in _FIELDS}
        details = known.pop("details", None)
        rest = {**details, **rest} if isinstance(details, Mapping) else rest
        for text in ("message", "cause", "title"):
            known[text] = str(known.get(text) or "")
        for texts in ("why", "advice"):
            known[texts] = sentences(known.get(texts))
        return Finding(**known, details=rest)
    raise SMDebugTypeError(
        f"A finding must be a Finding, a string or a mapping, not {type(evidence).__name__}: {evidence!r:.80}"
    )


def as_findings(
    evidence: Any, *, names_a_tensor: Callable[[str], bool] = lambda name: False
) -> list[Finding]:
    """Return `self.findings` as a list of findings, in order; a single finding needs no list."""
    if evidence is None:
        return []
    if isinstance(evidence, (Finding, str, Mapping)):
        evidence = [evidence]
    if not isinstance(evidence, Iterable):
        raise SMDebugTypeError(
            f"self.findings must be a list of findings, not {type(evidence).__name__}: {evidence!r:.80}"
        )
    return [as_finding(item, names_a_tensor=names_a_tensor) for item in evidence]


def sentences(given: Any) -> tuple[str, ...]:
    """Return `why` or `advice` of a finding as sentences: a single one needs no list."""
    if not given:
        return ()
    return (given,) if isinstance(given, str) else tuple(map(str, given))


def plain(value: Any) -> Any:
    """Return the value as JSON can hold it: small arrays as lists, anything unknown as text."""
    np = sys.modules.get("numpy")  # not imported: if a value is numpy's, numpy is loaded
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
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)


def _sentence(finding: Finding) -> str:
    subject = finding.tensor or "the run"
    if finding.worker is not None:
        subject += f" (worker {finding.worker})"
    evidence = finding.statistic or ("value" if finding.value is not None else "")
    if finding.value is not None:
        evidence += f" {number(finding.value)}"
    if finding.threshold is not None:
        evidence += f" (limit {number(finding.threshold)})"
    return f"{subject}: {evidence}" if evidence else subject


def number(value: Any) -> str:
    """Return the number as text, with four significant digits."""
    value = plain(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _shown(value: Any) -> str:
    """Return a field as text; empty if it was not given."""
    if value is None or value == "" or (isinstance(value, Mapping | tuple | list) and not value):
        return ""
    return str(plain(value))
