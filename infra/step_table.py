"""The table behind the step index: who has written what, and how far each rule has come."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.names import TABLE
from infra.python_function import PythonFunction
from infra.settings import Removal, Settings


class StepTable(Construct):
    """One table, paid by use; what is old forgets itself."""

    def __init__(
        self, scope: Construct, id: str, *, settings: Settings, key: kms.IKey | None
    ) -> None:
        super().__init__(scope, id)
        self._key = key
        # Not TableV2: with a key of the user's, that one has to know its region at synthesis.
        self._table = dynamodb.Table(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED
            if key
            else dynamodb.TableEncryption.DEFAULT,
            encryption_key=key,
            time_to_live_attribute="expires",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=settings.point_in_time_recovery
            ),
            removal_policy=cdk.RemovalPolicy[settings.removal_policy.name],
            deletion_protection=settings.removal_policy is Removal.RETAIN,
        )

    @property
    def name(self) -> str:
        return self._table.table_name

    def let_take_in(self, function: PythonFunction) -> None:
        """Begin runs, note what has arrived, and who watches; a run that goes on is no past one."""
        self._let(function, "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem")

    def let_look_after(self, function: PythonFunction) -> None:
        """See how far runs are, and change what is noted of them."""
        self._let(function, "GetItem", "Query", "UpdateItem")

    def let_take_in_and_unlist(self, function: PythonFunction) -> None:
        """The same as taking in, and stop watching what is over."""
        self._let(function, "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem")

    def let_evaluate(self, function: PythonFunction) -> None:
        """Hold the lease of a group of rules, commit what was found, let a lane that is level end."""
        self._let(function, "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem")

    def let_claim(self, function: PythonFunction) -> None:
        """Hold the lease of a group of rules, read its due steps, and keep what was found."""
        self._let(function, "GetItem", "Query", "PutItem", "UpdateItem")

    def let_note_outcomes(self, function: PythonFunction) -> None:
        """Write down what became of a finding's actions."""
        self._let(function, "Query", "PutItem", "UpdateItem")

    def let_read(self, function: PythonFunction) -> None:
        """See what is known of runs, and what was found in them."""
        self._let(function, "Query")

    def let_note_what_was_sent(self, function: PythonFunction) -> None:
        """Own a message to people: who else has the same event keeps quiet."""
        self._let(function, "UpdateItem")

    def let_mark_published(self, function: PythonFunction) -> None:
        """Take events out of an outbox, once the bus has them."""
        self._let(function, "UpdateItem")

    def _let(self, function: PythonFunction, *actions: str) -> None:
        function.may(*(f"dynamodb:{action}" for action in actions), on=[self._table.table_arn])
        if self._key:
            function.may("kms:Decrypt", on=[self._key.key_arn])
        function.knows(TABLE, self._table.table_name)
