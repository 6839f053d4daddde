"""Roles and policies: which role may do what."""

from __future__ import annotations

import json
from typing import Any

from local_aws.permissions.calls import bus_arn, queue_arn
from local_aws.resources.deployment import HERE, Created, Deployment, Kinds, Properties
from local_aws.template import ACCOUNT


def role(deployment: Deployment, name: str, properties: Properties) -> Created:
    trust = properties["AssumeRolePolicyDocument"]
    created = deployment.client("iam").create_role(
        RoleName=deployment.name(name, properties.get("RoleName")),
        AssumeRolePolicyDocument=json.dumps(trust),
    )["Role"]
    deployment.policies.add_role(created["Arn"], trust)
    return created["RoleName"], {"Arn": created["Arn"], "RoleId": created["RoleId"]}


def policy(deployment: Deployment, name: str, properties: Properties) -> Created:
    for role in properties["Roles"]:
        arn = f"arn:aws:iam::{ACCOUNT}:role/{role}"
        deployment.policies.add_to_role(arn, properties["PolicyDocument"])
    return name, {}


def queue_policy(deployment: Deployment, name: str, properties: Properties) -> Created:
    for url in properties["Queues"]:
        deployment.policies.add_to_resource(queue_arn(url), properties["PolicyDocument"])
    return name, {}


def topic_policy(deployment: Deployment, name: str, properties: Properties) -> Created:
    for arn in properties["Topics"]:
        deployment.policies.add_to_resource(arn, properties["PolicyDocument"])
    return name, {}


def bucket_policy(deployment: Deployment, name: str, properties: Properties) -> Created:
    # Not passed on to moto: it ignores conditions, and would refuse every request without TLS.
    arn = f"arn:aws:s3:::{properties['Bucket']}"
    deployment.policies.add_to_resource(arn, properties["PolicyDocument"])
    return name, {}


def bus_policy(deployment: Deployment, name: str, properties: Properties) -> Created:
    arn = bus_arn(properties["EventBusName"])
    deployment.policies.add_to_resource(arn, {"Statement": [properties["Statement"]]})
    return name, {}


def lambda_permission(deployment: Deployment, name: str, properties: Properties) -> Created:
    function = properties["FunctionName"]
    arn = function if function.startswith("arn:") else f"arn:aws:lambda:{HERE}:function:{function}"
    conditions: dict[str, Any] = {"ArnLike": {"aws:SourceArn": properties.get("SourceArn", "*")}}
    if "SourceAccount" in properties:
        conditions["StringEquals"] = {"aws:SourceAccount": properties["SourceAccount"]}
    statement = {
        "Effect": "Allow",
        "Action": properties["Action"],
        "Resource": arn,
        "Principal": {"Service": properties["Principal"]},
        "Condition": conditions,
    }
    deployment.policies.add_to_resource(arn, {"Statement": [statement]})
    return name, {}


KINDS: Kinds = {
    "AWS::IAM::Role": (
        role,
        ("RoleName", "AssumeRolePolicyDocument", "Description", "MaxSessionDuration"),
    ),
    "AWS::IAM::Policy": (policy, ("PolicyName", "PolicyDocument", "Roles")),
    "AWS::SQS::QueuePolicy": (queue_policy, ("Queues", "PolicyDocument")),
    "AWS::SNS::TopicPolicy": (topic_policy, ("Topics", "PolicyDocument")),
    "AWS::S3::BucketPolicy": (bucket_policy, ("Bucket", "PolicyDocument")),
    "AWS::Events::EventBusPolicy": (bus_policy, ("EventBusName", "StatementId", "Statement")),
    "AWS::Lambda::Permission": (
        lambda_permission,
        ("Action", "FunctionName", "Principal", "SourceArn", "SourceAccount"),
    ),
}
