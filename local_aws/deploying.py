"""A small CloudFormation: makes what a template names, in the order of its references, or raises.

moto has one too, but it leaves out bucket notifications, layers and policies without a word.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from local_aws.assembly import Assembly
from local_aws.calls import Asked, bus_arn, queue_arn
from local_aws.errors import Unsupported
from local_aws.functions import Function
from local_aws.permissions import Caller, Policies
from local_aws.template import ACCOUNT, REGION, Resolver, known_only

Properties = Mapping[str, Any]
Made = tuple[str, dict[str, str]]  # what Ref gives, and what Fn::GetAtt does
_HERE = f"{REGION}:{ACCOUNT}"


@dataclass(frozen=True)
class QueueMapping:
    """An event source mapping: batches of a queue for a function."""

    queue: str  # its name
    function: str
    batch_size: int
    window: float
    tells_failures: bool


@dataclass(frozen=True)
class Destination:
    """An endpoint of HTTP that EventBridge posts to."""

    method: str
    url: str
    headers: Mapping[str, str]


@dataclass
class Deployed:
    """What came of the template."""

    policies: Policies = field(default_factory=Policies)
    functions: dict[str, Function] = field(default_factory=dict)
    mappings: list[QueueMapping] = field(default_factory=list)
    destinations: dict[str, Destination] = field(default_factory=dict)
    machines: dict[str, str] = field(default_factory=dict)  # ARN -> the ARN of its role
    physical: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)


def deploy(
    assembly: Assembly,
    client: Callable[[str], Any],
    *,
    into: Deployed,
    secret: Callable[[str, str], str],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Make everything in the template. `environment` changes what the functions are told, by name."""
    _Deployer(assembly, client, into, secret, environment or {}).run()


