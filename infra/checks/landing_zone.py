"""What a landing zone asks for: boundaries, paths, names and tags."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

_POLICY = re.compile(r"arn:aws[\w-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+|[\w+=,.@-]{1,128}", re.ASCII)
_PATH = re.compile(r"/([!-.0-~]+/)*", re.ASCII)  # printable, without spaces and empty folders
_PREFIX = re.compile(r"[a-z][a-z0-9-]{0,18}")
_TAG_TEXT = (
    r"[\w\s.:/+\-@]"  # https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
)
_MOST_TAGS = 40  # of the 50 that a resource can have, CloudFormation and the CDK use some


class Zone(Protocol):
    """The settings that decide it."""

    @property
    def permissions_boundary(self) -> str | None: ...
    @property
    def role_path(self) -> str: ...
    @property
    def name_prefix(self) -> str: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def vpc_subnets(self) -> tuple[str, ...]: ...
    @property
    def custom_rule_subnets(self) -> tuple[str, ...]: ...
    @property
    def vpc_security_groups(self) -> tuple[str, ...]: ...


def problem_with(settings: Zone) -> str:
    """Return what is wrong with these settings; empty if nothing is."""
    boundary, path, prefix = settings.permissions_boundary, settings.role_path, settings.name_prefix
    if boundary is not None and not _POLICY.fullmatch(boundary):
        return (
            f"permissions_boundary={boundary!r} is not a managed policy: write its name in this account, or "
            "arn:aws:iam::<account>:policy/<name>."
        )
    if not _PATH.fullmatch(path) or len(path) > 512:
        return (
            f"role_path={path!r} is not a path of IAM: write /workloads/ with a slash at the beginning and "
            "at the end."
        )
    if prefix and not _PREFIX.fullmatch(prefix):
        return (
            f"name_prefix={prefix!r} cannot begin the names of buckets, functions and roles: use up to 19 "
            "lower-case letters, digits and hyphens, beginning with a letter."
        )
    return _problem_with_tags(settings.tags) or _problem_with_network(settings)


def tags_of(entries: Iterable[str]) -> dict[str, str]:
    """Return the tags of the setting `tags`."""
    return {key: value for key, _, value in (entry.partition("=") for entry in entries)}


def problem_with_stack_name(stack: str, prefix: str) -> str:
    """Return what is wrong with the stack's name if all names must have this prefix; empty if nothing is."""
    if stack.startswith(prefix):
        return ""
    return (
        f"The stack is named {stack!r}, and CloudFormation begins the names of its roles, functions, queues "
        f"and topics with that, so they would not have name_prefix={prefix!r}: set stack={prefix}{stack}."
    )


def _problem_with_tags(entries: tuple[str, ...]) -> str:
    keys = [entry.partition("=")[0] for entry in entries]
    for entry in entries:
        key, separator, value = entry.partition("=")
        if not separator or not re.fullmatch(rf"{_TAG_TEXT}{{1,128}}", key):
            return f"tags: {entry!r} is not a tag: write key=value, such as cost-centre=ml."
        if not re.fullmatch(rf"(?:{_TAG_TEXT}|=){{0,256}}", value):
            return f"tags: the value of {entry!r} is longer than 256 characters, or has one that AWS refuses."
        if key.lower().startswith("aws:"):
            return f"tags: {entry!r} begins with aws:, which AWS keeps for itself."
        if keys.count(key) > 1:
            return f"tags: {key!r} is set twice; a resource has one value of each key."
    if len(entries) > _MOST_TAGS:
        return f"tags names {len(entries)} tags, and at most {_MOST_TAGS} fit beside those of CloudFormation."
    return ""


def _problem_with_network(settings: Zone) -> str:
    """Lambda takes at most 16 subnets and five security groups."""
    for name, ids, kind, most in (
        ("vpc_subnets", settings.vpc_subnets, "subnet", 16),
        ("custom_rule_subnets", settings.custom_rule_subnets, "subnet", 16),
        ("vpc_security_groups", settings.vpc_security_groups, "sg", 5),
    ):
        for given in ids:
            if not re.fullmatch(rf"{kind}-[0-9a-f]{{8,17}}", given):
                return f"{name}: {given!r} is not an id: write {kind}-0123456789abcdef0."
        if len(ids) > most:
            return f"{name} names {len(ids)} ids, and Lambda takes at most {most}."
    subnets = settings.vpc_subnets or settings.custom_rule_subnets
    if subnets and not settings.vpc_security_groups:
        return "Functions in subnets need vpc_security_groups, such as one that allows HTTPS to endpoints."
    if settings.vpc_security_groups and not subnets:
        return "vpc_security_groups has no effect without vpc_subnets or custom_rule_subnets."
    return ""
