"""The expected result of a run, derived from its training alone: nothing here is imported from the product.

A run of the same handlers without faults would have the handlers' own mistakes. This oracle knows only what
was saved, and what the documentation says of statuses, issues and verdicts.
"""

from __future__ import annotations

from typing import Any

from tests.simulation.trainings import RULES, Training

LIMIT = 10.0  # above which the spy rules find something
FOUND, RESOLVED = "Rule Evaluation Condition Met", "Rule Issue Resolved"
FINISHED, SILENT = "Finished", "Silent"

Published = tuple[int, str]  # at which step, and the type of the event


def statuses(training: Training) -> dict[str, str]:
    """Return the status of each rule that watches the run in the end."""
    return {name: _status(training, name) for name in training.wanted}


def _status(training: Training, name: str) -> str:
    rule = RULES[name]
    if rule["rule"] == "Breaks" and rule["parameters"]["at"] in training.complete:  # type: ignore[index]
        return "Error"
    if _fires(training, rule):
        return "IssuesFound"
    if not training.ends:
        return "InProgress"
    return "Stopped" if training.partly or not training.complete else "NoIssuesFound"


def events(training: Training, name: str) -> set[Published]:
    """Return what is published of a rule that watches the last attempt from its first step on."""
    rule = RULES[name]
    fires = _fires(training, rule)
    due = sorted({*training.complete, *training.partly})
    published = {(step, FOUND) for step in fires if rule.get("repeat") == "every_step"}
    is_open = False
    for step in due:
        if (step in fires) != is_open:
            is_open = not is_open
            published.add((step, FOUND if is_open else RESOLVED))
    return published


def _fires(training: Training, rule: Any) -> list[int]:
    """Return the steps at which the rule finds something."""
    if rule["rule"] == "Ends":
        return training.complete[-1:] if training.ends else []
    seen = [(int(step), total) for step, total, _ in training.seen()]
    if rule["rule"] == "Breaks":
        seen = [due for due in seen if due[0] < rule["parameters"]["at"]]
    return [step for step, total in seen if total > LIMIT]


def verdict(training: Training) -> str:
    """Return the verdict of a run that has ended."""
    found = set(statuses(training).values())
    if "IssuesFound" in found:
        return "IssuesFound"
    if "Error" in found:
        return "Error"
    whole = bool(training.complete) and not training.partly
    return "NoIssuesFound" if whole else "Incomplete"


def letters(published: list[tuple[str, dict[str, Any]]]) -> set[str]:
    """Return the ids of the events that are sent by email."""
    return {
        detail["id"]
        for kind, detail in published
        if kind in (FOUND, RESOLVED)
        or (kind == "Rule Evaluation Status Change" and detail["status"] == "Error")
        or (kind == "Rule Action Outcome" and not detail["done"])
        or (kind == "Run State Change" and _is_news(detail))
    }


def _is_news(detail: dict[str, Any]) -> bool:
    if detail["state"] == FINISHED:
        return bool(detail["summary"]["verdict"] != "NoIssuesFound")
    return detail["state"] == SILENT or bool(detail.get("trouble"))


def same_id_for_the_same(
    published: list[tuple[str, dict[str, Any]]], elsewhere: list[tuple[str, dict[str, Any]]]
) -> str:
    """Return what is wrong with the ids of rules' events: an event has one id, and no other has it.

    `elsewhere` are those of another execution of the same scenario, in which they have the same ids.
    """
    by_id: dict[str, tuple[Any, ...]] = {}
    by_event: dict[tuple[Any, ...], str] = {}
    for kind, detail in [*elsewhere, *published]:
        if kind not in (FOUND, RESOLVED):
            continue
        event = (
            kind,
            detail["run"],
            detail["training_run"],
            detail["configuration"]["id"],
            detail["step"],
        )
        if by_id.setdefault(detail["id"], event) != event:
            return f"{detail['id']} is the id of {event} and of {by_id[detail['id']]}"
        if by_event.setdefault(event, detail["id"]) != detail["id"]:
            return f"{event} has the ids {detail['id']} and {by_event[event]}"
    return ""
