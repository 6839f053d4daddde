"""The diagnosis in a finding's event: the problem that it belongs to, among all that are open in the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from functions.decisions.event_sizes import cut
from smdebug.diagnosis.evidence import Evidence, evidence_of
from smdebug.diagnosis.folding import fold
from smdebug.diagnosis.issues import Issue
from smdebug.files.notes.checkpoints import Checkpoint, last_before

CAUSE, SYMPTOM = "cause", "symptom"
_MOST_PLACES = 10
_MOST_SYMPTOMS = 6
_LONGEST = 300


def evidence_in(rule: str, findings: Sequence[Mapping[str, Any]], step: int) -> tuple[Evidence, ...]:
    """Return the evidence in the findings of a rule at one step, without advice."""
    return tuple(evidence_of(rule, [(step, findings)]))


def diagnosis_of(
    rule: str, own: Sequence[Evidence], others: Sequence[Evidence], checkpoints: Sequence[Checkpoint] = ()
) -> dict[str, Any] | None:
    """Return the problem that the rule's findings belong to; `role` says whether they are its cause.

    `others` is the evidence of the run's other open issues. If the rule's findings belong to several
    problems, it is the earliest.
    """
    issues = [issue for issue in fold([*own, *others]) if rule in issue.all_rules]
    if not issues:
        return None
    issue = issues[0]
    role = CAUSE if rule in issue.rules else SYMPTOM
    return {"role": role, **_bounded(replace(issue, resume_from=last_before(checkpoints, issue.since)))}


def kept(evidence: Sequence[Evidence]) -> tuple[dict[str, Any], ...]:
    """Return evidence as a rule's record keeps it while its issue is open."""
    return tuple(
        {
            "cause": item.cause,
            "what": cut(item.what, _LONGEST),
            "since": item.since,
            "found": item.found,
            "title": cut(item.title, _LONGEST),
            "why": _texts(item.reasons),
            "try": _texts(item.advice),
            "places": [cut(place, _LONGEST) for place in item.places[:_MOST_PLACES]],
            "workers": list(item.workers[:_MOST_PLACES]),
        }
        for item in evidence
    )


def restored(
    rule: str,
    payload: Sequence[Mapping[str, Any]],
    last: int,
    *,
    advice: Mapping[str, Sequence[str]],
    docs: str,
) -> tuple[Evidence, ...]:
    """Return the evidence that a record has kept; `last` is the last step with such findings."""
    return tuple(
        Evidence(
            cause=str(item["cause"]),
            rule=rule,
            what=str(item["what"]),
            since=int(item["since"]),
            last=max(last, int(item["since"])),
            steps=0,
            found=item.get("found"),
            title=str(item.get("title") or ""),
            reasons=tuple(item.get("why") or ()),
            places=tuple(item["places"]),
            workers=tuple(item["workers"]),
            advice=tuple(item.get("try") or advice.get(str(item["cause"])) or advice.get("") or ())[:3],
            docs=docs,
        )
        for item in payload
    )


def _bounded(issue: Issue) -> dict[str, Any]:
    payload = issue.to_dict()
    if issue.resume_from is not None:
        payload["resume_from"] = {**payload["resume_from"], "path": cut(issue.resume_from.path, _LONGEST)}
    symptoms = [
        {
            **symptom,
            "title": cut(symptom["title"], _LONGEST),
            "what": cut(symptom["what"], _LONGEST),
            "where": _texts(symptom["where"]),
        }
        for symptom in payload["symptoms"][:_MOST_SYMPTOMS]
    ]
    return {
        **payload,
        "title": cut(issue.title, _LONGEST),
        "what": cut(issue.what, _LONGEST),
        "where": _texts(issue.where),
        "workers": _texts(issue.workers),
        "why": _texts(issue.why),
        "try": _texts(issue.advice),
        "rules": _texts(issue.rules),
        "symptoms": symptoms,
    }


def _texts(texts: Sequence[str]) -> list[str]:
    return [cut(text, _LONGEST) for text in texts[:_MOST_PLACES]]
