"""What AWS refuses when a stack is created and moto lets pass. Pure: from the resolved resources alone."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

Resources = Mapping[str, tuple[str, Mapping[str, Any]]]
"""The kind and the resolved properties of each resource."""

INLINE_POLICIES = 10_240  # characters of a role, without white space
DEFINITION_BYTES = 1024 * 1024
PATTERN_CHARACTERS = 4096
MATCHERS = {
    "anything-but",
    "cidr",
    "equals-ignore-case",
    "exists",
    "numeric",
    "prefix",
    "suffix",
    "wildcard",
}
"""https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html"""


def refusals(resources: Resources) -> list[str]:
    """Return why AWS would not create these resources, a sentence each."""
    checks = (_policies, _definitions, _patterns, _mappings, _notifications)
    return [refusal for check in checks for refusal in check(resources)]


def _of(resources: Resources, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((name, properties) for name, (found, properties) in resources.items() if found == kind)


def _policies(resources: Resources) -> Iterator[str]:
    sizes: defaultdict[str, int] = defaultdict(int)
    for _, properties in _of(resources, "AWS::IAM::Policy"):
        for role in properties["Roles"]:
            text = json.dumps(properties["PolicyDocument"], separators=(",", ":"))
            sizes[role] += len(re.sub(r"\s", "", text))
    for role, size in sizes.items():
        if size > INLINE_POLICIES:
            yield f"The inline policies of {role} have {size} characters, and IAM allows {INLINE_POLICIES}"


def _definitions(resources: Resources) -> Iterator[str]:
    for name, properties in _of(resources, "AWS::StepFunctions::StateMachine"):
        size = len(str(properties["DefinitionString"]).encode())
        if size > DEFINITION_BYTES:
            yield f"The definition of {name} has {size} bytes, and Step Functions allows {DEFINITION_BYTES}"


def _patterns(resources: Resources) -> Iterator[str]:
    for name, properties in _of(resources, "AWS::Events::Rule"):
        pattern = properties.get("EventPattern")
        if pattern is None:
            continue
        size = len(json.dumps(pattern, separators=(",", ":")))
        if size > PATTERN_CHARACTERS:
            yield f"The pattern of {name} has {size} characters, and EventBridge allows {PATTERN_CHARACTERS}"
        for problem in _problems_of(pattern):
            yield f"The pattern of {name} is not valid: {problem}"


def _problems_of(pattern: Mapping[str, Any]) -> Iterator[str]:
    for key, value in pattern.items():
        if isinstance(value, Mapping):
            yield from _problems_of(value)
        elif not isinstance(value, list) or not value:
            yield f"{key} must be an object or an array that is not empty"
        elif key == "$or":
            for choice in value:
                yield from _problems_of(choice)
        else:
            for matcher in value:
                if isinstance(matcher, Mapping):
                    yield from _problems_of_matcher(key, matcher)


def _problems_of_matcher(key: str, matcher: Mapping[str, Any]) -> Iterator[str]:
    for kind, wanted in matcher.items():
        if kind not in MATCHERS:
            yield f"{key} has the unknown match type {kind}"
        elif kind == "wildcard" and "**" in str(wanted):
            yield f"{key} has consecutive wildcard characters"


def _mappings(resources: Resources) -> Iterator[str]:
    queues = {
        properties.get("QueueName", name): properties
        for name, properties in _of(resources, "AWS::SQS::Queue")
    }
    functions = {
        properties.get("FunctionName", name): properties
        for name, properties in _of(resources, "AWS::Lambda::Function")
    }
    for name, properties in _of(resources, "AWS::Lambda::EventSourceMapping"):
        batch, window = properties.get("BatchSize", 10), properties.get("MaximumBatchingWindowInSeconds", 0)
        if batch > 10 and window < 1:
            yield f"{name} has batches of {batch}: above 10, Lambda needs a window of a second or more"
        queue = queues.get(str(properties["EventSourceArn"]).rpartition(":")[2], {})
        function = functions.get(str(properties["FunctionName"]).rpartition(":")[2], {})
        visibility, timeout = queue.get("VisibilityTimeout", 30), function.get("Timeout", 3)
        if queue and function and visibility < timeout:
            yield (
                f"{name}: the queue's visibility timeout of {visibility} s is less than the function's "
                f"timeout of {timeout} s"
            )


def _notifications(resources: Resources) -> Iterator[str]:
    senders = list(_senders(resources))
    for name, properties in _of(resources, "AWS::S3::Bucket"):
        entries = properties.get("NotificationConfiguration", {}).get("QueueConfigurations", [])
        for number, entry in enumerate(entries):
            for other in entries[:number]:
                if _events_meet(entry["Event"], other["Event"]) and _keys_meet(entry, other):
                    yield f"{name} has notifications of {entry['Event']} whose prefixes and suffixes overlap"
            if entry["Queue"] not in senders:
                yield f"{name} notifies {entry['Queue']}, whose policy does not let S3 send"


def _senders(resources: Resources) -> Iterator[str]:
    """The ARNs of queues that let S3 send to them."""
    for _, properties in _of(resources, "AWS::SQS::QueuePolicy"):
        for statement in properties["PolicyDocument"]["Statement"]:
            principal = statement.get("Principal")
            services = str(principal.get("Service", "")) if isinstance(principal, Mapping) else ""
            if statement["Effect"] == "Allow" and "s3.amazonaws.com" in services:
                yield str(statement["Resource"])


def _events_meet(event: str, other: str) -> bool:
    return fnmatchcase(event, other) or fnmatchcase(other, event)


def _keys_meet(entry: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a key may match both filters: each name of a rule begins or ends with the other's."""
    first, second = _filter_of(entry), _filter_of(other)
    prefixes, suffixes = (first["prefix"], second["prefix"]), (first["suffix"], second["suffix"])
    return (prefixes[0].startswith(prefixes[1]) or prefixes[1].startswith(prefixes[0])) and (
        suffixes[0].endswith(suffixes[1]) or suffixes[1].endswith(suffixes[0])
    )


def _filter_of(entry: Mapping[str, Any]) -> dict[str, str]:
    rules = entry.get("Filter", {}).get("S3Key", {}).get("Rules", [])
    found = {str(rule["Name"]).lower(): str(rule["Value"]) for rule in rules}
    return {"prefix": found.get("prefix", ""), "suffix": found.get("suffix", "")}
