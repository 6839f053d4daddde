"""Checks of a live stack from outside, for `smdebug doctor --deployed`.

They read what AWS knows about its resources and change nothing. No function of the debugger is called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from smdebug.exceptions import SMDebugError
from smdebug.service.aws import Clients, Deployment, aws_errors, default_clients, find_deployment
from smdebug.service.checks.webhook_checks import check_webhook

State = Literal["well", "absent", "wrong"]
RUNBOOK = "docs/operations.md, Runbook"
_SWEEPS_WITHIN = timedelta(minutes=15)
_SUFFIXES = frozenset((".tfevents", ".json", "training_job_end.ts"))


class LiveCheck(NamedTuple):
    """The result of one check; what is `absent` is not wrong."""

    what: str
    state: State
    found: str
    hint: str = ""


def check_deployment(stack: str, clients: Clients | None = None) -> list[LiveCheck]:
    """Run all checks; one that AWS refuses is wrong, and the others are still made."""
    clients = clients or default_clients()
    try:
        deployment = find_deployment(stack, clients)
        live = _Live(stack, deployment, clients)
    except SMDebugError as error:
        hint = "Deploy it (docs/deploy.md), or name it: --stack NAME"
        return [LiveCheck("stack", "wrong", str(error), hint)]
    checks = []
    for what, check in (
        ("stack", live.stack),
        ("step index", live.table),
        ("notifications", live.notifications),
        ("arrivals", live.arrivals),
        ("dead letters", live.dead_letters),
        ("sweeper", live.sweeper),
        ("alarms", live.alarms),
        ("recipients", live.recipients),
        ("webhooks", live.webhooks),
        ("concurrency", live.concurrency),
    ):
        try:
            checks += [LiveCheck(what, *found) for found in check()]
        except SMDebugError as error:
            checks.append(LiveCheck(what, "wrong", str(error)))
    return checks


Found = tuple[State, str, str]


class _Live:
    """The resources of a stack, by type and logical name."""

    def __init__(self, stack: str, deployment: Deployment, clients: Clients):
        self._stack = stack
        self._deployment = deployment
        self._clients = clients
        self._resources: dict[str, dict[str, str]] = defaultdict(dict)
        pages = clients("cloudformation").get_paginator("list_stack_resources")
        with aws_errors(f"The stack {stack}", "cloudformation:ListStackResources"):
            for page in pages.paginate(StackName=stack):
                for found in page["StackResourceSummaries"]:
                    if name := found.get("PhysicalResourceId"):
                        self._resources[found["ResourceType"]][found["LogicalResourceId"]] = name

    def stack(self) -> Iterator[Found]:
        (found,) = self._call("cloudformation", "describe_stacks", StackName=self._stack)["Stacks"]
        status = str(found["StackStatus"])
        good = status in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE")
        hint = "Deploy again: `make deploy` says what AWS refuses."
        yield _result(good, f"{self._stack} is {status}", hint)

    def table(self) -> Iterator[Found]:
        name = self._deployment.table
        table = self._call("dynamodb", "describe_table", TableName=name)["Table"]
        expiry = self._call("dynamodb", "describe_time_to_live", TableName=name)
        ttl = expiry["TimeToLiveDescription"].get("TimeToLiveStatus")
        good = table["TableStatus"] == "ACTIVE" and ttl == "ENABLED"
        found = f"{name} is {table['TableStatus']}, expiry of old records is {ttl}"
        yield _result(good, found, "Deploy again: the template enables the expiry.")

    def notifications(self) -> Iterator[Found]:
        bucket = self._deployment.bucket
        configured = self._call("s3", "get_bucket_notification_configuration", Bucket=bucket)
        if "EventBridgeConfiguration" in configured:
            yield "well", f"{bucket} sends its events to EventBridge", ""
            return
        queues = {url.rsplit("/", 1)[-1] for url in self._queues("Arrivals")}
        suffixes = {
            rule["Value"]
            for queue in configured.get("QueueConfigurations", [])
            if queue["QueueArn"].rsplit(":", 1)[-1] in queues
            for rule in queue.get("Filter", {}).get("Key", {}).get("FilterRules", [])
        }
        missing = ", ".join(sorted(_SUFFIXES - suffixes))
        found = f"{bucket} does not notify of {missing}" if missing else f"{bucket} notifies"
        hint = (
            "Deploy again. For a bucket of your own, run the stack's output TurnOnEvents: no rule is "
            "evaluated until then."
        )
        yield _result(not missing, found, hint)

    def arrivals(self) -> Iterator[Found]:
        mappings = self._resources["AWS::Lambda::EventSourceMapping"].values()
        for uuid in mappings:
            mapping = self._call("lambda", "get_event_source_mapping", UUID=uuid)
            good = mapping["State"] in ("Enabled", "Enabling", "Updating")
            found = f"the queue is read: {mapping['State']}"
            yield _result(good, found, "Enable the trigger of the function Ingest in its console.")
        for url in self._queues("ArrivalsQueue"):
            waiting = self._waiting(url)
            yield "well", f"{waiting} messages wait", ""

    def dead_letters(self) -> Iterator[Found]:
        for url in [*self._queues("DeadLetters"), *self._queues("Undelivered")]:
            waiting = self._waiting(url)
            yield _result(waiting == 0, f"{waiting} in {url.rsplit('/', 1)[-1]}", f"{RUNBOOK}: DeadLetters.")

    def sweeper(self) -> Iterator[Found]:
        for logical, function in self._resources["AWS::Lambda::Function"].items():
            if "SweepFunction" not in logical:
                continue
            now = datetime.now(UTC)
            points = self._call(
                "cloudwatch",
                "get_metric_statistics",
                Namespace="AWS/Lambda",
                MetricName="Invocations",
                Dimensions=[{"Name": "FunctionName", "Value": function}],
                StartTime=now - _SWEEPS_WITHIN,
                EndTime=now,
                Period=int(_SWEEPS_WITHIN.total_seconds()),
                Statistics=["Sum"],
            )["Datapoints"]
            calls = sum(point["Sum"] for point in points)
            found = f"{calls:.0f} calls in the last 15 minutes"
            yield _result(calls > 0, found, f"{RUNBOOK}: StepsWait.")

    def alarms(self) -> Iterator[Found]:
        # CloudFormation begins the names with the stack's.
        prefix = f"{self._stack}-"
        found = self._call("cloudwatch", "describe_alarms", AlarmNamePrefix=prefix)
        described = found["MetricAlarms"]
        if not described:
            yield "wrong", "the stack has none", "Deploy again."
            return
        raised = [alarm["AlarmName"] for alarm in described if alarm["StateValue"] == "ALARM"]
        for name in raised:
            yield "wrong", f"{name} is raised", f"{RUNBOOK} has a section for it."
        if not raised:
            yield "well", f"none of {len(described)} is raised", ""

    def recipients(self) -> Iterator[Found]:
        for logical, topic in self._resources["AWS::SNS::Topic"].items():
            known = self._call("sns", "list_subscriptions_by_topic", TopicArn=topic)
            subscriptions = known["Subscriptions"]
            what = "alarms" if "Alarms" in logical else "alerts"
            pending = [
                found["Endpoint"]
                for found in subscriptions
                if found["SubscriptionArn"] == "PendingConfirmation"
            ]
            for endpoint in pending:
                hint = "The link is in an email of AWS Notifications; deploy again to get another."
                yield "wrong", f"{endpoint} has not confirmed the {what}", hint
            if not subscriptions:
                hint = "Deploy with -c alert_emails=you@example.org."
                yield "absent", f"the {what} have no recipient", hint
            elif not pending:
                yield "well", f"{len(subscriptions)} get the {what}", ""

    def webhooks(self) -> Iterator[Found]:
        functions = self._resources["AWS::Lambda::Function"].items()
        posting = [function for logical, function in functions if "PostTo" in logical]
        for function in posting:
            yield from check_webhook(self._call, function)
        if not posting:
            yield "absent", "none gets the events", ""

    def concurrency(self) -> Iterator[Found]:
        limit = self._call("lambda", "get_account_settings")["AccountLimit"]
        free, most = limit["UnreservedConcurrentExecutions"], limit["ConcurrentExecutions"]
        found = f"{most} functions at once in this account, {free} of them unreserved"
        hint = "docs/operations.md, Concurrency: ask AWS for a higher quota."
        yield _result(free >= 10, found, hint)
        for uuid in self._resources["AWS::Lambda::EventSourceMapping"].values():
            mapping = self._call("lambda", "get_event_source_mapping", UUID=uuid)
            deployed = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
            if deployed is not None:
                yield compare_concurrency(most, deployed)

    def _call(self, service: str, operation: str, **arguments: Any) -> Mapping[str, Any]:
        words = operation.split("_")
        permission = f"{service}:{''.join(map(str.capitalize, words))}"
        with aws_errors(f"The stack {self._stack}", permission):
            answer: Mapping[str, Any] = getattr(self._clients(service), operation)(**arguments)
            return answer

    def _queues(self, name: str) -> list[str]:
        found = self._resources["AWS::SQS::Queue"].items()
        return [url for logical, url in found if name in logical]

    def _waiting(self, url: str) -> int:
        name = "ApproximateNumberOfMessages"
        answer = self._call("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=[name])
        return int(answer["Attributes"][name])


def compare_concurrency(quota: int, batches_at_once: int) -> Found:
    """Compare the batches of arrivals that the stack handles at once with those of an account's quota."""
    fitting = batches_of(quota)
    found = f"deployed for {batches_at_once} batches of arrivals at once; {fitting} fit the account"
    hint = f"Deploy with -c account_concurrency={quota}."
    if batches_at_once > fitting:
        return "wrong", found, f"{hint} Now the arrivals leave too little to the rules."
    return ("absent", found, hint) if batches_at_once < fitting else ("well", found, "")


def batches_of(quota: int) -> int:
    """Return how many batches of arrivals a stack handles at once that is deployed for this quota."""
    return max(2, min(1000, quota // 20))


def _result(good: bool, found: str, hint: str) -> Found:
    return ("well", found, "") if good else ("wrong", found, hint)
