"""Alerts: e-mail and SMS through a topic, Slack and other services through webhooks."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.findings_bus import ACTION, FOUND, RESOLVED, RUN, STATUS, FindingsBus, as_slack_message
from infra.names import ALERT_EMAILS, ALERT_PHONE_NUMBERS, ALERTS_TOPIC
from infra.python_function import PythonFunction
from infra.settings import Settings


class Alerts(Construct):
    """The topic, its subscribers, and the webhooks."""

    def __init__(
        self, scope: Construct, id: str, *, settings: Settings, key: kms.IKey | None
    ) -> None:
        super().__init__(scope, id)
        self._key = key
        self._settings = settings
        self._topic = sns.Topic(self, "Topic", display_name="smdebug", enforce_ssl=True)
        resource = self._topic.node.default_child
        assert isinstance(resource, sns.CfnTopic)
        # AWS's own key is free. With it only functions can publish, services cannot.
        resource.kms_master_key_id = key.key_arn if key else "alias/aws/sns"
        for protocol, endpoints in (
            ("email", settings.alert_emails),
            ("sms", settings.alert_phone_numbers),
        ):
            for number, endpoint in enumerate(endpoints, 1):
                sns.CfnSubscription(
                    self,
                    f"{protocol.capitalize()}{number}",
                    topic_arn=self._topic.topic_arn,
                    protocol=protocol,
                    endpoint=endpoint,
                    # Every message names its recipients: single endpoints, or all of them.
                    filter_policy={"to": [endpoint, "everybody"]},
                )

    @property
    def arn(self) -> str:
        return self._topic.topic_arn

    def let_publish(self, function: PythonFunction) -> None:
        """Publish messages to the subscribers."""
        function.may("sns:Publish", on=[self.arn])
        if self._key:
            function.may("kms:Decrypt", "kms:GenerateDataKey", on=[self._key.key_arn])
        function.knows(ALERTS_TOPIC, self.arn)

    def let_know_recipients(self, function: PythonFunction) -> None:
        """Know the allowed recipients: a rule may not name others."""
        function.knows(ALERT_EMAILS, ",".join(self._settings.alert_emails))
        function.knows(ALERT_PHONE_NUMBERS, ",".join(self._settings.alert_phone_numbers))

    def connect(self, bus: FindingsBus, notify: PythonFunction, settings: Settings) -> None:
        """Connect the bus to `notify`, which writes the messages, and to the webhooks."""
        everything = [FOUND, RESOLVED, STATUS, RUN, ACTION]
        bus.when(
            "Notify", does="Writes the alerts to people", detail_types=everything, target=notify
        )
        if settings.slack_secret:
            Webhook(self, "Slack", secret=settings.slack_secret).post(
                bus, [FOUND, RESOLVED], input_transformer=as_slack_message()
            )
        if settings.webhook_secret:
            Webhook(self, "Webhook", secret=settings.webhook_secret).post(bus, everything)


class Webhook(Construct):
    """A URL that events are posted to. The URL and its token stay in a secret."""

    def __init__(self, scope: Construct, id: str, *, secret: str) -> None:
        super().__init__(scope, id)
        connection = events.CfnConnection(
            self,
            "Connection",
            authorization_type="API_KEY",
            auth_parameters=events.CfnConnection.AuthParametersProperty(
                api_key_auth_parameters=events.CfnConnection.ApiKeyAuthParametersProperty(
                    api_key_name="x-smdebug-token", api_key_value=_field_of(secret, "token")
                )
            ),
        )
        self._destination = events.CfnApiDestination(
            self,
            "Destination",
            connection_arn=connection.attr_arn,
            http_method="POST",
            invocation_endpoint=_field_of(secret, "url"),
            invocation_rate_limit_per_second=5,
        )
        self._role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "events.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
            ),
            description="Posts findings to a webhook",
        )
        self._role.add_to_policy(
            iam.PolicyStatement(
                actions=["events:InvokeApiDestination"], resources=[self._destination.attr_arn]
            )
        )

    def post(
        self,
        bus: FindingsBus,
        detail_types: list[str],
        input_transformer: events.CfnRule.InputTransformerProperty | None = None,
    ) -> None:
        """Post these events, unchanged or through the transformer."""
        bus.when(
            self.node.id,
            does="Posts findings to a webhook",
            detail_types=detail_types,
            target=self._destination.attr_arn,
            role_arn=self._role.role_arn,
            input_transformer=input_transformer,
        )


def _field_of(secret: str, field: str) -> str:
    """A reference that CloudFormation resolves at deployment: the value is not in the template."""
    return cdk.SecretValue.secrets_manager(secret, json_field=field).unsafe_unwrap()