class _Deployer:
    def __init__(
        self,
        assembly: Assembly,
        client: Callable[[str], Any],
        into: Deployed,
        secret: Callable[[str, str], str],
        environment: Mapping[str, str],
    ):
        self._assembly = assembly
        self._template = assembly.template
        self._client = client
        self._environment = environment
        self._resolve = Resolver(self._template, assembly.stack, made=self._made_of, secret=secret)
        self._made: dict[str, Made] = {}
        self._being_made: set[str] = set()
        self._layers: dict[str, Path] = {}
        self._connections: dict[str, Properties] = {}
        self._later: list[Callable[[], None]] = []
        self.done = into
        self._policies = self.done.policies

    def run(self) -> None:
        known_only(
            "template",
            self._assembly.stack,
            self._template,
            ("Description", "Resources", "Outputs", "Parameters", "Rules", "Metadata"),
        )
        for name in self._template["Resources"]:
            self._made_of(name)
        for check in self._later:  # what needs policies that the template makes in any order
            check()
        self.done.physical = {name: made[0] for name, made in self._made.items()}
        self.done.outputs = {
            name: str(self._resolve(told["Value"]))
            for name, told in self._template.get("Outputs", {}).items()
        }

    def _made_of(self, name: str) -> Made:
        if name not in self._made:
            if name in self._being_made:
                raise Unsupported(f"{name} needs itself, by way of what it refers to")
            self._being_made.add(name)
            self._make(name)
        return self._made[name]

    def _make(self, name: str) -> None:
        if name not in self._template["Resources"]:
            raise Unsupported(f"The template refers to {name}, which it does not define")
        resource = self._template["Resources"][name]
        if "Condition" in resource:
            raise Unsupported(f"{name} is made under a condition, unknown to the local stack")
        needed = resource.get("DependsOn", [])
        for other in [needed] if isinstance(needed, str) else needed:
            self._made_of(other)
        kind = resource["Type"]
        if kind not in _KINDS:
            raise Unsupported(
                f"{name} is of the type {kind}, which the local stack does not know; "
                "local_aws/deploying.py makes those that it does"
            )
        maker, known = _KINDS[kind]
        properties = self._resolve(resource.get("Properties", {}))
        known_only(kind, name, properties, known)
        self._made[name] = maker(self, name, properties)

    def _name(self, logical: str, given: str | None, most: int = 64) -> str:
        """The name that was chosen, or one as CloudFormation makes it: the same each time."""
        if given:
            return given
        end = sha256(f"{self._assembly.stack}/{logical}".encode()).hexdigest()[:12].upper()
        return f"{self._assembly.stack}-{logical}"[: most - 13] + f"-{end}"

    # Permissions

    def role(self, name: str, told: Properties) -> Made:
        made = self._client("iam").create_role(
            RoleName=self._name(name, told.get("RoleName")),
            AssumeRolePolicyDocument=json.dumps(told["AssumeRolePolicyDocument"]),
        )["Role"]
        self._policies.add_role(made["Arn"], told["AssumeRolePolicyDocument"])
        return made["RoleName"], {"Arn": made["Arn"], "RoleId": made["RoleId"]}

    def policy(self, name: str, told: Properties) -> Made:
        for role in told["Roles"]:
            arn = f"arn:aws:iam::{ACCOUNT}:role/{role}"
            self._policies.add_to_role(arn, told["PolicyDocument"])
        return name, {}

    def queue_policy(self, name: str, told: Properties) -> Made:
        for url in told["Queues"]:
            self._policies.add_to_resource(queue_arn(url), told["PolicyDocument"])
        return name, {}

    def topic_policy(self, name: str, told: Properties) -> Made:
        for arn in told["Topics"]:
            self._policies.add_to_resource(arn, told["PolicyDocument"])
        return name, {}

    def bucket_policy(self, name: str, told: Properties) -> Made:
        # Not given to moto: it knows no conditions, and would refuse whoever comes without TLS.
        self._policies.add_to_resource(f"arn:aws:s3:::{told['Bucket']}", told["PolicyDocument"])
        return name, {}

    def bus_policy(self, name: str, told: Properties) -> Made:
        arn = bus_arn(told["EventBusName"])
        self._policies.add_to_resource(arn, {"Statement": [told["Statement"]]})
        return name, {}

    def permission(self, name: str, told: Properties) -> Made:
        function = told["FunctionName"]
        arn = function if function.startswith("arn:") else _function_arn(function)
        conditions = {
            "ArnLike": {"aws:SourceArn": told.get("SourceArn", "*")},
            "StringEquals": {"aws:SourceAccount": told.get("SourceAccount", ACCOUNT)},
        }
        statement = {
            "Effect": "Allow",
            "Action": told["Action"],
            "Resource": arn,
            "Principal": {"Service": told["Principal"]},
            "Condition": conditions,
        }
        self._policies.add_to_resource(arn, {"Statement": [statement]})
        return name, {}

    # Where things are

    def bucket(self, name: str, told: Properties) -> Made:
        bucket = told["BucketName"]
        client = self._client("s3")
        client.create_bucket(Bucket=bucket)
        notified = told.get("NotificationConfiguration", {})
        known_only(
            "AWS::S3::Bucket.NotificationConfiguration", name, notified, ["QueueConfigurations"]
        )
        if notified:
            client.put_bucket_notification_configuration(
                Bucket=bucket,
                NotificationConfiguration={
                    "QueueConfigurations": [
                        {
                            "QueueArn": one["Queue"],
                            "Events": [one["Event"]],
                            "Filter": {"Key": {"FilterRules": one["Filter"]["S3Key"]["Rules"]}},
                        }
                        for one in notified["QueueConfigurations"]
                    ]
                },
            )
        arn = f"arn:aws:s3:::{bucket}"
        return bucket, {"Arn": arn, "DomainName": f"{bucket}.s3.amazonaws.com"}

    def queue(self, name: str, told: Properties) -> Made:
        attributes = {
            key: json.dumps(value)
            if isinstance(value, dict)
            else str(value).lower()
            if isinstance(value, bool)
            else str(value)
            for key, value in told.items()
            if key != "QueueName"
        }
        queue = self._name(name, told.get("QueueName"), 80)
        url = self._client("sqs").create_queue(QueueName=queue, Attributes=attributes)["QueueUrl"]
        return url, {"Arn": queue_arn(url), "QueueName": queue, "QueueUrl": url}

    def topic(self, name: str, told: Properties) -> Made:
        topic = self._name(name, told.get("TopicName"))
        arn = self._client("sns").create_topic(Name=topic)["TopicArn"]
        return arn, {"TopicArn": arn, "TopicName": topic}

    def subscription(self, name: str, told: Properties) -> Made:
        attributes = (
            {"FilterPolicy": json.dumps(told["FilterPolicy"])} if "FilterPolicy" in told else {}
        )
        arn = self._client("sns").subscribe(
            TopicArn=told["TopicArn"],
            Protocol=told["Protocol"],
            Endpoint=told["Endpoint"],
            Attributes=attributes,
            ReturnSubscriptionArn=True,
        )["SubscriptionArn"]
        return arn, {}

    def table(self, name: str, told: Properties) -> Made:
        client = self._client("dynamodb")
        table = client.create_table(
            TableName=self._name(name, told.get("TableName")),
            KeySchema=told["KeySchema"],
            AttributeDefinitions=told["AttributeDefinitions"],
            BillingMode=told["BillingMode"],
        )["TableDescription"]
        if "TimeToLiveSpecification" in told:
            client.update_time_to_live(
                TableName=table["TableName"],
                TimeToLiveSpecification=told["TimeToLiveSpecification"],
            )
        return table["TableName"], {"Arn": table["TableArn"]}

    def log_group(self, name: str, told: Properties) -> Made:
        group = told.get("LogGroupName") or self._name(name, None, 512)
        client = self._client("logs")
        client.create_log_group(logGroupName=group)
        if "RetentionInDays" in told:
            client.put_retention_policy(logGroupName=group, retentionInDays=told["RetentionInDays"])
        return group, {"Arn": f"arn:aws:logs:{_HERE}:log-group:{group}:*"}

    # Who does something

    def layer(self, name: str, told: Properties) -> Made:
        version = self._client("lambda").publish_layer_version(
            LayerName=self._name(name, told.get("LayerName")),
            Content={"ZipFile": _EMPTY_ZIP},
            CompatibleRuntimes=told.get("CompatibleRuntimes", []),
        )["LayerVersionArn"]
        self._layers[version] = self._asset(told["Content"])
        return version, {}

    def function(self, name: str, told: Properties) -> Made:
        function = self._name(name, told.get("FunctionName"))
        group = told.get("LoggingConfig", {}).get("LogGroup", f"/aws/lambda/{function}")
        variables = {**told.get("Environment", {}).get("Variables", {}), **self._environment}
        arn = self._client("lambda").create_function(
            FunctionName=function,
            Code={"ZipFile": _EMPTY_ZIP},
            Handler=told["Handler"],
            Role=told["Role"],
            Runtime=told["Runtime"],
            Timeout=told["Timeout"],
            MemorySize=told["MemorySize"],
            Environment={"Variables": variables},
        )["FunctionArn"]
        self.done.functions[function] = Function(
            name=function,
            arn=arn,
            role=told["Role"],
            handler=told["Handler"],
            code=self._asset(told["Code"]),
            layers=tuple(self._layers[one] for one in told.get("Layers", [])),
            environment=variables,
            timeout=told["Timeout"],
            memory_mb=told["MemorySize"],
            log_group=group,
            dead_letters=told.get("DeadLetterConfig", {}).get("TargetArn"),
        )
        self._later.append(lambda: self._policies.may_assume("lambda.amazonaws.com", told["Role"]))
        return function, {"Arn": arn}

    def mapping(self, name: str, told: Properties) -> Made:
        # moto's own mapping hands over one message at a time, inside of SendMessage: ours is in queues.py.
        function = self.done.functions[told["FunctionName"]]
        asked = [
            Asked(f"sqs:{action}", told["EventSourceArn"])
            for action in (
                "ReceiveMessage",
                "DeleteMessage",
                "GetQueueAttributes",
                "ChangeMessageVisibility",
            )
        ]
        # Lambda makes no mapping for a role that may not do all of these.
        self._later += [_check(self._policies, function.role, one) for one in asked]
        self.done.mappings.append(
            QueueMapping(
                queue=told["EventSourceArn"].rsplit(":", 1)[1],
                function=function.name,
                batch_size=told.get("BatchSize", 10),
                window=told.get("MaximumBatchingWindowInSeconds", 0),
                tells_failures="ReportBatchItemFailures" in told.get("FunctionResponseTypes", []),
            )
        )
        return name, {}

    def machine(self, name: str, told: Properties) -> Made:
        definition = told["DefinitionString"]
        for placeholder, value in told.get("DefinitionSubstitutions", {}).items():
            definition = definition.replace(f"${{{placeholder}}}", str(value))
        machine = self._name(name, told.get("StateMachineName"), 80)
        arn = self._client("stepfunctions").create_state_machine(
            name=machine,
            definition=definition,
            roleArn=told["RoleArn"],
            type=told.get("StateMachineType", "STANDARD"),
        )["stateMachineArn"]
        self.done.machines[arn] = told["RoleArn"]
        self._later.append(
            lambda: self._policies.may_assume("states.amazonaws.com", told["RoleArn"], arn)
        )
        if "LoggingConfiguration" in told:
            for action in _DELIVERS_LOGS:
                asked = Asked(f"logs:{action}", "*")
                self._later.append(_check(self._policies, told["RoleArn"], asked))
        return arn, {"Arn": arn, "Name": machine}

    # What wakes them

    def bus(self, name: str, told: Properties) -> Made:
        arn = self._client("events").create_event_bus(Name=told["Name"])["EventBusArn"]
        return told["Name"], {"Arn": arn, "Name": told["Name"]}

    def rule(self, name: str, told: Properties) -> Made:
        rule = self._name(name, told.get("Name"))
        bus = {"EventBusName": told["EventBusName"]} if "EventBusName" in told else {}
        when = {
            key: json.dumps(told[key]) if key == "EventPattern" else told[key]
            for key in ("EventPattern", "ScheduleExpression")
            if key in told
        }
        client = self._client("events")
        arn = client.put_rule(Name=rule, State=told.get("State", "ENABLED"), **when, **bus)[
            "RuleArn"
        ]
        client.put_targets(Rule=rule, Targets=told["Targets"], **bus)
        for target in told["Targets"]:
            known_only("AWS::Events::Rule.Target", name, target, _TARGET)
        return rule, {"Arn": arn}

    def connection(self, name: str, told: Properties) -> Made:
        key = told["AuthParameters"]["ApiKeyAuthParameters"]
        arn = f"arn:aws:events:{_HERE}:connection/{name}/local"
        self._connections[arn] = {key["ApiKeyName"]: key["ApiKeyValue"]}
        return name, {"Arn": arn}

    def destination(self, name: str, told: Properties) -> Made:
        arn = f"arn:aws:events:{_HERE}:api-destination/{name}/local"
        self.done.destinations[arn] = Destination(
            told["HttpMethod"],
            told["InvocationEndpoint"],
            self._connections[told["ConnectionArn"]],
        )
        return name, {"Arn": arn}

    def schedule_group(self, name: str, told: Properties) -> Made:
        arn = self._client("scheduler").create_schedule_group(Name=told["Name"])["ScheduleGroupArn"]
        return told["Name"], {"Arn": arn}

    def only_noted(self, name: str, told: Properties) -> Made:
        """What watches the application, but does nothing."""
        return self._name(name, told.get("AlarmName")), {
            "Arn": f"arn:aws:cloudwatch:{_HERE}:alarm:{self._name(name, told.get('AlarmName'))}"
        }

    def _asset(self, code: Properties) -> Path:
        if "S3Key" not in code:
            raise Unsupported(f"Code that is no asset: {code}")
        return self._assembly.assets[code["S3Key"]]


