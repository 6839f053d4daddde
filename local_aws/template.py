"""What a template says once its references are followed. Nothing here touches a service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from local_aws.errors import Unsupported

ACCOUNT, REGION = "123456789012", "us-east-1"
NO_VALUE = object()

Template = Mapping[str, Any]


class Resolver:
    """Follows the references of a template, asking `made` for what a resource became."""

    def __init__(
        self,
        template: Template,
        stack: str,
        *,
        made: Callable[[str], tuple[str, Mapping[str, str]]],
        secret: Callable[[str, str], str],
    ):
        self._template = template
        self._made = made
        self._secret = secret
        self._pseudo = {
            "AWS::AccountId": ACCOUNT,
            "AWS::Region": REGION,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": stack,
            "AWS::StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{stack}/local",
            "AWS::NoValue": NO_VALUE,
        }

    def __call__(self, value: Any) -> Any:
        """The value without intrinsics; one that is not known raises."""
        match value:
            case str():
                return self._without_secrets(value)
            case list():
                return [one for one in map(self, value) if one is not NO_VALUE]
            case dict() if len(value) == 1 and _is_intrinsic(name := next(iter(value))):
                return self._without_secrets(self._intrinsic(name, value[name]))
            case dict():
                told = {key: self(one) for key, one in value.items()}
                return {key: one for key, one in told.items() if one is not NO_VALUE}
        return value

    def _intrinsic(self, name: str, given: Any) -> Any:
        match name:
            case "Ref":
                return self._ref(given)
            case "Fn::GetAtt":
                return self._attribute(*(given if isinstance(given, list) else given.split(".", 1)))
            case "Fn::Join":
                return given[0].join(str(one) for one in self(given[1]))
            case "Fn::Select":
                return self(given[1])[int(self(given[0]))]
            case "Fn::Split":
                return self(given[1]).split(given[0])
            case "Fn::Sub":
                return self._sub(*((given, {}) if isinstance(given, str) else given))
        raise Unsupported(
            f"The template uses {name}, which the local stack does not know: {given!r}"
        )

    def _sub(self, text: str, told: Mapping[str, Any]) -> str:
        known = self(dict(told))

        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name in known:
                return str(known[name])
            return str(self._attribute(*name.split(".", 1)) if "." in name else self._ref(name))

        return re.sub(r"\$\{([^!}][^}]*)\}", value, text).replace("${!", "${")

    def _ref(self, name: str) -> Any:
        if name in self._pseudo:
            return self._pseudo[name]
        if name in self._template.get("Parameters", {}):
            return self._template["Parameters"][name]["Default"]
        return self._made(name)[0]

    def _attribute(self, name: str, attribute: str) -> str:
        attributes = self._made(name)[1]
        if attribute not in attributes:
            kind = self._template["Resources"][name]["Type"]
            raise Unsupported(
                f"The template asks for {attribute} of {name}; the local stack knows of {kind} "
                f"{', '.join(attributes) or 'nothing'}"
            )
        return attributes[attribute]

    def _without_secrets(self, value: Any) -> Any:
        """`{{resolve:secretsmanager:name:SecretString:field::}}` becomes what is in the secret."""
        if not isinstance(value, str) or "{{resolve:" not in value:
            return value
        told = re.sub(
            r"\{\{resolve:secretsmanager:([^:}]+):SecretString:([^:}]+)[^}]*\}\}",
            lambda found: self._secret(found[1], found[2]),
            value,
        )
        if "{{resolve:" in told:
            raise Unsupported(f"The template uses a reference that is not known here: {told}")
        return told


def known_only(kind: str, name: str, properties: Iterable[str], known: Iterable[str]) -> None:
    """Raise for a property that nobody here looks at: it would be left out silently."""
    unknown = sorted(set(properties) - set(known))
    if unknown:
        raise Unsupported(f"{name} ({kind}) sets {', '.join(unknown)}, unknown to the local stack")


def _is_intrinsic(name: str) -> bool:
    return name in ("Ref", "Condition") or name.startswith("Fn::")
