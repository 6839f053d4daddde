"""The table of the step index: which workers have written which steps, and how far each rule is."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.checks.warm_table import reads_for
from infra.names import TABLE
from infra.python_function import PythonFunction
from infra.settings import Settings
from infra.storage.run_bucket import kept_after_creation


class StepTable(Construct):
    """The stack's own table, paid by use, whose old items expire; or one that a deleted stack has kept."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, key: kms.IKey | None) -> None:
        super().__init__(scope, id)
        own = None if settings.table else self._our_own(settings, key)
        self.name = own.table_name if own else str(settings.table)
        # No lookup: synthesis asks AWS nothing.
        here = f"arn:{cdk.Aws.PARTITION}:dynamodb:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}"
        self._arn = own.table_arn if own else f"{here}:table/{self.name}"

    def let_record_arrivals(self, function: PythonFunction) -> None:
        """Start runs, record arrivals and rules, and move runs on and off the finished list."""
        self._let(function, "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem")

    def let_track_runs(self, function: PythonFunction) -> None:
        """Read the progress of runs, and change their state."""
        self._let(function, "GetItem", "Query", "UpdateItem")

    def let_evaluate(self, function: PythonFunction) -> None:
        """Hold the lease of a group of rules, commit findings, and remove a lane that has caught up."""
        self._let(function, "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem")

    def let_claim(self, function: PythonFunction) -> None:
        """Hold the lease of a group of rules, read its due steps, and commit findings."""
        self._let(function, "GetItem", "Query", "PutItem", "UpdateItem")

    def let_record_outcomes(self, function: PythonFunction) -> None:
        """Record the outcome of a finding's actions."""
        self._let(function, "Query", "PutItem", "UpdateItem")

    def let_read(self, function: PythonFunction) -> None:
        """Read the records and findings of runs."""
        self._let(function, "Query")

    def let_claim_messages(self, function: PythonFunction) -> None:
        """Claim an alert, so that repeated events send it once."""
        self._let(function, "UpdateItem")

    def let_count_spending(self, function: PythonFunction) -> None:
        """Count what a backtest has spent."""
        self._let(function, "UpdateItem")

    def let_find_runs(self, function: PythonFunction) -> None:
        """List the runs, and read when they saved their newest step."""
        self._let(function, "GetItem", "Query")

    def let_mark_published(self, function: PythonFunction) -> None:
        """Remove events from an outbox once they are on the bus."""
        self._let(function, "UpdateItem")

    def _let(self, function: PythonFunction, *actions: str) -> None:
        function.may(*(f"dynamodb:{action}" for action in actions), on=[self._arn])
        function.knows(TABLE, self.name)

    def _our_own(self, settings: Settings, key: kms.IKey | None) -> dynamodb.Table:
        # Not TableV2: with the user's key, it needs to know its region at synthesis.
        return dynamodb.Table(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if key else dynamodb.TableEncryption.DEFAULT,
            encryption_key=key,
            time_to_live_attribute="expires",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=settings.point_in_time_recovery
            ),
            warm_throughput=_warm(settings.table_writes_per_second),
            # No deletion protection: CloudFormation could not roll back a failed creation.
            removal_policy=kept_after_creation(settings.removal_policy),
        )


def _warm(writes: int) -> dynamodb.WarmThroughput | None:
    if not writes:
        return None
    return dynamodb.WarmThroughput(write_units_per_second=writes, read_units_per_second=reads_for(writes))
