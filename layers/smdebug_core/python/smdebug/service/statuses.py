"""Rule statuses in the shapes that notebooks written for SageMaker and tornasole read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from smdebug.service.reading import RuleStatusOf
from smdebug.service.tables import Rows

_LONGEST_NAME = 256
_LONGEST_DETAILS = 1024


def rule_execution_jobs(statuses: Iterable[RuleStatusOf]) -> Rows[dict[str, Any]]:
    """What tornasole's `estimator.describe_rule_execution_jobs()` gave; there is no job, but an id."""
    told = [
        {
            "RuleName": one.name,
            "RuleStatus": one.status.value,
            "FailureReason": one.reason,
            "RuleExecutionJobName": one.id,
            "RuleExecutionJobArn": _arn(one),
        }
        for one in statuses
    ]
    return Rows(told, ("RuleName", "RuleStatus", "FailureReason", "RuleExecutionJobName"))


def rule_evaluation_statuses(
    statuses: Iterable[RuleStatusOf], begun: datetime | None
) -> Rows[dict[str, Any]]:
    """`DebugRuleEvaluationStatuses` as boto3 gave them; a status without details leaves them out."""
    told = []
    for one in statuses:
        entry: dict[str, Any] = {
            "RuleConfigurationName": one.name[:_LONGEST_NAME],
            "RuleEvaluationJobArn": _arn(one),
            "RuleEvaluationStatus": one.status.value,
        }
        if one.reason:
            entry["StatusDetails"] = one.reason[: _LONGEST_DETAILS - 1] + "\n"
        told.append({**entry, "LastModifiedTime": one.changed_at or begun})
    columns = ("RuleConfigurationName", "RuleEvaluationStatus", "StatusDetails", "LastModifiedTime")
    return Rows(told, columns)


def _arn(one: RuleStatusOf) -> str:
    return f"smdebug:{one.id}"[:_LONGEST_NAME]
