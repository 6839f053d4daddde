"""Alerts: email and SMS through a topic."""

from __future__ import annotations

from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.alerting.subscriptions import subscribe
from infra.names import ALERT_EMAILS, ALERT_PHONE_NUMBERS, ALERTS_TOPIC
from infra.python_function import PythonFunction
from infra.settings import Settings


class Alerts(Construct):
    """The topic, of the stack or an existing one, and its subscribers."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        self._settings = settings
        self._topic: sns.ITopic
        if settings.alert_topic:  # its policy and its key are the owner's
            self._topic = sns.Topic.from_topic_arn(self, "Topic", settings.alert_topic)
        else:
            self._topic = sns.Topic(self, "Topic", display_name="smdebug", enforce_ssl=True)
            resource = self._topic.node.default_child
            assert isinstance(resource, sns.CfnTopic)
            # AWS's own key is free. With it only functions can publish, services cannot.
            resource.kms_master_key_id = "alias/aws/sns"
        # Every message names its recipients: single endpoints, or all of them.
        subscribe(self, self._topic, settings, filter_policy=lambda to: {"to": [to, "everybody"]})

    @property
    def arn(self) -> str:
        return self._topic.topic_arn

    def let_publish(self, function: PythonFunction) -> None:
        """Publish messages to the subscribers."""
        function.may("sns:Publish", on=[self.arn])
        function.knows(ALERTS_TOPIC, self.arn)

    def let_know_recipients(self, function: PythonFunction) -> None:
        """Know the allowed recipients: a rule may not name others."""
        function.knows(ALERT_EMAILS, ",".join(self._settings.alert_emails))
        function.knows(ALERT_PHONE_NUMBERS, ",".join(self._settings.alert_phone_numbers))
