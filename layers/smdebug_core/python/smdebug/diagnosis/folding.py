"""Fold the evidence of all rules into issues: each root cause, with its symptoms beneath."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from smdebug.diagnosis.evidence import MOST_ADVICE, MOST_REASONS, Evidence
from smdebug.diagnosis.issues import Issue, Symptom
from smdebug.diagnosis.patterns import BY_PAIR, MOMENTS, PATTERNS, TRENDS, Pattern, Reach
from smdebug.diagnosis.places import comes_first, is_same, layer_of

_RANK = {cause: at for at, cause in enumerate(dict.fromkeys(pattern.cause for pattern in PATTERNS))}


def fold(evidence: Iterable[Evidence], *, order: Sequence[str] = ()) -> list[Issue]:
    """Return the issues of a run, the earliest first.

    Evidence of the same cause is one problem. A problem that another one explains becomes its symptom:
    the other was visible no later, at a place that can lead to it. `order` has the layers of the model from
    input to output, as far as they are known; an unknown order excludes nothing.
    """
    problems = _problems(evidence)
    explained = {
        problem.key: pattern
        for problem in problems
        if (pattern := _explanation(problem, problems, order)) is not None
    }
    symptoms: dict[str, list[Symptom]] = {}
    for problem in problems:
        if problem.key in explained:
            because = explained[problem.key].because
            root = _root(problem.key, explained)
            symptoms.setdefault(root, []).append(problem.as_symptom(because))
    return [
        problem.as_issue(tuple(symptoms.get(problem.key, ())))
        for problem in problems
        if problem.key not in explained
    ]


@dataclass(frozen=True)
class _Problem:
    """The evidence of one cause, the earliest first; without a cause, of one rule."""

    evidence: tuple[Evidence, ...]

    @property
    def cause(self) -> str:
        return self.evidence[0].cause

    @property
    def key(self) -> str:
        return self.cause or f"rule {self.evidence[0].rule}"

    @property
    def since(self) -> int:
        return self.evidence[0].since

    @property
    def latest_onset(self) -> int:
        """The last step at which a cause of this problem can have begun."""
        found = self.evidence[0].found
        if found is None:
            return self.since
        if self.cause in MOMENTS:
            return max(self.since, found)
        return (self.since + found) // 2 if self.cause in TRENDS else self.since

    @property
    def places(self) -> tuple[str, ...]:
        return _distinct(place for item in self.evidence for place in item.places)

    @property
    def rules(self) -> tuple[str, ...]:
        return _distinct(item.rule for item in self.evidence)

    @property
    def title(self) -> str:
        """That of the first finding that has one."""
        return self.evidence[0].title

    @property
    def last(self) -> int:
        return max(item.last for item in self.evidence)

    def as_symptom(self, because: str) -> Symptom:
        return Symptom(
            cause=self.cause,
            what=self.evidence[0].what,
            since=self.since,
            last=self.last,
            where=self.places,
            rules=self.rules,
            because=because,
            title=self.title,
        )

    def as_issue(self, symptoms: tuple[Symptom, ...]) -> Issue:
        first = self.evidence[0]
        reasons = (*first.reasons, *(item.what for item in self.evidence[1:]))
        return Issue(
            cause=self.cause,
            what=first.what,
            since=self.since,
            last=self.last,
            where=self.places,
            workers=_distinct(worker for item in self.evidence for worker in item.workers),
            why=_distinct(reasons)[:MOST_REASONS],
            advice=_distinct(text for item in self.evidence for text in item.advice)[:MOST_ADVICE],
            rules=self.rules,
            docs=first.docs,
            title=self.title,
            symptoms=symptoms,
        )


def _problems(evidence: Iterable[Evidence]) -> list[_Problem]:
    groups: dict[str, list[Evidence]] = {}
    for item in evidence:
        groups.setdefault(item.cause or f"rule {item.rule}", []).append(item)
    problems = [_Problem(tuple(sorted(group, key=lambda item: item.since))) for group in groups.values()]
    return sorted(problems, key=lambda problem: (problem.since, _rank(problem.cause)))


def _explanation(symptom: _Problem, problems: Sequence[_Problem], order: Sequence[str]) -> Pattern | None:
    """Return the pattern by which the earliest other problem explains this one."""
    for cause in problems:
        pattern = BY_PAIR.get((cause.cause, symptom.cause))
        if (
            pattern is not None
            and cause.since <= symptom.latest_onset
            and _can_reach(pattern.reach, cause.places, symptom.places, order)
        ):
            return pattern
    return None


def _root(key: str, explained: dict[str, Pattern]) -> str:
    while key in explained:
        key = explained[key].cause
    return key


def _can_reach(reach: Reach, causes: Sequence[str], symptoms: Sequence[str], order: Sequence[str]) -> bool:
    """Return whether the cause at one of its places can lead to the symptom at all of its places."""
    if reach is Reach.ANYWHERE or not causes or not symptoms:
        return True
    layers = _distinct(map(layer_of, causes))
    return all(
        any(_leads_to(reach, layer, layer_of(symptom), order) for layer in layers) for symptom in symptoms
    )


def _leads_to(reach: Reach, cause: str, symptom: str, order: Sequence[str]) -> bool:
    if is_same(cause, symptom):
        return True
    if reach is Reach.HERE:
        return False
    earlier, later = (cause, symptom) if reach is Reach.LATER else (symptom, cause)
    return comes_first(earlier, later, order) is not False


def _rank(cause: str) -> int:
    return _RANK.get(cause, len(_RANK))


def _distinct(values: Iterable[str] | Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
