"""Buses, rules and schedules: what wakes the functions. Alarms have no effect here."""

from __future__ import annotations

import json

from local_aws.resources.deployment import HERE, Created, Deployment, Kinds, Properties
from local_aws.schedules import next_due
from local_aws.template import known_only


def event_bus(deployment: Deployment, name: str, properties: Properties) -> Created:
    bus = properties["Name"]
    arn = deployment.client("events").create_event_bus(Name=bus)["EventBusArn"]
    return bus, {"Arn": arn, "Name": bus}


def event_rule(deployment: Deployment, name: str, properties: Properties) -> Created:
    rule = deployment.name(name, properties.get("Name"))
    bus = {"EventBusName": properties["EventBusName"]} if "EventBusName" in properties else {}
    trigger = {
        key: json.dumps(properties[key]) if key == "EventPattern" else properties[key]
        for key in ("EventPattern", "ScheduleExpression")
        if key in properties
    }
    if schedule := trigger.get("ScheduleExpression"):
        next_due(schedule, 0.0)  # refuses what would never be due here
    client = deployment.client("events")
    state = properties.get("State", "ENABLED")
    arn = client.put_rule(Name=rule, State=state, **trigger, **bus)["RuleArn"]
    client.put_targets(Rule=rule, Targets=properties["Targets"], **bus)
    for target in properties["Targets"]:
        known_only("AWS::Events::Rule.Target", name, target, _TARGET)
    return rule, {"Arn": arn}


def schedule_group(deployment: Deployment, name: str, properties: Properties) -> Created:
    group = properties["Name"]
    arn = deployment.client("scheduler").create_schedule_group(Name=group)["ScheduleGroupArn"]
    return group, {"Arn": arn}


def alarm(deployment: Deployment, name: str, properties: Properties) -> Created:
    alarm = deployment.name(name, properties.get("AlarmName"))
    return alarm, {"Arn": f"arn:aws:cloudwatch:{HERE}:alarm:{alarm}"}


def dashboard(deployment: Deployment, name: str, properties: Properties) -> Created:
    return deployment.name(name, properties.get("DashboardName")), {}


_TARGET = ("Id", "Arn", "DeadLetterConfig", "RetryPolicy", "RoleArn", "Input", "InputTransformer")
KINDS: Kinds = {
    "AWS::Events::EventBus": (event_bus, ("Name", "Description")),
    "AWS::Events::Rule": (
        event_rule,
        (
            "Name",
            "Description",
            "State",
            "EventBusName",
            "EventPattern",
            "ScheduleExpression",
            "Targets",
        ),
    ),
    "AWS::Scheduler::ScheduleGroup": (schedule_group, ("Name",)),
    "AWS::CloudWatch::Alarm": (
        alarm,
        (
            "AlarmName",
            "AlarmDescription",
            "AlarmActions",
            "OKActions",
            "Period",
            "Threshold",
            "TreatMissingData",
            "EvaluationPeriods",
            "Statistic",
            "Dimensions",
            "Namespace",
            "ComparisonOperator",
            "MetricName",
            "Metrics",
            "DatapointsToAlarm",
            "ExtendedStatistic",
        ),
    ),
    "AWS::CloudWatch::Dashboard": (dashboard, ("DashboardName", "DashboardBody")),
}
