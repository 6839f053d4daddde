"""The queue of arrivals: new files from S3, ended jobs from SageMaker.

Reminders of the workflow (`{"check": run}`) use the same queue, and ingest passes them on to schedules:
polling a second queue would cost more in an idle month than everything else together.
"""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.events.dead_letters import Undelivered, encrypted_queue, let_bucket_send, let_rules_send
from infra.events.event_rule import EventRule
from infra.names import CHECKS_QUEUE
from infra.python_function import PythonFunction
from infra.roles import allow
from infra.storage.run_bucket import RunBucket

SUFFIXES = (".tfevents", ".json", "training_job_end.ts")
"""The suffixes of a run's files. S3 refuses overlapping notifications, and has no wildcards."""

PATTERNS: dict[str, list[Any]] = {
    "EventFiles": [{"wildcard": "*/events/*.tfevents"}, {"wildcard": "events/*.tfevents"}],
    "IndexFiles": [{"wildcard": "*/index/*/*.json"}, {"wildcard": "index/*/*.json"}],
    "CollectionFiles": [{"wildcard": "*/collections/*.json"}, {"wildcard": "collections/*.json"}],
    "OtherFiles": [
        {"suffix": "/training_job_end.ts"},
        "training_job_end.ts",
        {"suffix": "/rules.json"},
        "rules.json",
        {"suffix": ".stall.json"},
    ],
}
"""The same for EventBridge, for any run or one at the bucket's root; one simple rule per kind."""

TRIES = 60


class ArrivalsQueue(Construct):
    """A queue that loses nothing: a message that is not handled within half an hour becomes a dead letter.

    A message comes back as soon as no call can be at work on it, so that an account that was full for a
    moment delays it by little. Lambda counts calls that were throttled as tries: hence so many of them.
    """

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
            visible_again_after=cdk.Duration.seconds(handled_within),
            dead_letters=self.dead_letters,
            tries=TRIES,
        )
        arn = self.queue.queue_arn
        rules = [
            EventRule(
                self,
                "EndedJobs",
                does="Ended SageMaker training jobs, whose runs have ended, too",
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
            let_bucket_send(self.queue, bucket.arn)
            policy = self.queue.node.find_child("Policy")
            assert isinstance(policy, Construct)
            bucket.notify(arn, SUFFIXES, only_after=policy)
        else:
            rules += [
                EventRule(
                    self,
                    name,
                    does=f"New {name} in {bucket.name}",
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
        let_rules_send(self.queue, [rule.arn for rule in rules])

    def feed(self, function: PythonFunction, *, batch_window: int, at_once: int) -> None:
        """Pass at most so many batches at once to the function, which reports those to deliver again."""
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
            scaling_config=lambda_.CfnEventSourceMapping.ScalingConfigProperty(maximum_concurrency=at_once),
        ).node.add_dependency(function.role)

    def let_send_reminders(self, function: PythonFunction) -> None:
        """Send delayed reminders to this queue."""
        function.may("sqs:SendMessage", on=[self.queue.queue_arn])
        function.knows(CHECKS_QUEUE, self.queue.queue_url)

    def let_role_send_reminders(self, role: iam.Role) -> None:
        """Send delayed reminders, as the workflow."""
        allow(role, "sqs:SendMessage", on=[self.queue.queue_arn])
