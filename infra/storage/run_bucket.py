"""The bucket of the runs: the stack's own, or an existing one.

The application writes only keys that no notification matches, and its roles allow no others, so it
cannot trigger itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.acknowledgments import acknowledge
from infra.names import BUCKET, BUNDLES, STATE_BUCKET
from infra.python_function import PythonFunction
from infra.settings import Removal, Settings

STATE = "state/*.state"
EVIDENCE = "report/findings/*.finding"
CONTROL = "control/stop"
ZOOM = "control/zoom"
REPORT = "report/report.html"
RULE_SOURCES = "rule-sources/"
"""The prefix of the bucket from which custom rules may be loaded."""

PLAN, MANIFEST, ROWS = "plan", "manifest", "rows/*"
RESULTS = "results/*"
"""The objects of a backtest, below backtests/ and its id; a run may have no such place."""
ANY_BACKTEST = "Every backtest has a folder of its own below backtests/, which no run has."

BUNDLES_FOLDER = "backtests/bundles"
"""What makes backtests cheap; the names below it are digests, so no object of a backtest has such a key."""
ANY_BUNDLE = "Each run has a bundle there, whose name is a digest of the run's."

ANY_RUN = "A run may have any prefix of the bucket; nothing outside the bucket is read."
OTHER_RUNS = "Rules may compare runs with those in the buckets of `other_buckets`, which are only read."
OUR_OWN_KEYS = "Any run may have such an object; nothing else uses its suffix."


def kept_after_creation(removal: Removal) -> cdk.RemovalPolicy:
    """The policy of what holds runs or their records.

    It is kept on update and deletion. A creation that is rolled back deletes it, so that its name does not
    block the next attempt.
    """
    if removal is Removal.RETAIN:
        return cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
    return cdk.RemovalPolicy.DESTROY


class RunBucket(Construct):
    """The bucket that trainings save to."""

    def __init__(
        self, scope: Construct, id: str, *, settings: Settings, key: kms.IKey | None, name: str
    ) -> None:
        super().__init__(scope, id)
        self._key = key
        self._others = settings.other_buckets
        self.is_our_own = settings.bucket is None
        # A name known in advance: the queue must trust the bucket before the bucket can be created.
        self.name = settings.bucket or f"{name}-{cdk.Aws.ACCOUNT_ID}-{cdk.Aws.REGION}"
        self.arn = f"arn:{cdk.Aws.PARTITION}:s3:::{self.name}"
        self._bucket = self._our_own(settings) if self.is_our_own else None

    def notify(self, queue_arn: str, suffixes: Sequence[str], *, only_after: Construct) -> None:
        """Notify the queue of every new object with such a suffix, however it was uploaded."""
        assert self._bucket is not None
        resource = self._bucket.node.default_child
        assert isinstance(resource, s3.CfnBucket)
        # As a property: `add_event_notification` adds a function that may change any bucket.
        resource.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
            queue_configurations=[
                s3.CfnBucket.QueueConfigurationProperty(
                    event="s3:ObjectCreated:*",
                    queue=queue_arn,
                    filter=s3.CfnBucket.NotificationFilterProperty(
                        s3_key=s3.CfnBucket.S3KeyFilterProperty(
                            rules=[s3.CfnBucket.FilterRuleProperty(name="suffix", value=suffix)]
                        )
                    ),
                )
                for suffix in suffixes
            ]
        )
        self._bucket.node.add_dependency(only_after)

    def let_read(self, function: PythonFunction) -> None:
        """Read the files of runs. Missing keys return 404 only to callers with ListBucket."""
        function.may("s3:GetObject", on=[f"{self.arn}/*"], because=ANY_RUN)
        function.may("s3:ListBucket", on=[self.arn])
        function.knows(BUCKET, self.name)

    def let_read_steps(self, function: PythonFunction) -> None:
        """Read the files of the steps of runs, whose keys are known."""
        function.may("s3:GetObject", on=[*self.keys("index/*"), *self.keys("events/*")], because=ANY_RUN)

    def let_read_with_others(self, function: PythonFunction) -> None:
        """Read the files of runs, here and in the other buckets that rules may compare with."""
        self.let_read(function)
        others = [f"arn:{cdk.Aws.PARTITION}:s3:::{name}" for name in self._others]
        if others:
            function.may("s3:GetObject", on=[f"{bucket}/*" for bucket in others], because=OTHER_RUNS)
            function.may("s3:ListBucket", on=others)

    def let_keep_state(self, function: PythonFunction) -> None:
        """Write the state of rules that is too large for the table."""
        self._let_write(function, STATE)
        function.knows(STATE_BUCKET, self.name)

    def let_write_evidence(self, function: PythonFunction) -> None:
        """Write evidence that is too long for an event."""
        self._let_write(function, EVIDENCE)

    def let_write_report(self, function: PythonFunction) -> None:
        """Write the report of a finished run."""
        self._let_write(function, REPORT)

    def let_request_stop(self, function: PythonFunction) -> None:
        """Request that a training stops, by a control file that its hook checks for."""
        self._let_write(function, CONTROL)
        function.knows(BUCKET, self.name)

    def let_request_zoom(self, function: PythonFunction) -> None:
        """Request that a training saves whole tensors, by a control file that its hook checks for."""
        self._let_write(function, ZOOM)

    def let_use_backtests(
        self, function: PythonFunction, *, reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> None:
        """Read and write these objects of backtests."""
        if reads:
            function.may("s3:GetObject", on=self.of_backtests(*reads), because=ANY_BACKTEST)
        if writes:
            function.may("s3:PutObject", on=self.of_backtests(*writes), because=ANY_BACKTEST)
        function.knows(BUCKET, self.name)

    def let_keep_bundles(self, function: PythonFunction) -> None:
        """Write the bundles of runs, which hold nothing but files of the run."""
        function.may("s3:PutObject", on=[f"{self.arn}/{BUNDLES_FOLDER}/*"], because=ANY_BUNDLE)
        self.let_know_bundles(function)

    def let_know_bundles(self, function: PythonFunction) -> None:
        """Know where bundles are."""
        function.knows(BUNDLES, f"s3://{self.name}/{BUNDLES_FOLDER}")

    def let_count_steps(self, function: PythonFunction) -> None:
        """List the index files of runs."""
        function.may("s3:ListBucket", on=[self.arn])

    def of_backtests(self, *objects: str) -> list[str]:
        """The ARNs of these objects of any backtest."""
        return [f"{self.arn}/backtests/*/{name}" for name in objects]

    def keys(self, below_a_run: str) -> list[str]:
        """The ARNs of these keys of any run. The bucket's root is not a run."""
        return [f"{self.arn}/*/{below_a_run}"]

    def _let_write(self, function: PythonFunction, key: str) -> None:
        function.may("s3:PutObject", on=self.keys(key), because=OUR_OWN_KEYS)

    def _our_own(self, settings: Settings) -> s3.Bucket:
        kept = settings.run_retention_days
        rules = [
            s3.LifecycleRule(id="Unfinished", abort_incomplete_multipart_upload_after=cdk.Duration.days(7)),
            # Also without backtests: those of earlier ones shall go.
            s3.LifecycleRule(
                id="Bundles",
                prefix=f"{BUNDLES_FOLDER}/",
                expiration=cdk.Duration.days(max(1, settings.bundle_retention_days)),
            ),
        ]
        if kept is not None:
            rules += [
                s3.LifecycleRule(id=f"Old{number}", prefix=prefix, expiration=cdk.Duration.days(kept))
                for number, prefix in enumerate(settings.run_retention_prefixes, 1)
            ]
        bucket = s3.Bucket(
            self,
            "Bucket",
            bucket_name=self.name,
            encryption=s3.BucketEncryption.KMS if self._key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=self._key,
            bucket_key_enabled=True if self._key else None,
            enforce_ssl=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=rules,
            removal_policy=kept_after_creation(settings.removal_policy),
        )
        acknowledge(
            bucket,
            "S1",
            "A log object per request would outnumber the runs' own objects; "
            "CloudTrail's data events record the same.",
        )
        return bucket
