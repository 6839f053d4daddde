"""IAM as far as this application leans on it: who may do what, decided by the policies of the template.

A permission that is missing refuses the call, as AWS would; what was used is remembered, so that the rest
can be asked for its reason.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from local_aws.calls import Asked
from local_aws.errors import Unsupported
from local_aws.template import ACCOUNT


class Refused(Exception):
    """AccessDenied: nobody allows it, or somebody forbids it."""


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
    def of(cls, told: Mapping[str, Any]) -> Statement:
        unknown = set(told) - _PARTS
        if unknown:
            raise Unsupported(f"A policy uses {', '.join(sorted(unknown))}, unknown here: {told}")
        return cls(
            told["Effect"],
            tuple(_listed(told["Action"])),
            tuple(_listed(told.get("Resource", "*"))),
            tuple(_principals(told["Principal"])) if "Principal" in told else None,
            told.get("Condition", {}),
            tuple(_listed(told.get("NotResource", []))),
        )

    def speaks_of(self, asked: Asked, context: Mapping[str, str], caller: Iterable[str]) -> bool:
        """Does it allow or forbid that?"""
        callers = set(caller)
        return (
            any(_matches(one.lower(), asked.action.lower()) for one in self.actions)
            and any(_matches(one, asked.resource) for one in self.resources)
            and not any(_matches(one, asked.resource) for one in self.not_resources)
            and (self.principals is None or bool({"*", *callers} & set(self.principals)))
            and all(_holds(how, wanted, context) for how, wanted in self.conditions.items())
        )


@dataclass(frozen=True)
class Caller:
    """Who calls: a role, perhaps narrowed by the policy of a session."""

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
    """All policies of a deployment, and which of their statements were needed."""

    def __init__(self) -> None:
        self._of_role: dict[str, list[Statement]] = {}
        self._trust: dict[str, list[Statement]] = {}
        self._of_resource: dict[str, list[Statement]] = {}
        self._used: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()
        self._allowed: dict[Any, Callable[[Policies], None]] = {}
        self.calls: Counter[Call] = Counter()

    # What the template says

    def add_role(self, arn: str, trust: Mapping[str, Any]) -> None:
        self._trust[arn] = list(_statements(trust))
        self._of_role.setdefault(arn, [])

    def add_to_role(self, arn: str, policy: Mapping[str, Any]) -> None:
        self._of_role[arn] += _statements(policy)

    def add_to_resource(self, arn: str, policy: Mapping[str, Any]) -> None:
        self._of_resource.setdefault(arn, []).extend(_statements(policy))

    def statements(self) -> dict[str, list[Statement]]:
        """Every statement, by the role or resource it belongs to."""
        told = {role: list(kept) for role, kept in self._of_role.items()}
        return {**told, **{arn: list(kept) for arn, kept in self._of_resource.items()}}

    # What is asked

    def check(self, caller: Caller, asked: Asked) -> None:
        """May this role do that? `Refused` says no."""
        context = {
            **_EVERY_CALL,
            "aws:PrincipalArn": caller.role,
            "aws:PrincipalAccount": ACCOUNT,
            **asked.context,
        }
        account = f"arn:aws:iam::{ACCOUNT}:root"
        names = (caller.role, account)
        by_role = self._of_role.get(caller.role, [])
        by_resource = [
            one for one in self._resource_of(asked.resource) if one.principals is not None
        ]
        spoken = [
            (owner, one)
            for owner, kept in ((caller.role, by_role), (asked.resource, by_resource))
            for one in kept
            if one.speaks_of(asked, context, names)
        ]
        session = caller.session or ()
        of_session = [one for one in session if one.speaks_of(asked, context, names)]
        refused = [one for _, one in spoken if one.effect == "Deny"]
        refused += [one for one in of_session if one.effect == "Deny"]
        allowed = [(owner, one) for owner, one in spoken if one.effect == "Allow"]
        narrowed = caller.session is None or any(one.effect == "Allow" for one in of_session)
        if asked.action == "sts:AssumeRole":
            trusted = self._trust.get(asked.resource, [])
            narrowed = narrowed and any(one.speaks_of(asked, context, names) for one in trusted)
        fine = bool(allowed) and not refused and narrowed
        self._note(caller.role, asked, allowed if fine else (), fine=fine)
        if not fine:
            why = "an explicit deny" if refused else "no policy allows it"
            if allowed and not refused:
                why = "the policy of the session, or the trust of the role, does not allow it"
            raise Refused(f"{caller.role} may not {asked.action} on {asked.resource}: {why}")
        key = caller.role, asked.action, asked.resource, tuple(sorted(asked.context.items()))
        self._allowed.setdefault(key, lambda policies: policies.check(caller, asked))

    def may_assume(self, service: str, role: str, source: str = "") -> None:
        """May this service act as that role?"""
        context = {**_EVERY_CALL, "aws:SourceArn": source}
        asked = Asked("sts:AssumeRole", role)
        trusted = self._trust.get(role, [])
        if not any(one.speaks_of(asked, context, [service]) for one in trusted):
            raise Refused(f"{service} (for {source}) may not act as {role}: it is not trusted to")

    def may_deliver(self, service: str, asked: Asked, source: str) -> None:
        """Does the receiver accept that from a service, on behalf of that source?"""
        context = {**_EVERY_CALL, "aws:SourceArn": source}
        spoken = [
            one
            for one in self._resource_of(asked.resource)
            if one.speaks_of(asked, context, [service])
        ]
        refused = any(one.effect == "Deny" for one in spoken)
        allowed = [(asked.resource, one) for one in spoken if one.effect == "Allow"]
        fine = bool(allowed) and not refused
        self._note(service, asked, allowed if fine else (), fine=fine)
        if not fine:
            raise Refused(
                f"{service} may not {asked.action} on {asked.resource} for {source}: "
                "the receiver's policy does not allow it"
            )
        self._allowed.setdefault(
            (service, asked.action, asked.resource, source),
            lambda policies: policies.may_deliver(service, asked, source),
        )

    def replayed_without(self, statement: Statement) -> list[str]:
        """What of all that was allowed so far would be refused if there were no such statement."""
        without = Policies()
        for kept, place in (
            (self._of_role, without._of_role),
            (self._trust, without._trust),
            (self._of_resource, without._of_resource),
        ):
            for owner, statements in list(kept.items()):
                place[owner] = [one for one in statements if one is not statement]
        refused = []
        for ask in list(self._allowed.values()):
            try:
                ask(without)
            except Refused as refusal:
                refused.append(str(refusal))
        return refused

    def needless(self) -> list[tuple[str, Statement]]:
        """Statements without which all that was done could have been done."""
        return [
            (owner, one)
            for owner, statements in self.statements().items()
            for one in statements
            if one.effect == "Allow" and not self.replayed_without(one)
        ]

    def unused(self) -> list[tuple[str, str, str]]:
        """(role or resource, action, resource) of each permission that nothing has needed."""
        told = []
        for owner, statements in self.statements().items():
            for one in statements:
                if one.effect != "Allow":
                    continue
                each = itertools.product([owner], one.actions, one.resources)
                told += [named for named in each if not self._used[named]]
        return sorted(told)

    def _note(
        self,
        caller: str,
        asked: Asked,
        allowing: Iterable[tuple[str, Statement]],
        *,
        fine: bool,
    ) -> None:
        with self._lock:
            self.calls[Call(caller, asked.action, asked.resource, fine)] += 1
            for owner, one in allowing:
                for action in one.actions:
                    for resource in one.resources:
                        if _matches(action.lower(), asked.action.lower()) and _matches(
                            resource, asked.resource
                        ):
                            self._used[_owner_in(self._of_resource, owner), action, resource] += 1

    def _resource_of(self, arn: str) -> Iterator[Statement]:
        yield from self._of_resource.get(_owner_in(self._of_resource, arn), ())


_PARTS = {"Sid", "Effect", "Action", "Resource", "NotResource", "Principal", "Condition"}
_EVERY_CALL = {"aws:SourceAccount": ACCOUNT, "aws:SecureTransport": "true"}


def session_of(policy: str | None) -> tuple[Statement, ...] | None:
    """The statements by which a session is narrowed, if it is."""
    return tuple(_statements(json.loads(policy))) if policy else None


def _owner_in(policies: Mapping[str, Any], arn: str) -> str:
    """An object belongs to its bucket."""
    bucket = arn.split("/", 1)[0]
    return bucket if arn.startswith("arn:aws:s3:::") and bucket in policies else arn


def _statements(policy: Mapping[str, Any]) -> Iterator[Statement]:
    told = policy["Statement"]
    yield from map(Statement.of, [told] if isinstance(told, Mapping) else told)


def _listed(told: Any) -> list[str]:
    return [told] if isinstance(told, str) else list(told)


def _principals(told: Any) -> Iterator[str]:
    if told == "*":
        yield "*"
    else:
        for names in told.values():
            yield from _listed(names)


def _matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = re.findall(r"\$\{([*?$])\}|([*?])|(.)", pattern, re.DOTALL)  # `${*}` means just a star
    told = (
        {"*": ".*", "?": "."}[wild] if wild else re.escape(literal or plain)
        for literal, wild, plain in parts
    )
    return re.compile("".join(told), re.DOTALL)


def _holds(how: str, wanted: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    """Does a condition hold? A key that the call does not have makes a positive condition fail."""
    operator = how.removesuffix("IfExists")
    optional = operator != how
    for key, values in wanted.items():
        told = context.get(key)
        if told is None:
            if optional or operator in ("ArnNotEquals", "ArnNotLike", "StringNotEquals"):
                continue
            return False
        texts = [str(one) for one in (values if isinstance(values, list) else [values])]
        match operator:
            case "StringEquals":
                holds = told in texts
            case "StringNotEquals":
                holds = told not in texts
            case "StringLike" | "ArnLike" | "ArnEquals":  # the last two are the same for AWS
                holds = any(_matches(one, told) for one in texts)
            case "ArnNotLike" | "ArnNotEquals":
                holds = not any(_matches(one, told) for one in texts)
            case "Bool":
                holds = told.lower() in (one.lower() for one in texts)
            case _:
                raise Unsupported(f"A policy has the condition {how}, which nobody here knows")
        if not holds:
            return False
    return True
