"""Alarms that need a person, and a dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.dead_letters import Undelivered
from infra.evaluation_workflow import EvaluationWorkflow
from infra.event_rule import EventRule
from infra.names import METRICS
from infra.python_function import PythonFunction

OLDEST = "OldestUnevaluatedStep"  # seconds; a metric of the functions, like the next two
RULE_ERRORS = "RuleErrors"
MISSED = "MissedNotifications"
_FIVE_MINUTES = cdk.Duration.minutes(5)


class Alarms(Construct):
    """Few alarms, so that each is meaningful; all are within CloudWatch's free tier."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        dead_letters: Mapping[str, sqs.Queue],
        workflow: EvaluationWorkflow,
    ) -> None:
        super().__init__(scope, id)
        self._dead_letters = dead_letters
        self._workflow = workflow
        self._alarms = [
            *(
                self._alarm(
                    f"DeadLetters{name}",
                    f"Messages that could not be handled: {name}",
                    _waiting(queue),
                    1,
                )
                for name, queue in dead_letters.items()
            ),
            self._alarm(
                "FailedExecutions",
                "Groups of rules could not be evaluated",
                _executions(workflow, "ExecutionsFailed"),
                1,
            ),
            self._alarm(
                "ExecutionsTimedOut",
                "Evaluations took too long",
                _executions(workflow, "ExecutionsTimedOut"),
                1,
            ),
            self._alarm(
                "StepsWait",
                "A step was saved 15 minutes ago and is not evaluated yet",
                _ours(OLDEST),
                900,
                2,
            ),
            self._alarm("RuleErrors", "Rules raised and were stopped", _ours(RULE_ERRORS), 1),
        ]

    def connect(self, notify: PythonFunction, undelivered: Undelivered) -> None:
        """Send alerts, through events: CloudWatch cannot publish to a topic encrypted by AWS's own key."""
        EventRule(
            self,
            "Raised",
            does="Alarms of the debugger itself",
            undelivered=undelivered,
            target=notify,
            pattern={
                "source": ["aws.cloudwatch"],
                "detail-type": ["CloudWatch Alarm State Change"],
                "resources": [alarm.alarm_arn for alarm in self._alarms],
                "detail": {"state": {"value": ["ALARM"]}},
            },
        )

    def show(
        self, queues: Mapping[str, sqs.Queue], functions: Sequence[PythonFunction]
    ) -> cloudwatch.Dashboard:
        """Add a dashboard of backlog, failures and calls."""
        board = cloudwatch.Dashboard(self, "Dashboard", default_interval=cdk.Duration.hours(3))
        board.add_widgets(
            _graph("Oldest step not evaluated yet (s)", [_ours(OLDEST)]),
            _graph(
                "Age of the oldest message (s)",
                [
                    queue.metric_approximate_age_of_oldest_message(label=name)
                    for name, queue in queues.items()
                ],
            ),
            _graph(
                "Dead letters",
                [_waiting(queue, name) for name, queue in self._dead_letters.items()],
            ),
        )
        board.add_widgets(
            _graph(
                "Evaluations",
                [
                    _executions(self._workflow, f"Executions{what}")
                    for what in ("Started", "Succeeded", "Failed", "TimedOut")
                ],
            ),
            _graph(
                "Rules that raised; notifications that S3 lost",
                [_ours(RULE_ERRORS, "Sum"), _ours(MISSED, "Sum")],
            ),
            cloudwatch.AlarmStatusWidget(
                title="Alarms", alarms=list(self._alarms), width=8, height=6
            ),
        )
        board.add_widgets(
            _graph(
                "Errors of functions", [_of(function, "Errors", "Sum") for function in functions]
            ),
            _graph(
                "Duration of functions (ms)",
                [_of(function, "Duration", "Average") for function in functions],
            ),
            _graph(
                "Calls of functions",
                [_of(function, "Invocations", "Sum") for function in functions],
            ),
        )
        return board

    def _alarm(
        self, id: str, meaning: str, metric: cloudwatch.IMetric, threshold: int, periods: int = 1
    ) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            id,
            alarm_description=f"{meaning}. See docs/deploy.md.",
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )


def _waiting(queue: sqs.Queue, label: str | None = None) -> cloudwatch.Metric:
    return queue.metric_approximate_number_of_messages_visible(
        statistic="Maximum", period=_FIVE_MINUTES, label=label
    )


def _executions(workflow: EvaluationWorkflow, name: str) -> cloudwatch.Metric:
    return workflow.machine.metric(name, statistic="Sum", period=_FIVE_MINUTES)


def _ours(name: str, statistic: str = "Maximum") -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=METRICS, metric_name=name, statistic=statistic, period=_FIVE_MINUTES
    )


def _of(function: PythonFunction, name: str, statistic: str) -> cloudwatch.Metric:
    return function.function.metric(
        name, statistic=statistic, period=_FIVE_MINUTES, label=function.node.id
    )


def _graph(title: str, metrics: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=8, height=6)
