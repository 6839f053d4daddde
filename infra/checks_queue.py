"""Messages that the application leaves itself: look later whether it was done."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.arrivals_queue import feed
from infra.dead_letters import encrypted_queue
from infra.names import CHECKS_QUEUE
from infra.python_function import PythonFunction


class ChecksQueue(Construct):
    """Each message names its own delay. At most one waits per run."""

    def __init__(self, scope: Construct, id: str, *, handled_within: int) -> None:
        super().__init__(scope, id)
        self.dead_letters = encrypted_queue(self, "DeadLetters")
        self.queue = encrypted_queue(
            self,
            "Queue",
            visible_again_after=cdk.Duration.seconds(6 * handled_within),
            dead_letters=self.dead_letters,
        )

    @property
    def url(self) -> str:
        return self.queue.queue_url

    def feed(self, function: PythonFunction) -> None:
        """Hand the messages to the function that checks."""
        feed(self, function, self.queue.queue_arn, batch_window=0)

    def let_leave_checks(self, function: PythonFunction) -> None:
        """Ask for a check later."""
        function.may("sqs:SendMessage", on=[self.queue.queue_arn])
        function.knows(CHECKS_QUEUE, self.url)

    def let_role_leave_checks(self, role: iam.Role) -> None:
        """The same, for the workflow."""
        role.add_to_policy(
            iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[self.queue.queue_arn])
        )
