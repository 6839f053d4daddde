"""Send an email or a text message through Amazon SNS."""

from __future__ import annotations

import json
import re
from typing import Any

from smdebug.logger import get_logger
from smdebug.rules.action.outcome import ActionOutcome, aws_client

TOPIC_NAME = "SMDebugRules"
_SUBJECT_LIMIT = 99  # of SNS
_E_MAIL = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}"
)
_PHONE_NUMBER = re.compile(r"\+[0-9]{1,15}")
_ATTRIBUTE = {"email": "email", "sms": "phone_num"}


def problem_of_message(message_type: str, endpoint: str) -> str | None:
    """Return a sentence about a message that cannot be sent, or None."""
    if message_type not in _ATTRIBUTE:
        return f"A message must be an email or an sms, not {message_type!r}"
    if not endpoint:
        return f"The action {message_type} needs 'endpoint', a non-empty string"
    if message_type == "email" and not is_e_mail_address(endpoint):
        return f"{endpoint!r} is not an email address"
    if message_type == "sms" and not _PHONE_NUMBER.fullmatch(endpoint):
        return f"{endpoint!r} is not a phone number: it must be + and up to 15 digits"
    return None


class MessageAction:
    """Reports that the rule fired, through the SNS topic `SMDebugRules`.

    The topic is created and the endpoint subscribed if necessary; the owner of an email address must
    confirm the subscription once. AWS is not called before the rule fires. With a wrong endpoint it does
    nothing, and logs that.
    """

    def __init__(self, rule_name: str, message_type: str, message_endpoint: str | None):
        self.rule_name = rule_name
        self.message_type = message_type.strip().lower()
        self.endpoint = str(message_endpoint or "").strip()
        self.problem = problem_of_message(self.message_type, self.endpoint)
        if self.problem:
            get_logger().warning("%s: no message is sent", self.problem)

    def __str__(self) -> str:
        return f"{self.message_type} to {self.endpoint}"

    def invoke(self, message: str = "", trial: object = None, findings: object = ()) -> ActionOutcome:
        """Send the message."""
        if self.problem:
            return ActionOutcome(str(self), False, self.problem)
        sns = aws_client("sns")
        topic = sns.create_topic(Name=TOPIC_NAME)["TopicArn"]  # returns the existing topic, if any
        subscribed = self._subscribe(sns, topic)
        text = f"SMDebugRule:{self.rule_name} fired"
        sns.publish(
            TopicArn=topic,
            Subject=text[:_SUBJECT_LIMIT],
            Message=f"{text}. {message}",
            MessageAttributes={
                _ATTRIBUTE[self.message_type]: {
                    "DataType": "String",
                    "StringValue": self.endpoint,
                }
            },
        )
        hint = ""
        if subscribed and self.message_type == "email":
            hint = "; the address was just subscribed, and its owner must confirm that first"
        return ActionOutcome(str(self), True, f"sent to topic {topic}{hint}")

    def _subscribe(self, sns: Any, topic: str) -> bool:
        """Subscribe the endpoint to its own messages; return False if it was already subscribed."""
        for page in sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic):
            for subscription in page["Subscriptions"]:
                if (subscription["Protocol"], subscription["Endpoint"]) == (
                    self.message_type,
                    self.endpoint,
                ):
                    return False
        policy = json.dumps({_ATTRIBUTE[self.message_type]: [self.endpoint]})
        sns.subscribe(
            TopicArn=topic,
            Protocol=self.message_type,
            Endpoint=self.endpoint,
            Attributes={"FilterPolicy": policy},
            ReturnSubscriptionArn=True,
        )
        return True


def is_e_mail_address(text: str) -> bool:
    """Return whether this is a valid address: dots, plus signs, sub-domains and long endings are."""
    local = text.partition("@")[0]
    dots = local.startswith(".") or local.endswith(".") or ".." in local
    return len(text) <= 254 and not dots and _E_MAIL.fullmatch(text) is not None
