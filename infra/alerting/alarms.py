"""Alarms that need a person, and a dashboard that shows what they watch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alerting.alarms_topic import AlarmsTopic
from infra.evaluation_workflow import EvaluationWorkflow
from infra.names import METRICS
from infra.python_function import PythonFunction

OLDEST = "OldestUnevaluatedStep"  # seconds; reported by the sweeper, which does not need the queue
RULE_ERRORS = "RuleErrors"
MISSED = "MissedNotifications"
NOT_SWEPT = "RunsNotSwept"
OUT_OF_BUDGET = "RulesOutOfBudget"
UNFINISHED = ("ExecutionsFailed", "ExecutionsTimedOut", "ExecutionThrottled")
"""CloudWatch counts an execution in one of them, and the last one without its plural."""
RUNBOOK = "docs/operations.md"
_FIVE_MINUTES = cdk.Duration.minutes(5)
_GOOD = cloudwatch.TreatMissingData.NOT_BREACHING
_BAD = cloudwatch.TreatMissingData.BREACHING


@dataclass(frozen=True)
class Watched:
    """What the alarms watch."""

    arrivals: sqs.Queue
    dead_letters: Sequence[sqs.Queue]
    workflow: EvaluationWorkflow
    ingest: PythonFunction
    evaluate: PythonFunction
    deployment: str  # the value of the metrics' dimension `service`


class Alarms(Construct):
    """Eight alarms over thirteen metrics, of which CloudWatch offers ten free of charge."""

    def __init__(self, scope: Construct, id: str, *, watched: Watched, topic: AlarmsTopic) -> None:
        super().__init__(scope, id)
        self._watched = watched
        self._topic = topic
        busy = [watched.ingest, watched.evaluate]
        self.oldest = _ours(OLDEST, watched.deployment)
        self.alarms = [
            self._alarm(
                "ArrivalsWait",
                "Files arrived 15 minutes ago and are not recorded yet",
                _age(watched.arrivals),
                900,
                periods=2,
            ),
            self._alarm(
                "StepsWait",
                "A step was saved 15 minutes ago and is not evaluated yet, a run cannot be swept, or "
                "nothing reports the age",
                self.oldest,
                900,
                periods=3,
                missing=_BAD,
            ),
            self._alarm(
                "DeadLetters",
                "Messages or events that could not be handled",
                _sum("dead letters", [_waiting(queue) for queue in watched.dead_letters]),
                1,
            ),
            self._alarm(
                "FunctionErrors",
                "Ingest or Evaluate has failed repeatedly for 15 minutes",
                _sum("errors", [_of(function, "Errors", "Sum") for function in busy]),
                10,
                periods=3,
            ),
            self._alarm(
                "Throttles",
                "The account's concurrency has been used up for 15 minutes",
                _sum("throttles", [_of(function, "Throttles", "Sum") for function in busy]),
                10,
                periods=3,
            ),
            self._alarm(
                "RecursiveCallsDropped",
                "Lambda has cut a chain of messages that the functions sent to themselves",
                _of(watched.ingest, "RecursiveInvocationsDropped", "Sum"),
                1,
            ),
            self._alarm(
                "FailedExecutions",
                "Groups of rules could not be evaluated, took too long or were throttled",
                _sum("executions", [_executions(watched.workflow, name) for name in UNFINISHED]),
                1,
            ),
            self._alarm(
                "BudgetSpent",
                "A custom rule has spent the budget of its run for the day, and is stopped",
                _ours(OUT_OF_BUDGET, watched.deployment, "Sum"),
                1,
            ),
        ]

    def show(self, functions: Sequence[PythonFunction], name: str | None = None) -> cloudwatch.Dashboard:
        """Add a dashboard, of this name if one is given: the alarms first, then what they watch."""
        watched = self._watched
        board = cloudwatch.Dashboard(
            self, "Dashboard", dashboard_name=name, default_interval=cdk.Duration.hours(3)
        )
        board.add_widgets(
            cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(self.alarms), width=24, height=3)
        )
        board.add_widgets(
            _graph("Oldest step not evaluated yet (s)", [self.oldest]),
            _graph("Age of the oldest arrival (s)", [_age(watched.arrivals)]),
            _graph("Dead letters", [_waiting(queue) for queue in watched.dead_letters]),
        )
        board.add_widgets(
            _graph(
                "Evaluations",
                [
                    _executions(watched.workflow, name)
                    for name in ("ExecutionsStarted", "ExecutionsSucceeded", *UNFINISHED)
                ],
            ),
            _graph(
                "Rules that raised or spent their budget; notifications that S3 lost; runs not swept",
                [
                    _ours(name, watched.deployment, "Sum")
                    for name in (RULE_ERRORS, OUT_OF_BUDGET, MISSED, NOT_SWEPT)
                ],
            ),
            _graph(
                "Recursive calls that were dropped",
                [_of(watched.ingest, "RecursiveInvocationsDropped", "Sum")],
            ),
        )
        board.add_widgets(
            *(
                _graph(title, [_of(function, metric, statistic) for function in functions])
                for title, metric, statistic in (
                    ("Errors of functions", "Errors", "Sum"),
                    ("Throttles of functions", "Throttles", "Sum"),
                    ("Duration of functions (ms)", "Duration", "Average"),
                )
            )
        )
        return board

    def _alarm(
        self,
        id: str,
        meaning: str,
        metric: cloudwatch.IMetric,
        threshold: int,
        *,
        periods: int = 1,
        missing: cloudwatch.TreatMissingData = _GOOD,
    ) -> cloudwatch.Alarm:
        alarm = cloudwatch.Alarm(
            self,
            id,
            alarm_description=f"{meaning}. {RUNBOOK} says what to do: {id}.",
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(self._topic.action)
        alarm.add_ok_action(self._topic.action)
        return alarm


def _age(queue: sqs.Queue) -> cloudwatch.Metric:
    return queue.metric_approximate_age_of_oldest_message(statistic="Maximum", period=_FIVE_MINUTES)


def _waiting(queue: sqs.Queue) -> cloudwatch.Metric:
    return queue.metric_approximate_number_of_messages_visible(
        statistic="Maximum", period=_FIVE_MINUTES, label=queue.node.path.split("/")[-2]
    )


def _executions(workflow: EvaluationWorkflow, name: str) -> cloudwatch.Metric:
    return workflow.machine.metric(name, statistic="Sum", period=_FIVE_MINUTES)


def _ours(name: str, deployment: str, statistic: str = "Maximum") -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=METRICS,
        metric_name=name,
        dimensions_map={"service": deployment},
        statistic=statistic,
        period=_FIVE_MINUTES,
    )


def _of(function: PythonFunction, name: str, statistic: str) -> cloudwatch.Metric:
    return function.function.metric(name, statistic=statistic, period=_FIVE_MINUTES, label=function.node.id)


def _sum(label: str, metrics: Sequence[cloudwatch.Metric]) -> cloudwatch.MathExpression:
    """The sum; a metric without values counts as 0."""
    named: dict[str, cloudwatch.IMetric] = {f"m{n}": metric for n, metric in enumerate(metrics)}
    return cloudwatch.MathExpression(
        expression=" + ".join(f"FILL({name}, 0)" for name in named),
        using_metrics=named,
        label=label,
        period=_FIVE_MINUTES,
    )


def _graph(title: str, metrics: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=8, height=6)
