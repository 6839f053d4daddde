"""The part of IAM that this application relies on: the template's policies decide which role may do what.

A missing permission refuses the call, as AWS would. Used permissions are recorded, so that a test can ask
why the others are there.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from local_aws.errors import Unsupported
from local_aws.permissions.calls import Permission
from local_aws.permissions.condition_keys import ALWAYS, keys_sent
from local_aws.template import ACCOUNT


class Refused(Exception):
    """AccessDenied: no policy allows the call, or one forbids it."""


@dataclass(frozen=True)
class Statement:
    """One statement of a policy, without its Sid."""

    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    principals: tuple[str, ...] | None
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    not_resources: tuple[str, ...] = ()

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Statement:
        unknown = set(document) - _ELEMENTS
        if unknown:
            raise Unsupported(
                f"A policy uses {', '.join(sorted(unknown))}, unknown to the local stack: {document}"
            )
        return cls(
            document["Effect"],
            tuple(_listed(document["Action"])),
            tuple(_listed(document.get("Resource", "*"))),
            tuple(_principals(document["Principal"])) if "Principal" in document else None,
            document.get("Condition", {}),
            tuple(_listed(document.get("NotResource", []))),
        )

    def applies_to(self, permission: Permission, context: Mapping[str, str], callers: Iterable[str]) -> bool:
        """Whether the statement allows or forbids this, for one of these names of the caller."""
        action, resource = permission.action.lower(), permission.resource
        return (
            any(_matches(pattern.lower(), action) for pattern in self.actions)
            and any(_matches(pattern, resource) for pattern in self.resources)
            and not any(_matches(pattern, resource) for pattern in self.not_resources)
            and (self.principals is None or bool({"*", *callers} & set(self.principals)))
            and all(_holds(operator, expected, context) for operator, expected in self.conditions.items())
        )


@dataclass(frozen=True)
class Caller:
    """A role, possibly narrowed by a session policy."""

    role: str  # its ARN
    session: tuple[Statement, ...] | None = None


@dataclass(frozen=True)
class Call:
    """A call that was checked."""

    caller: str
    action: str
    resource: str
    allowed: bool


class Policies:
    """All policies of a deployment, and which of their statements were used."""

    def __init__(self) -> None:
        self._of_role: dict[str, list[Statement]] = {}
        self._trust: dict[str, list[Statement]] = {}
        self._of_resource: dict[str, list[Statement]] = {}
        self._used: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()
        self._needed: set[int] = set()  # statements (their `id`) that alone allowed some call
        self.calls: Counter[Call] = Counter()

    # From the template

    def add_role(self, arn: str, trust: Mapping[str, Any]) -> None:
        self._trust[arn] = list(_statements(trust))
        self._of_role.setdefault(arn, [])

    def add_to_role(self, arn: str, policy: Mapping[str, Any]) -> None:
        self._of_role[arn] += _statements(policy)

    def add_to_resource(self, arn: str, policy: Mapping[str, Any]) -> None:
        self._of_resource.setdefault(arn, []).extend(_statements(policy))

    def statements(self) -> dict[str, list[Statement]]:
        """Every statement, by the role or resource that it belongs to."""
        return {
            owner: list(statements)
            for policies in (self._of_role, self._of_resource)
            for owner, statements in policies.items()
        }

    # Decisions

    def check(self, caller: Caller, permission: Permission) -> None:
        """Raise `Refused` unless this role may do that."""
        context = {
            **ALWAYS,
            "aws:PrincipalArn": caller.role,
            "aws:PrincipalAccount": ACCOUNT,
            **permission.context,
        }
        names = (caller.role, f"arn:aws:iam::{ACCOUNT}:root")

        def applying(statements: Iterable[Statement]) -> list[Statement]:
            return [statement for statement in statements if statement.applies_to(permission, context, names)]

        by_owner = [
            (owner, statement)
            for owner, statements in (
                (caller.role, self._of_role.get(caller.role, [])),
                (permission.resource, self._with_principals(permission.resource)),
            )
            for statement in applying(statements)
        ]
        by_session = applying(caller.session or ())
        allowing = [(owner, found) for owner, found in by_owner if found.effect == "Allow"]
        denied = any(found.effect == "Deny" for found in [*by_session, *(s for _, s in by_owner)])
        in_scope = caller.session is None or any(found.effect == "Allow" for found in by_session)
        if permission.action == "sts:AssumeRole":
            in_scope = in_scope and bool(applying(self._trust.get(permission.resource, [])))
        allowed = bool(allowing) and not denied and in_scope
        self._record(caller.role, permission, allowing if allowed else (), allowed=allowed)
        if not allowed:
            reason = "no policy allows it"
            if denied:
                reason = "an explicit deny"
            elif allowing:
                reason = "the session policy or the role's trust policy does not allow it"
            raise Refused(f"{caller.role} may not {permission.action} on {permission.resource}: {reason}")

    def may_assume(self, service: str, role: str, source: str = "") -> None:
        """Raise `Refused` unless the role trusts this service."""
        permission = Permission("sts:AssumeRole", role)
        context = keys_sent(service, permission.action, source)
        trusted = self._trust.get(role, [])
        if not any(found.applies_to(permission, context, [service]) for found in trusted):
            raise Refused(f"{service} (for {source}) may not assume {role}: it is not trusted")

    def may_deliver(self, service: str, permission: Permission, source: str) -> None:
        """Raise `Refused` unless the receiver accepts this from a service on behalf of the source."""
        context = keys_sent(service, permission.action, source)
        applying = [
            statement
            for statement in self._resource_statements(permission.resource)
            if statement.applies_to(permission, context, [service])
        ]
        denied = any(statement.effect == "Deny" for statement in applying)
        allowing = [(permission.resource, statement) for statement in applying if statement.effect == "Allow"]
        allowed = bool(allowing) and not denied
        self._record(service, permission, allowing if allowed else (), allowed=allowed)
        if not allowed:
            raise Refused(
                f"{service} may not {permission.action} on {permission.resource} for {source}: "
                "the receiver's policy does not allow it"
            )

    # What was used

    def needless(self) -> list[tuple[str, Statement]]:
        """Return the statements without which every call so far would still have been allowed."""
        return [
            (owner, statement)
            for owner, statements in self.statements().items()
            for statement in statements
            if statement.effect == "Allow" and id(statement) not in self._needed
        ]

    def unused(self) -> list[tuple[str, str, str]]:
        """Return (role or resource, action, resource) of each permission that was never used."""
        return sorted(
            permission
            for owner, statements in self.statements().items()
            for statement in statements
            if statement.effect == "Allow"
            for permission in itertools.product([owner], statement.actions, statement.resources)
            if not self._used[permission]
        )

    def _record(
        self,
        caller: str,
        permission: Permission,
        allowing: Sequence[tuple[str, Statement]],
        *,
        allowed: bool,
    ) -> None:
        action, resource = permission.action, permission.resource
        with self._lock:
            self.calls[Call(caller, action, resource, allowed)] += 1
            if len(allowing) == 1:
                self._needed.add(id(allowing[0][1]))
            for owner, statement in allowing:
                for pair in itertools.product(statement.actions, statement.resources):
                    if _matches(pair[0].lower(), action.lower()) and _matches(pair[1], resource):
                        self._used[_owner_in(self._of_resource, owner), *pair] += 1

    def _with_principals(self, resource: str) -> list[Statement]:
        return [
            statement for statement in self._resource_statements(resource) if statement.principals is not None
        ]

    def _resource_statements(self, arn: str) -> Iterator[Statement]:
        yield from self._of_resource.get(_owner_in(self._of_resource, arn), ())


_ELEMENTS = {"Sid", "Effect", "Action", "Resource", "NotResource", "Principal", "Condition"}


def session_statements(policy: str | None) -> tuple[Statement, ...] | None:
    """The statements of a session policy; None without one."""
    return tuple(_statements(json.loads(policy))) if policy else None


def _owner_in(policies: Mapping[str, Any], arn: str) -> str:
    """The bucket of an object, if the bucket has a policy; otherwise the resource itself."""
    bucket = arn.split("/", 1)[0]
    return bucket if arn.startswith("arn:aws:s3:::") and bucket in policies else arn


def _statements(policy: Mapping[str, Any]) -> Iterator[Statement]:
    statements = policy["Statement"]
    yield from map(Statement.parse, [statements] if isinstance(statements, Mapping) else statements)


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _principals(principal: Any) -> Iterator[str]:
    if principal == "*":
        yield "*"
    else:
        for names in principal.values():
            yield from _listed(names)


def _matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = re.findall(r"\$\{([*?$])\}|([*?])|(.)", pattern, re.DOTALL)  # `${*}` is a literal star
    expression = (
        {"*": ".*", "?": "."}[wild] if wild else re.escape(literal or plain) for literal, wild, plain in parts
    )
    return re.compile("".join(expression), re.DOTALL)


def _holds(condition: str, expected: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    """Whether a condition holds. A positive condition fails if the call lacks its key."""
    operator = condition.removesuffix("IfExists")
    optional = operator != condition
    for key, values in expected.items():
        actual = context.get(key)
        if actual is None:
            if optional or operator in ("ArnNotEquals", "ArnNotLike", "StringNotEquals"):
                continue
            return False
        texts = [str(value) for value in (values if isinstance(values, list) else [values])]
        match operator:
            case "StringEquals":
                holds = actual in texts
            case "StringNotEquals":
                holds = actual not in texts
            case "StringLike" | "ArnLike" | "ArnEquals":  # AWS treats the last two alike
                holds = any(_matches(text, actual) for text in texts)
            case "ArnNotLike" | "ArnNotEquals":
                holds = not any(_matches(text, actual) for text in texts)
            case "Bool":
                holds = actual.lower() in (text.lower() for text in texts)
            case _:
                raise Unsupported(f"A policy has the condition {condition}, which is unknown here")
        if not holds:
            return False
    return True
