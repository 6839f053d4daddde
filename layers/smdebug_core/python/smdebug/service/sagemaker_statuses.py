"""Rule statuses in the forms that notebooks written for SageMaker and tornasole read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from smdebug.service.run_status import RuleStatusOf
from smdebug.service.tables import Rows

_LONGEST_NAME = 256
_LONGEST_DETAILS = 1024


def rule_execution_jobs(statuses: Iterable[RuleStatusOf]) -> Rows[dict[str, Any]]:
    """The result of tornasole's `estimator.describe_rule_execution_jobs()`, with ids instead of jobs."""
    jobs = [
        {
            "RuleName": status.name,
            "RuleStatus": status.status.of_sagemaker,
            "FailureReason": status.reason,
            "RuleExecutionJobName": status.id,
            "RuleExecutionJobArn": _arn(status),
        }
        for status in statuses
    ]
    return Rows(jobs, ("RuleName", "RuleStatus", "FailureReason", "RuleExecutionJobName"))


def rule_evaluation_statuses(
    statuses: Iterable[RuleStatusOf], begun: datetime | None
) -> Rows[dict[str, Any]]:
    """`DebugRuleEvaluationStatuses` as boto3 returns them; a status without details omits them."""
    entries = []
    for status in statuses:
        entry: dict[str, Any] = {
            "RuleConfigurationName": status.name[:_LONGEST_NAME],
            "RuleEvaluationJobArn": _arn(status),
            "RuleEvaluationStatus": status.status.of_sagemaker,
        }
        if status.reason:
            entry["StatusDetails"] = status.reason[: _LONGEST_DETAILS - 1] + "\n"
        entries.append({**entry, "LastModifiedTime": status.changed_at or begun})
    columns = ("RuleConfigurationName", "RuleEvaluationStatus", "StatusDetails", "LastModifiedTime")
    return Rows(entries, columns)


def _arn(status: RuleStatusOf) -> str:
    return f"smdebug:{status.id}"[:_LONGEST_NAME]
