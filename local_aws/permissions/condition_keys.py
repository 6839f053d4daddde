"""The condition keys that each service sends when it acts on behalf of a resource, as its guide lists them.

A policy that demands a key which is not sent refuses every call, silently. So none is sent here beyond these.
"""

from __future__ import annotations

from local_aws.template import ACCOUNT

ALWAYS = {"aws:SecureTransport": "true"}
_ARN, _ACCOUNT = "aws:SourceArn", "aws:SourceAccount"
_SENT = {
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/grant-destinations-permissions-to-s3.html
    ("s3.amazonaws.com", "sqs:SendMessage"): (_ARN, _ACCOUNT),
    # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html
    ("events.amazonaws.com", "sqs:SendMessage"): (_ARN,),
    ("events.amazonaws.com", "sns:Publish"): (_ARN,),
    ("events.amazonaws.com", "lambda:InvokeFunction"): (_ARN,),
    # https://docs.aws.amazon.com/eventbridge/latest/userguide/cross-service-confused-deputy-prevention.html
    ("events.amazonaws.com", "sts:AssumeRole"): (_ARN, _ACCOUNT),
    # https://docs.aws.amazon.com/step-functions/latest/dg/procedure-create-iam-role.html
    ("states.amazonaws.com", "sts:AssumeRole"): (_ARN, _ACCOUNT),
    # https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
    ("scheduler.amazonaws.com", "sts:AssumeRole"): (_ARN, _ACCOUNT),
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
    ("cloudwatch.amazonaws.com", "sns:Publish"): (_ARN, _ACCOUNT),
}


def keys_sent(service: str, action: str, source: str) -> dict[str, str]:
    """Return what the service sends with this action on behalf of the source, an ARN."""
    values = {_ARN: source, _ACCOUNT: ACCOUNT}
    return {**ALWAYS, **{key: values[key] for key in _SENT.get((service, action), ())}}
