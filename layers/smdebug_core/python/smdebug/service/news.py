"""The changes between two snapshots of a run."""

from __future__ import annotations

from dataclasses import dataclass

from smdebug.service.run_status import RuleStatusOf, RunSnapshot, headline
from smdebug.service.tables import PlainData, cell


@dataclass(frozen=True)
class News(PlainData):
    """One change since the snapshot before."""

    what: str  # "state", "status", "issue", "evaluated" or "trouble"
    text: str
    rule: str | None = None

    def __str__(self) -> str:
        return cell(self.text)


def news(before: RunSnapshot | None, after: RunSnapshot) -> list[News]:
    """The changes since `before`; everything, if that is None."""
    changes = []
    if before is None or before.state is not after.state:
        changes.append(News("state", headline(after.summary)))
    elif after.evaluated_through != before.evaluated_through:
        changes.append(News("evaluated", f"evaluated through step {after.evaluated_through}"))
    if after.summary.trouble and (not before or before.summary.trouble != after.summary.trouble):
        changes.append(News("trouble", after.summary.trouble))
    known = {rule.id: rule for rule in before.statuses} if before else {}
    for rule in after.statuses:
        changes += _news_of_rule(known.get(rule.id), rule)
    return changes


def _news_of_rule(before: RuleStatusOf | None, after: RuleStatusOf) -> list[News]:
    changes = []
    if before is None or before.status is not after.status:
        reason = f": {after.reason}" if after.reason else ""
        changes.append(News("status", f"{after.name} is {after.status.value}{reason}", after.name))
    was_open = before is not None and before.has_open_issue
    if after.has_open_issue and not was_open and not changes:
        text = f"{after.name} has an open issue since step {after.issue_since}"
        changes.append(News("issue", text, after.name))
    if was_open and not after.has_open_issue:
        text = f"the issue of {after.name} was resolved at step {after.last_good}"
        changes.append(News("issue", text, after.name))
    return changes
