"""The references of a template, resolved. Nothing here touches a service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from local_aws.errors import Unsupported

ACCOUNT, REGION = "123456789012", "us-east-1"
NO_VALUE = object()

Template = Mapping[str, Any]


class Resolver:
    """Resolves the references of a template; `created` returns the values of a resource."""

    def __init__(
        self,
        template: Template,
        stack: str,
        *,
        created: Callable[[str], tuple[str, Mapping[str, str]]],
    ):
        self._template = template
        self._created = created
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
        """Return the value with its intrinsics resolved; an unknown one raises."""
        match value:
            case str():
                if "{{resolve:" in value:
                    raise Unsupported(
                        f"The template uses a reference that the local stack does not support: {value}"
                    )
                return value
            case list():
                return [item for item in map(self, value) if item is not NO_VALUE]
            case dict() if len(value) == 1 and _is_intrinsic(name := next(iter(value))):
                return self._intrinsic(name, value[name])
            case dict():
                items = {key: self(item) for key, item in value.items()}
                return {key: item for key, item in items.items() if item is not NO_VALUE}
        return value

    def _intrinsic(self, name: str, given: Any) -> Any:
        match name:
            case "Ref":
                return self._ref(given)
            case "Fn::GetAtt":
                return self._attribute(*(given if isinstance(given, list) else given.split(".", 1)))
            case "Fn::Join":
                return given[0].join(str(part) for part in self(given[1]))
            case "Fn::Select":
                return self(given[1])[int(self(given[0]))]
            case "Fn::Split":
                return self(given[1]).split(given[0])
            case "Fn::FindInMap":
                table, first, second = (self(part) for part in given)
                return self._template["Mappings"][table][first][second]
            case "Fn::Sub":
                return self._sub(*((given, {}) if isinstance(given, str) else given))
        raise Unsupported(f"The template uses {name}, which the local stack does not support: {given!r}")

    def _sub(self, text: str, variables: Mapping[str, Any]) -> str:
        known = self(dict(variables))

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name in known:
                return str(known[name])
            return str(self._attribute(*name.split(".", 1)) if "." in name else self._ref(name))

        return re.sub(r"\$\{([^!}][^}]*)\}", value, text).replace("${!", "${")

    def _ref(self, name: str) -> Any:
        if name in self._pseudo:
            return self._pseudo[name]
        if name in self._template.get("Parameters", {}):
            return self._template["Parameters"][name]["Default"]
        return self._created(name)[0]

    def _attribute(self, name: str, attribute: str) -> str:
        attributes = self._created(name)[1]
        if attribute not in attributes:
            kind = self._template["Resources"][name]["Type"]
            raise Unsupported(
                f"The template asks for {attribute} of {name}; the local stack knows of {kind} only "
                f"{', '.join(attributes) or 'nothing'}"
            )
        return attributes[attribute]


def known_only(kind: str, name: str, properties: Iterable[str], known: Iterable[str]) -> None:
    """Raise for a property that is not in `known`: it would be ignored silently."""
    unknown = sorted(set(properties) - set(known))
    if unknown:
        raise Unsupported(
            f"{name} ({kind}) sets {', '.join(unknown)}, which the local stack does not support"
        )


def _is_intrinsic(name: str) -> bool:
    return name in ("Ref", "Condition") or name.startswith("Fn::")
