"""The JSON schema of what each command prints with `--json`: `smdebug COMMAND --json-schema`.

It is made of the forms beside this module, which the tests hold against every answer that they see. A later
release may add names to a form; it removes none, and changes the type of none.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from smdebug.cli.json_answers import of_deployments as deployed
from smdebug.cli.json_answers import of_rules as rules
from smdebug.cli.json_answers import saved_runs as saved

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DOCUMENTS: dict[str, Any] = {
    "inspect": saved.Inspection,
    "tensor": saved.TensorSeries | saved.TensorValue,
    "evaluate": list[rules.RuleOutcome],
    "gate": rules.Gate,
    "rules": list[rules.CatalogEntry] | rules.CatalogEntry,
    "compare": saved.Comparison,
    "verify": saved.Verification,
    "report": saved.Report,
    "plot": saved.Drawn,
    "export": saved.Exported | saved.Sent,
    "import": saved.Imported,
    "tag": list[saved.Annotations],
    "zoom": saved.ZoomRequest,
    "runs": list[saved.ListedRun] | list[deployed.WatchedRun],
    "backtest": rules.Backtest | rules.BacktestEstimate | rules.BacktestCancelled,
    "replay": rules.Replay,
    "status": deployed.RunStatus | deployed.NewsItem,
    "findings": list[deployed.FindingEvent],
    "attach": list[deployed.AttachedRule],
    "detach": list[deployed.AttachedRule],
    "stop": saved.StopRequest,
    "logs": list[deployed.LogLine],
    "policy": deployed.Policies | deployed.PolicyStatements,
    "import-sagemaker": deployed.ConvertedJob,
    "migrate": deployed.Migration,
    "doctor": list[deployed.Check],
    "completion": deployed.Completion,
    "demo": deployed.Demo,
    "run": deployed.WatchedTrainings,
}
"""What a command prints: one document, or one of several for its options."""

LINES: dict[str, Any] = {
    "watch": saved.LookedAt | saved.IssueChanged | saved.RuleFailed | saved.Unread,
    "ui": deployed.Serving,
    "mcp": deployed.Serving,
    "local": deployed.LocalStack,
}
"""What a line holds of a command that prints several."""

_SIMPLE = {str: "string", int: "integer", bool: "boolean", NoneType: "null"}
# JSON has no such numbers: they are printed as text.
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}


def schema_of(command: str, *, is_closed: bool = False) -> dict[str, Any]:
    """Return the schema of a command's answer; one that `is_closed` admits no other names."""
    form = DOCUMENTS.get(command, LINES.get(command))
    forms: dict[str, Any] = {}
    content = _schema(form, forms, is_closed)
    what = "Each line of the answer" if command in LINES else "The answer"
    head = {"$schema": DIALECT, "title": f"{what} of `smdebug {command} --json`"}
    return {**head, **content, "$defs": dict(sorted(forms.items()))}


def _schema(hint: Any, forms: dict[str, Any], is_closed: bool) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if is_typeddict(hint):
        return {"$ref": f"#/$defs/{_enter(hint, forms, is_closed)}"}
    if origin is Annotated:
        return {**_schema(arguments[0], forms, is_closed), "description": arguments[1]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (UnionType, Union):
        if all(each in _SIMPLE for each in arguments):
            return {"type": [_SIMPLE[each] for each in arguments]}
        return {"anyOf": [_schema(each, forms, is_closed) for each in arguments]}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], forms, is_closed)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], forms, is_closed)}
    if hint is float:
        return dict(_NUMBER)
    return {"type": _SIMPLE[hint]} if hint in _SIMPLE else {}


def _enter(form: Any, forms: dict[str, Any], is_closed: bool) -> str:
    """Define the form, unless that was done, and return its name."""
    name = str(form.__name__)
    if name in forms:
        return name
    forms[name] = {}  # it may hold itself
    properties, required = {}, []
    for key, hint in get_type_hints(form, include_extras=True).items():
        is_optional = get_origin(hint) is NotRequired
        properties[key] = _schema(get_args(hint)[0] if is_optional else hint, forms, is_closed)
        if not is_optional:
            required.append(key)
    forms[name] = {
        "type": "object",
        "description": (form.__doc__ or "").strip().splitlines()[0],
        "properties": properties,
        "required": required,
        **({"additionalProperties": False} if is_closed else {}),
    }
    return name
