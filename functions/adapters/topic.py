"""An SNS topic: one message, in a form for each kind of subscriber."""

from __future__ import annotations

import json

from functions.adapters.asking import Client, ask

EVERYBODY = "everybody"


class SnsTopic:
    """The topic. Subscriptions select their messages by the attribute `to`.

    Its filter policy is {"to": ["everybody", <its endpoint>]}.
    """

    def __init__(self, arn: str, client: Client):
        self._arn = arn
        self._client = client

    def publish(self, *, subject: str, email: str, sms: str, to: str | None = None) -> None:
        ask(
            self._client,
            "publish",
            TopicArn=self._arn,
            Subject=subject,
            Message=json.dumps({"default": email, "email": email, "sms": sms}),
            MessageStructure="json",
            MessageAttributes={"to": {"DataType": "String", "StringValue": to or EVERYBODY}},
        )
