"""Buckets, queues, topics, tables and logs: where things are kept."""

from __future__ import annotations

import json
from typing import Any

from local_aws.permissions.calls import queue_arn
from local_aws.resources.deployment import HERE, Created, Deployment, Kinds, Properties
from local_aws.template import known_only


def bucket(deployment: Deployment, name: str, properties: Properties) -> Created:
    bucket = properties["BucketName"]
    client = deployment.client("s3")
    client.create_bucket(Bucket=bucket)
    notifications = properties.get("NotificationConfiguration", {})
    known_only("AWS::S3::Bucket.NotificationConfiguration", name, notifications, ["QueueConfigurations"])
    if notifications:
        client.put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration={
                "QueueConfigurations": [
                    {
                        "QueueArn": queue["Queue"],
                        "Events": [queue["Event"]],
                        "Filter": {"Key": {"FilterRules": queue["Filter"]["S3Key"]["Rules"]}},
                    }
                    for queue in notifications["QueueConfigurations"]
                ]
            },
        )
    arn = f"arn:aws:s3:::{bucket}"
    return bucket, {"Arn": arn, "DomainName": f"{bucket}.s3.amazonaws.com"}


def queue(deployment: Deployment, name: str, properties: Properties) -> Created:
    attributes = {key: _attribute(value) for key, value in properties.items() if key != "QueueName"}
    queue = deployment.name(name, properties.get("QueueName"), 80)
    created = deployment.client("sqs").create_queue(QueueName=queue, Attributes=attributes)
    url = created["QueueUrl"]
    return url, {"Arn": queue_arn(url), "QueueName": queue, "QueueUrl": url}


def _attribute(value: Any) -> str:
    if isinstance(value, dict):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def topic(deployment: Deployment, name: str, properties: Properties) -> Created:
    topic = deployment.name(name, properties.get("TopicName"))
    arn = deployment.client("sns").create_topic(Name=topic)["TopicArn"]
    return arn, {"TopicArn": arn, "TopicName": topic}


def subscription(deployment: Deployment, name: str, properties: Properties) -> Created:
    attributes = {}
    if "FilterPolicy" in properties:
        attributes["FilterPolicy"] = json.dumps(properties["FilterPolicy"])
    arn = deployment.client("sns").subscribe(
        TopicArn=properties["TopicArn"],
        Protocol=properties["Protocol"],
        Endpoint=properties["Endpoint"],
        Attributes=attributes,
        ReturnSubscriptionArn=True,
    )["SubscriptionArn"]
    return arn, {}


def table(deployment: Deployment, name: str, properties: Properties) -> Created:
    client = deployment.client("dynamodb")
    table = client.create_table(
        TableName=deployment.name(name, properties.get("TableName")),
        KeySchema=properties["KeySchema"],
        AttributeDefinitions=properties["AttributeDefinitions"],
        BillingMode=properties["BillingMode"],
    )["TableDescription"]
    if "TimeToLiveSpecification" in properties:
        client.update_time_to_live(
            TableName=table["TableName"],
            TimeToLiveSpecification=properties["TimeToLiveSpecification"],
        )
    return table["TableName"], {"Arn": table["TableArn"]}


def log_group(deployment: Deployment, name: str, properties: Properties) -> Created:
    group = properties.get("LogGroupName") or deployment.name(name, None, 512)
    client = deployment.client("logs")
    client.create_log_group(logGroupName=group)
    if "RetentionInDays" in properties:
        days = properties["RetentionInDays"]
        client.put_retention_policy(logGroupName=group, retentionInDays=days)
    return group, {"Arn": f"arn:aws:logs:{HERE}:log-group:{group}:*"}


KINDS: Kinds = {
    "AWS::S3::Bucket": (
        bucket,
        (
            "BucketName",
            "NotificationConfiguration",
            "BucketEncryption",
            "LifecycleConfiguration",
            "OwnershipControls",
            "PublicAccessBlockConfiguration",
        ),
    ),
    "AWS::SQS::Queue": (
        queue,
        (
            "QueueName",
            "VisibilityTimeout",
            "RedrivePolicy",
            "MessageRetentionPeriod",
            "SqsManagedSseEnabled",
            "DelaySeconds",
        ),
    ),
    "AWS::SNS::Topic": (topic, ("TopicName", "DisplayName", "KmsMasterKeyId")),
    "AWS::SNS::Subscription": (
        subscription,
        ("TopicArn", "Protocol", "Endpoint", "FilterPolicy"),
    ),
    "AWS::DynamoDB::Table": (
        table,
        (
            "TableName",
            "KeySchema",
            "AttributeDefinitions",
            "BillingMode",
            "TimeToLiveSpecification",
            "SSESpecification",
            "DeletionProtectionEnabled",
            "PointInTimeRecoverySpecification",
            "WarmThroughput",  # moto takes any number of requests from the start
        ),
    ),
    "AWS::Logs::LogGroup": (log_group, ("LogGroupName", "RetentionInDays")),
}
