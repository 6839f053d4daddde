"""The queue of what has arrived: S3 says which files are new, SageMaker which jobs are over.

Our own reminders (`{"check": run}`) go the same way: a second queue for Lambda to look into would cost
more in an idle month than everything else together.
"""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.dead_letters import Undelivered, encrypted_queue, let_send
from infra.event_rule import EventRule
from infra.names import CHECKS_QUEUE
from infra.python_function import PythonFunction, allow
from infra.run_bucket import RunBucket

SUFFIXES = (".tfevents", ".json", "training_job_end.ts")
"""What the keys of a run's files end with. S3 refuses notifications that overlap, and knows no wildcards."""

PATTERNS: dict[str, list[Any]] = {
    "EventFiles": [{"wildcard": "*/events/*.tfevents"}, {"wildcard": "events/*.tfevents"}],
    "IndexFiles": [{"wildcard": "*/index/*/*.json"}, {"wildcard": "index/*/*.json"}],
    "CollectionFiles": [{"wildcard": "*/collections/*.json"}, {"wildcard": "collections/*.json"}],
    "OtherFiles": [
        *({"suffix": "/training_job_end.ts"}, "training_job_end.ts"),
        *({"suffix": "/rules.json"}, "rules.json"),
    ],
}
"""The same for EventBridge, any run or one at the bucket's root. Several rules: each has to stay simple."""


class ArrivalsQueue(Construct):
    """Nothing here is lost: what cannot be handled five times waits among the dead letters."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        bucket: RunBucket,
        undelivered: Undelivered,
        handled_within: int,
    ) -> None:
        super().__init__(scope, id)
        self.dead_letters = encrypted_queue(self, "DeadLetters")
        self.queue = encrypted_queue(
            self,
            "Queue",
            visible_again_after=cdk.Duration.seconds(6 * handled_within),
            dead_letters=self.dead_letters,
        )
        arn = self.queue.queue_arn
        rules = [
            EventRule(
                self,
                "EndedJobs",
                does="SageMaker training jobs that are over: their runs are, too",
                undelivered=undelivered,
                target=arn,
                pattern={
                    "source": ["aws.sagemaker"],
                    "detail-type": ["SageMaker Training Job State Change"],
                    "detail": {"TrainingJobStatus": ["Completed", "Failed", "Stopped"]},
                },
            )
        ]
        if bucket.is_our_own:
            let_send(self.queue, "s3.amazonaws.com", [bucket.arn])
            policy = self.queue.node.find_child("Policy")
            assert isinstance(policy, Construct)
            bucket.notify(arn, SUFFIXES, only_after=policy)
        else:
            rules += [
                EventRule(
                    self,
                    name,
                    does=f"{name} that are new in {bucket.name}",
                    undelivered=undelivered,
                    target=arn,
                    pattern={
                        "source": ["aws.s3"],
                        "detail-type": ["Object Created"],
                        "detail": {"bucket": {"name": [bucket.name]}, "object": {"key": keys}},
                    },
                )
                for name, keys in PATTERNS.items()
            ]
        let_send(self.queue, "events.amazonaws.com", [rule.arn for rule in rules])

    def feed(self, function: PythonFunction, *, batch_window: int) -> None:
        """Hand batches to the function, which says of each message whether it has to come again."""
        arn = self.queue.queue_arn
        function.may(
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ChangeMessageVisibility",
            on=[arn],
        )
        lambda_.CfnEventSourceMapping(
            self,
            "Mapping",
            event_source_arn=arn,
            function_name=function.name,
            batch_size=1000 if batch_window else 10,  # more than ten only with a window
            maximum_batching_window_in_seconds=batch_window,
            function_response_types=["ReportBatchItemFailures"],
        ).node.add_dependency(function.role)

    def let_leave_checks(self, function: PythonFunction) -> None:
        """Leave a message that comes later: was it done?"""
        function.may("sqs:SendMessage", on=[self.queue.queue_arn])
        function.knows(CHECKS_QUEUE, self.queue.queue_url)

    def let_role_leave_checks(self, role: iam.Role) -> None:
        """The same, for the workflow."""
        allow(role, "sqs:SendMessage", on=[self.queue.queue_arn])
