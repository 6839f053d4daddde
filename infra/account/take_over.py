"""`python -m infra.account.take_over BUCKET` prepares a bucket of an earlier stack to be watched again.

It removes the notifications to queues that no longer exist and turns EventBridge events on. S3 validates
every destination of a configuration, so a queue that is gone would make each later change fail.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.account.session import session_of

QUEUES, EVENTS = "QueueConfigurations", "EventBridgeConfiguration"
_GONE = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")


class CannotTakeOver(RuntimeError):
    """The bucket could not be prepared: the message has AWS's reason."""


def take_over(bucket: str, s3: Any, sqs: Any) -> list[str]:
    """Turn the events of the bucket on; return the ARNs of the queues that it no longer notifies."""
    try:
        now = s3.get_bucket_notification_configuration(Bucket=bucket)
        now.pop("ResponseMetadata", None)
        gone = [queue["QueueArn"] for queue in now.get(QUEUES, []) if not _exists(queue["QueueArn"], sqs)]
        # Destinations that this account may not see are left as they are, and not validated.
        s3.put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration=without(now, gone),
            SkipDestinationValidation=True,
        )
    except (ClientError, BotoCoreError) as error:
        raise CannotTakeOver(f"The bucket {bucket} cannot be taken over: {error}") from error
    return gone


def without(configuration: Mapping[str, Any], gone: list[str]) -> dict[str, Any]:
    """Return the configuration without these queues and with EventBridge events."""
    kept = [queue for queue in configuration.get(QUEUES, []) if queue["QueueArn"] not in gone]
    others = {key: value for key, value in configuration.items() if key != QUEUES}
    return {**others, **({QUEUES: kept} if kept else {}), EVENTS: {}}


def _exists(arn: str, sqs: Any) -> bool:
    account, name = arn.split(":")[4:6]
    try:
        sqs.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
    except ClientError as error:
        if error.response["Error"]["Code"] in _GONE:
            return False
        raise
    return True


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m infra.account.take_over BUCKET")
    bucket = sys.argv[1].removeprefix("s3://").rstrip("/")
    session = session_of()
    try:
        gone = take_over(bucket, session.client("s3"), session.client("sqs"))
    except CannotTakeOver as error:
        sys.exit(str(error))
    for arn in gone:
        print(f"{bucket} no longer notifies {arn}, which does not exist.")
    print(f"{bucket} sends its events to EventBridge.")


if __name__ == "__main__":
    main()
