"""The permissions of each role as a table; `python -m infra.permissions` writes it into docs/security.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import aws_cdk as cdk

from infra.packaging.assets import ROOT
from infra.settings import Settings
from infra.stack import DebuggerStack

PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- generated: roles -->", "<!-- end of what is generated -->"
_CONTEXT = {
    "aws:cdk:bundling-stacks": [],
    "aws:cdk:enable-path-metadata": True,
    "@aws-cdk/aws-iam:minimizePolicies": True,
}


OPTIONAL = {
    "`account_concurrency` of 120 or more": Settings(account_concurrency=1000),
    "`backtests_at_once` and `nightly_backtest`": Settings(
        backtests_at_once=2, nightly_backtest=True, account_concurrency=40
    ),
    "`batch_queues`": Settings(batch_queues=("training",)),
}
"""Settings that add permissions, by how the page calls them."""


def tables() -> str:
    """Return the table of the default settings, and those of what other settings add to it."""
    usual = table(Settings()).splitlines()
    lines = list(usual)
    for name, settings in OPTIONAL.items():
        added = [row for row in table(settings).splitlines() if row not in usual]
        lines += ["", f"With {name} also:", "", *usual[:2], *added]
    return "\n".join(lines)


def table(settings: Settings) -> str:
    """Return one row per permission of each role, with the reason where it is on a pattern."""
    app = cdk.App(context=_CONTEXT, builtin_cloud_formation_validation=False)
    stack = DebuggerStack(app, "Stack", settings=settings)
    reasons = dict(_reasons(stack))
    template = app.synth().get_stack_by_name("Stack").template
    rows = ["| Role | may | on | because |", "|---|---|---|---|"]
    for role, statement in sorted(_statements(template["Resources"]), key=lambda row: row[0]):
        where = sorted(_named(resource, template) for resource in _list(statement["Resource"]))
        why = " ".join(dict.fromkeys(reasons[role, name] for name in where if (role, name) in reasons))
        rows.append(f"| {role} | {_code(_list(statement['Action']))} | {_code(where)} | {why} |")
    return "\n".join(rows)


def written_into(page: str) -> str:
    """Return the page with an up-to-date table."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


def _statements(resources: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for resource in resources.values():
        if resource["Type"] == "AWS::IAM::Policy":
            (role,) = resource["Properties"]["Roles"]
            for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
                path = resources[role["Ref"]]["Metadata"]["aws:cdk:path"]
                yield _of_role(path.removesuffix("/Resource")), statement


def _reasons(stack: cdk.Stack) -> Iterator[tuple[tuple[str, str], str]]:
    for construct in stack.node.find_all():
        for entry in construct.node.metadata:
            if entry.type == cdk.Validations.ACKNOWLEDGED_RULES_METADATA_KEY:
                for rule, reason in entry.data.items():
                    match = re.search(r"IAM5\[Resource::(.*)\]$", rule)
                    if match:
                        yield (_of_role(construct.node.path), _tidy(match[1])), reason


def _named(resource: Any, template: Mapping[str, Any]) -> str:
    match resource:
        case str():
            return _tidy(resource)
        case {"Fn::GetAtt": [name, "Arn"]} | {"Ref": name} if name in template["Resources"]:
            return _short(template["Resources"][name])
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::Join": [between, parts]}:
            return _tidy(str(between).join(_named(part, template) for part in parts))
    raise TypeError(f"{resource!r} is not a supported way to name a resource")


def _of_role(path: str) -> str:
    """Stack/Debugger/Ingest/Role -> Ingest."""
    return path.removeprefix("Stack/Debugger/").removesuffix("/Role")


def _short(resource: Mapping[str, Any]) -> str:
    """Stack/Debugger/StepIndex/Table/Resource -> StepIndex/Table."""
    path = str(resource["Metadata"]["aws:cdk:path"])
    return path.removeprefix("Stack/Debugger/").removesuffix("/Resource")


def _tidy(arn: str) -> str:
    for name in ("Partition", "Region", "AccountId"):
        arn = arn.replace(f"<AWS::{name}>", f"<{name.lower()}>")
    arn = re.sub(r"smdebug-[0-9a-f]{8}", "smdebug-<id>", arn)
    return arn.replace("arn:<partition>:s3:::smdebug-<id>-<accountid>-<region>", "<bucket>")


def _code(names: list[str]) -> str:
    return "<br>".join(f"`{name}`" for name in names)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


if __name__ == "__main__":
    PAGE.write_text(written_into(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
