"""Taking over the bucket of an earlier stack."""

from __future__ import annotations

import boto3
import pytest
from moto.s3.models import s3_backends

from infra.account.take_over import CannotTakeOver, take_over, without
from tests.support.mocked_aws import mocked_aws

REGION = "us-east-1"
HERE = f"{REGION}:123456789012"


@pytest.fixture
def clients():
    with mocked_aws(REGION):
        yield boto3.client("s3"), boto3.client("sqs")


def notified(s3, sqs) -> None:
    """A bucket that notifies a queue of an earlier stack, and one of another owner."""
    s3.create_bucket(Bucket="kept")
    for name in ("earlier", "theirs"):
        sqs.create_queue(QueueName=name)
    s3.put_bucket_notification_configuration(
        Bucket="kept",
        NotificationConfiguration={
            "QueueConfigurations": [
                {"QueueArn": f"arn:aws:sqs:{HERE}:{name}", "Events": ["s3:ObjectCreated:*"]}
                for name in ("earlier", "theirs")
            ]
        },
    )


def test_a_queue_that_is_gone_is_notified_no_longer_and_others_are(clients):
    s3, sqs = clients
    notified(s3, sqs)
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName="earlier")["QueueUrl"])
    assert take_over("kept", s3, sqs) == [f"arn:aws:sqs:{HERE}:earlier"]
    now = s3.get_bucket_notification_configuration(Bucket="kept")
    assert [queue["QueueArn"] for queue in now["QueueConfigurations"]] == [f"arn:aws:sqs:{HERE}:theirs"]
    bucket = s3_backends["123456789012"]["aws"].buckets["kept"]
    assert bucket.notification_configuration.event_bridge is not None
    assert take_over("kept", s3, sqs) == []  # a second time changes nothing


def test_an_unknown_bucket_is_an_error_with_the_reason(clients):
    with pytest.raises(CannotTakeOver, match=r"nobody-has-this cannot be taken over: .*NoSuchBucket"):
        take_over("nobody-has-this", *clients)


def test_other_destinations_stay():
    topics = [{"TopicArn": f"arn:aws:sns:{HERE}:t", "Events": ["s3:ObjectRemoved:*"]}]
    assert without({"TopicConfigurations": topics}, []) == {
        "TopicConfigurations": topics,
        "EventBridgeConfiguration": {},
    }