def _check(policies: Policies, role: str, asked: Asked) -> Callable[[], None]:
    return lambda: policies.check(Caller(role), asked)


def _function_arn(name: str) -> str:
    return f"arn:aws:lambda:{_HERE}:function:{name}"


def _empty_zip() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("code", "lies in a folder of this machine")
    return written.getvalue()


_EMPTY_ZIP = _empty_zip()
_TARGET = ("Id", "Arn", "DeadLetterConfig", "RetryPolicy", "RoleArn", "Input", "InputTransformer")
# https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
_DELIVERS_LOGS = (
    "CreateLogDelivery",
    "GetLogDelivery",
    "UpdateLogDelivery",
    "DeleteLogDelivery",
    "ListLogDeliveries",
    "PutResourcePolicy",
    "DescribeResourcePolicies",
    "DescribeLogGroups",
)
# By type: who makes it, and the properties that somebody looks at or that say nothing to a laptop.
_KINDS: dict[str, tuple[Callable[..., Made], tuple[str, ...]]] = {
    "AWS::IAM::Role": (
        _Deployer.role,
        ("RoleName", "AssumeRolePolicyDocument", "Description", "MaxSessionDuration"),
    ),
    "AWS::IAM::Policy": (_Deployer.policy, ("PolicyName", "PolicyDocument", "Roles")),
    "AWS::SQS::QueuePolicy": (_Deployer.queue_policy, ("Queues", "PolicyDocument")),
    "AWS::SNS::TopicPolicy": (_Deployer.topic_policy, ("Topics", "PolicyDocument")),
    "AWS::S3::BucketPolicy": (_Deployer.bucket_policy, ("Bucket", "PolicyDocument")),
    "AWS::Events::EventBusPolicy": (
        _Deployer.bus_policy,
        ("EventBusName", "StatementId", "Statement"),
    ),
    "AWS::Lambda::Permission": (
        _Deployer.permission,
        ("Action", "FunctionName", "Principal", "SourceArn", "SourceAccount"),
    ),
    "AWS::S3::Bucket": (
        _Deployer.bucket,
        (
            *("BucketName", "NotificationConfiguration", "BucketEncryption"),
            *("LifecycleConfiguration", "OwnershipControls", "PublicAccessBlockConfiguration"),
        ),
    ),
    "AWS::SQS::Queue": (
        _Deployer.queue,
        (
            *("QueueName", "VisibilityTimeout", "RedrivePolicy", "MessageRetentionPeriod"),
            *("SqsManagedSseEnabled", "DelaySeconds"),
        ),
    ),
    "AWS::SNS::Topic": (_Deployer.topic, ("TopicName", "DisplayName", "KmsMasterKeyId")),
    "AWS::SNS::Subscription": (
        _Deployer.subscription,
        ("TopicArn", "Protocol", "Endpoint", "FilterPolicy"),
    ),
    "AWS::DynamoDB::Table": (
        _Deployer.table,
        (
            *("TableName", "KeySchema", "AttributeDefinitions", "BillingMode"),
            *("TimeToLiveSpecification", "SSESpecification", "DeletionProtectionEnabled"),
            "PointInTimeRecoverySpecification",
        ),
    ),
    "AWS::Logs::LogGroup": (_Deployer.log_group, ("LogGroupName", "RetentionInDays")),
    "AWS::Lambda::LayerVersion": (
        _Deployer.layer,
        ("LayerName", "Content", "CompatibleRuntimes", "CompatibleArchitectures", "Description"),
    ),
    "AWS::Lambda::Function": (
        _Deployer.function,
        (
            *("FunctionName", "Code", "Handler", "Role", "Runtime", "Timeout", "MemorySize"),
            *("Environment", "Layers", "LoggingConfig", "DeadLetterConfig"),
            *("Architectures", "EphemeralStorage", "Description"),
        ),
    ),
    "AWS::Lambda::EventSourceMapping": (
        _Deployer.mapping,
        (
            *("EventSourceArn", "FunctionName", "BatchSize", "FunctionResponseTypes"),
            "MaximumBatchingWindowInSeconds",
        ),
    ),
    "AWS::StepFunctions::StateMachine": (
        _Deployer.machine,
        (
            *("StateMachineName", "StateMachineType", "DefinitionString"),
            *("DefinitionSubstitutions", "RoleArn", "LoggingConfiguration"),
        ),
    ),
    "AWS::Events::EventBus": (_Deployer.bus, ("Name", "Description")),
    "AWS::Events::Rule": (
        _Deployer.rule,
        (
            *("Name", "Description", "State", "EventBusName", "EventPattern"),
            *("ScheduleExpression", "Targets"),
        ),
    ),
    "AWS::Events::Connection": (
        _Deployer.connection,
        ("Name", "AuthorizationType", "AuthParameters"),
    ),
    "AWS::Events::ApiDestination": (
        _Deployer.destination,
        (
            *("Name", "ConnectionArn", "HttpMethod", "InvocationEndpoint"),
            "InvocationRateLimitPerSecond",
        ),
    ),
    "AWS::Scheduler::ScheduleGroup": (_Deployer.schedule_group, ("Name",)),
    "AWS::CloudWatch::Alarm": (
        _Deployer.only_noted,
        (
            *("AlarmName", "AlarmDescription", "AlarmActions", "OKActions", "Period", "Threshold"),
            *("TreatMissingData", "EvaluationPeriods", "Statistic", "Dimensions", "Namespace"),
            *("ComparisonOperator", "MetricName", "Metrics", "DatapointsToAlarm"),
            "ExtendedStatistic",
        ),
    ),
    "AWS::CloudWatch::Dashboard": (_Deployer.only_noted, ("DashboardName", "DashboardBody")),
}
