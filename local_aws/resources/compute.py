"""Layers, functions, queue mappings and workflows: what runs."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping

from local_aws.deployment.deployed import QueueMapping
from local_aws.distributed_maps import as_moto_reads, children_of, refuse_wrong_maps
from local_aws.errors import LocalStackError
from local_aws.limits import Limits
from local_aws.permissions.calls import Permission
from local_aws.resources.deployment import Created, Deployment, Kinds, Properties
from local_aws.running.functions import Function


def layer(deployment: Deployment, name: str, properties: Properties) -> Created:
    version = deployment.client("lambda").publish_layer_version(
        LayerName=deployment.name(name, properties.get("LayerName")),
        Content={"ZipFile": _EMPTY_ZIP},
        CompatibleRuntimes=properties.get("CompatibleRuntimes", []),
    )["LayerVersionArn"]
    deployment.layers[version] = deployment.asset(properties["Content"])
    return version, {}


def function(deployment: Deployment, name: str, properties: Properties) -> Created:
    function, role = deployment.name(name, properties.get("FunctionName")), properties["Role"]
    variables = {
        **properties.get("Environment", {}).get("Variables", {}),
        **deployment.environment,
    }
    _check_size(deployment.limits, deployment, name, properties, variables)
    arn = deployment.client("lambda").create_function(
        FunctionName=function,
        Code={"ZipFile": _EMPTY_ZIP},
        Handler=properties["Handler"],
        Role=role,
        Runtime=properties["Runtime"],
        Timeout=properties["Timeout"],
        MemorySize=properties["MemorySize"],
        Environment={"Variables": variables},
    )["FunctionArn"]
    deployment.deployed.functions[function] = Function(
        name=function,
        arn=arn,
        role=role,
        handler=properties["Handler"],
        code=deployment.asset(properties["Code"]),
        layers=tuple(deployment.layers[version] for version in properties.get("Layers", [])),
        environment=variables,
        timeout=properties["Timeout"],
        memory_mb=properties["MemorySize"],
        log_group=properties.get("LoggingConfig", {}).get("LogGroup", f"/aws/lambda/{function}"),
        dead_letters=properties.get("DeadLetterConfig", {}).get("TargetArn"),
    )
    deployment.final_checks.append(lambda: deployment.policies.may_assume("lambda.amazonaws.com", role))
    return function, {"Arn": arn}


def _check_size(
    limits: Limits,
    deployment: Deployment,
    name: str,
    properties: Properties,
    variables: Mapping[str, str],
) -> None:
    """Raise unless Lambda would create the function: its environment and its code are limited."""
    size = sum(len(f"{key}{value}".encode()) for key, value in variables.items())
    if size > limits.environment_bytes:
        raise LocalStackError(
            f"{name} has environment variables of {size} bytes, and Lambda allows "
            f"{limits.environment_bytes}: name fewer rules or recipients"
        )
    folders = [deployment.asset(properties["Code"])]
    folders += [deployment.layers[arn] for arn in properties.get("Layers", [])]
    size = sum(map(deployment.bytes_in, folders))
    if size > limits.code_bytes:
        raise LocalStackError(
            f"The code and layers of {name} have {size} bytes, and Lambda allows {limits.code_bytes}"
        )


def queue_mapping(deployment: Deployment, name: str, properties: Properties) -> Created:
    # moto's own mapping passes on single messages, within SendMessage. queues.py replaces it.
    function = deployment.deployed.functions[properties["FunctionName"]]
    queue = properties["EventSourceArn"]
    for action in _POLLING:  # Lambda refuses a mapping if the role lacks any of these
        deployment.check_at_end(function.role, Permission(f"sqs:{action}", queue))
    deployment.deployed.mappings.append(
        QueueMapping(
            queue=queue.rsplit(":", 1)[1],
            function=function.name,
            batch_size=properties.get("BatchSize", 10),
            window=properties.get("MaximumBatchingWindowInSeconds", 0),
            at_once=properties.get("ScalingConfig", {}).get("MaximumConcurrency", 1000),
            reports_failures=("ReportBatchItemFailures" in properties.get("FunctionResponseTypes", [])),
        )
    )
    return name, {}


def state_machine(deployment: Deployment, name: str, properties: Properties) -> Created:
    definition = properties["DefinitionString"]
    for placeholder, value in properties.get("DefinitionSubstitutions", {}).items():
        definition = definition.replace(f"${{{placeholder}}}", str(value))
    machine = deployment.name(name, properties.get("StateMachineName"), 80)
    role = properties["RoleArn"]
    kind = properties.get("StateMachineType", "STANDARD")
    maps = children_of(json.loads(definition))
    refuse_wrong_maps(json.loads(definition), kind)
    arn = deployment.client("stepfunctions").create_state_machine(
        name=machine,
        definition=as_moto_reads(definition),
        roleArn=role,
        type=kind,
    )["stateMachineArn"]
    if maps:  # https://docs.aws.amazon.com/step-functions/latest/dg/iam-policies-eg-dist-map.html
        deployment.check_at_end(role, Permission("states:StartExecution", arn))
    deployment.deployed.machines[arn] = role
    deployment.final_checks.append(lambda: deployment.policies.may_assume("states.amazonaws.com", role, arn))
    if "LoggingConfiguration" in properties:
        for action in _LOG_DELIVERY:
            deployment.check_at_end(role, Permission(f"logs:{action}", "*"))
    return arn, {"Arn": arn, "Name": machine}


def _empty_zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("code", "is in a folder on this machine")
    return buffer.getvalue()


_EMPTY_ZIP = _empty_zip()
_POLLING = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility")
# https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
_LOG_DELIVERY = (
    "CreateLogDelivery",
    "GetLogDelivery",
    "UpdateLogDelivery",
    "DeleteLogDelivery",
    "ListLogDeliveries",
    "PutResourcePolicy",
    "DescribeResourcePolicies",
    "DescribeLogGroups",
)
KINDS: Kinds = {
    "AWS::Lambda::LayerVersion": (
        layer,
        ("LayerName", "Content", "CompatibleRuntimes", "CompatibleArchitectures", "Description"),
    ),
    "AWS::Lambda::Function": (
        function,
        (
            "FunctionName",
            "Code",
            "Handler",
            "Role",
            "Runtime",
            "Timeout",
            "MemorySize",
            "Environment",
            "Layers",
            "LoggingConfig",
            "DeadLetterConfig",
            "Architectures",
            "EphemeralStorage",
            "Description",
            "ReservedConcurrentExecutions",
        ),
    ),
    "AWS::Lambda::EventSourceMapping": (
        queue_mapping,
        (
            "EventSourceArn",
            "FunctionName",
            "BatchSize",
            "FunctionResponseTypes",
            "MaximumBatchingWindowInSeconds",
            "ScalingConfig",
        ),
    ),
    "AWS::StepFunctions::StateMachine": (
        state_machine,
        (
            "StateMachineName",
            "StateMachineType",
            "DefinitionString",
            "DefinitionSubstitutions",
            "RoleArn",
            "LoggingConfiguration",
        ),
    ),
}
