"""The problems of a run as a person reads them: the cause, its evidence, its symptoms, what to try."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from smdebug.files.notes.checkpoints import Checkpoint, last_before


@dataclass(frozen=True)
class Symptom:
    """A problem that another one explains."""

    cause: str
    what: str
    since: int
    last: int
    where: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    because: str = ""
    """How the cause leads to it."""
    title: str = ""
    """The headline for this case; "" for that of the cause."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**vars(self), "where": list(self.where), "rules": list(self.rules)}

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Symptom:
        return cls(
            cause=str(payload.get("cause") or ""),
            what=str(payload.get("what") or ""),
            since=_step(payload.get("since")),
            last=_step(payload.get("last")),
            where=_texts(payload.get("where")),
            rules=_texts(payload.get("rules")),
            because=str(payload.get("because") or ""),
            title=str(payload.get("title") or ""),
        )


@dataclass(frozen=True)
class Issue:
    """One problem of a run: the root cause, and the symptoms that it explains."""

    cause: str
    """One of `CAUSES`, or a custom rule's own; "" if its rules name none."""
    what: str
    """The sentence of its first finding."""
    since: int
    last: int
    where: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    """The numbers."""
    advice: tuple[str, ...] = ()
    """What to try."""
    rules: tuple[str, ...] = ()
    docs: str = ""
    title: str = ""
    """The headline for this case; "" for that of the cause."""
    symptoms: tuple[Symptom, ...] = ()
    resume_from: Checkpoint | None = None
    """The last checkpoint that was marked before the problem began."""

    @property
    def all_rules(self) -> tuple[str, ...]:
        """The rules that found the cause, and those that found its symptoms."""
        symptoms = (rule for symptom in self.symptoms for rule in symptom.rules)
        return tuple(dict.fromkeys((*self.rules, *symptoms)))

    def _repr_html_(self) -> str:
        return str(import_module("smdebug.diagnosis.html").issue_html(self))  # which reads issues

    def to_dict(self) -> dict[str, Any]:
        """As JSON and events have it."""
        return {
            "cause": self.cause,
            "title": self.title,
            "what": self.what,
            "since": self.since,
            "last": self.last,
            "where": list(self.where),
            "workers": list(self.workers),
            "why": list(self.why),
            "try": list(self.advice),
            "rules": list(self.rules),
            "docs": self.docs,
            "symptoms": [symptom.to_dict() for symptom in self.symptoms],
            "resume_from": None if self.resume_from is None else self.resume_from.to_dict(),
        }

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Issue:
        """Return the issue in JSON, as `to_dict` wrote it; unknown fields are ignored."""
        return cls(
            cause=str(payload.get("cause") or ""),
            what=str(payload.get("what") or ""),
            since=_step(payload.get("since")),
            last=_step(payload.get("last")),
            where=_texts(payload.get("where")),
            workers=_texts(payload.get("workers")),
            why=_texts(payload.get("why")),
            advice=_texts(payload.get("try")),
            rules=_texts(payload.get("rules")),
            docs=str(payload.get("docs") or ""),
            title=str(payload.get("title") or ""),
            symptoms=tuple(
                Symptom.from_dict(symptom)
                for symptom in _items(payload.get("symptoms"))
                if isinstance(symptom, Mapping)
            ),
            resume_from=Checkpoint.from_dict(payload.get("resume_from")),
        )


def with_checkpoints(issues: Iterable[Issue], checkpoints: Sequence[Checkpoint]) -> list[Issue]:
    """Return the issues, each with the last checkpoint before it began."""
    return [replace(issue, resume_from=last_before(checkpoints, issue.since)) for issue in issues]


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(str, _items(values)))


def _items(values: Any) -> Sequence[Any]:
    return values if isinstance(values, list | tuple) else ()


def _step(value: Any) -> int:
    return value if type(value) is int else 0
