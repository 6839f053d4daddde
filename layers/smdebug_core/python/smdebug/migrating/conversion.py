"""From an estimator's debugger configuration to the files that this library reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.migrating.findings import Conversion, Finding, Verdict
from smdebug.migrating.sagemaker_sdk import HOOK, PROFILER, RULES, TENSORBOARD
from smdebug.migrating.sources import Code
from smdebug.migrating.values import Unknown
from smdebug.service.training_job import HOOK_FILE, import_training_job

_FILES = {HOOK: HOOK_FILE, RULES: "rules.json", TENSORBOARD: "tensorboardoutputconfig.json"}


def convert(
    job: Mapping[str, Any], *, name: str, script: str, code: Code, line: int
) -> tuple[Conversion | None, list[Finding]]:
    """Return the files of a job, and a finding for each part that cannot be converted.

    `name` is the conversion's own, `script` becomes part of the place where the run is saved.
    """
    findings = []
    known: dict[str, Any] = {}
    for key, content in job.items():
        unknown: list[tuple[str, Unknown]] = []
        cleaned = _without_unknown(content, key, unknown)
        findings += [_unclear(code, key, path, value) for path, value in unknown]
        if isinstance(cleaned, dict | list) and not (key == RULES and not cleaned):
            known[key] = cleaned
    place = code.place(line)
    if not set(known) & {HOOK, RULES, TENSORBOARD, PROFILER}:
        return None, findings
    try:
        imported = import_training_job(known, name=script)
    except SMDebugValueError as error:
        findings.append(
            Finding(place, code.line(line), Verdict.UNCLEAR, f"This cannot be converted: {error}")
        )
        return None, findings
    if not imported.files:
        return None, findings
    notes = list(imported.notes)
    if HOOK in known:
        has_place = known[HOOK].get("S3OutputPath") or known[HOOK].get("LocalPath")
        missing = "Change LocalPath" if has_place else "Add LocalPath"
        notes.append(f"{missing} in {HOOK_FILE}: each run needs a place of its own.")
    return Conversion(name, place, imported.files, tuple(notes)), findings


def _without_unknown(content: Any, path: str, unknown: list[tuple[str, Unknown]]) -> Any:
    """Return the content without what is not known, which is added to `unknown` with its path.

    A rule or collection of which the name is not known is left out as a whole.
    """
    if isinstance(content, Unknown):
        unknown.append((path, content))
        return None
    if isinstance(content, Mapping):
        cleaned = {}
        for key, value in content.items():
            kept = _without_unknown(value, f"{path}.{key}", unknown)
            if kept is not None:
                cleaned[str(key)] = _text(value) if _is_parameter(path) else kept
        return cleaned
    if isinstance(content, list):
        kept = [_without_unknown(v, f"{path}[{n}]", unknown) for n, v in enumerate(content)]
        return [value for value in kept if value is not None and not _is_nameless(value)]
    return content


def _is_parameter(path: str) -> bool:
    return path.endswith(("Parameters",))


def _text(value: Any) -> Any:
    """Return a parameter as the SDK sends it: as text."""
    return str(value) if isinstance(value, bool | int | float) else value


def _is_nameless(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    if "CollectionParameters" in value:
        return not value.get("CollectionName")
    if "RuleParameters" in value:
        return not value["RuleParameters"].get("rule_to_invoke")
    return False


def _unclear(code: Code, key: str, path: str, value: Unknown) -> Finding:
    file = _FILES.get(key)
    return Finding(
        code.place(value.line),
        code.line(value.line),
        Verdict.UNCLEAR,
        f"{path} {value.reason}: {value.code}",
        f"Add it to {file} by hand." if file else "",
    )
