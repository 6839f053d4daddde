"""A topic of SNS: one message, in the form that suits each subscriber."""

from __future__ import annotations

import json

from functions.adapters.asking import Client, ask


class SnsTopic:
    """The topic; `to` is an attribute by which a subscription's filter policy finds what is meant for it.

    The filter policy of each subscription is {"to": [its endpoint, {"exists": false}]}.
    """

    def __init__(self, arn: str, client: Client):
        self._arn = arn
        self._client = client

    def publish(self, *, subject: str, email: str, sms: str, to: str | None = None) -> None:
        attributes = {"to": {"DataType": "String", "StringValue": to}} if to else {}
        ask(
            self._client,
            "publish",
            TopicArn=self._arn,
            Subject=subject,
            Message=json.dumps({"default": email, "email": email, "sms": sms}),
            MessageStructure="json",
            MessageAttributes=attributes,
        )
