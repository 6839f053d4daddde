"""Scans scripts and notebooks line by line, without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from smdebug.migrating import old_library
from smdebug.migrating.conversion import convert
from smdebug.migrating.findings import Conversion, Finding, Scan, Verdict
from smdebug.migrating.names import Names
from smdebug.migrating.sagemaker_sdk import HOOK, PROFILER, RULES, TENSORBOARD, Sdk
from smdebug.migrating.sources import Code, files_below, read_source, unreadable
from smdebug.migrating.values import unknown

_PARTS = {
    HOOK: (
        "Converted: the hook reads it from debughookconfig.json.",
        "export SMDEBUG_CONFIG_FILE_PATH=debughookconfig.json",
    ),
    RULES: ("Converted: a run's rules are in rules.json.", "smdebug attach RUN rules.json"),
    TENSORBOARD: (
        "Converted: the hook reads it from tensorboardoutputconfig.json.",
        "export TENSORBOARD_CONFIG_FILE_PATH=tensorboardoutputconfig.json",
    ),
    PROFILER: ("The profiler is not part of this library.", "Remove it."),
}
_ESTIMATOR = (
    "The debugger runs outside SageMaker: the arguments for it are converted.",
    'debugger_hook_config=False, environment={"SMDEBUG_CONFIG_FILE_PATH": "debughookconfig.json"}',
)
# Methods of SageMaker's estimators and jobs that no other object has.
_METHODS = {
    "latest_job_debugger_artifacts_path": "the LocalPath in debughookconfig.json",
    "latest_job_tensorboard_artifacts_path": "the LocalPath in tensorboardoutputconfig.json",
    "latest_job_profiler_artifacts_path": "",
    "describe_rule_execution_jobs": "smdebug.service.connect().run(path).describe_rule_execution_jobs()",
    "rule_job_summary": "smdebug.service.connect().run(path).debug_rule_evaluation_statuses()",
}


def scan(paths: Iterable[Path]) -> Scan:
    """Scan files, and all scripts and notebooks below folders."""
    files: list[str] = []
    findings: list[Finding] = []
    conversions: list[Conversion] = []
    for path in paths:
        for file in files_below(path):
            try:
                source = read_source(file)
                scanner = _FileScanner(file, source.codes)
                found = [*source.findings, *scanner.scan()]
            except (RecursionError, MemoryError):
                findings.append(
                    unreadable(file, "Its code is nested too deeply, or too large for the memory.")
                )
            else:
                findings += found
                conversions += scanner.conversions
            files.append(str(file))
    findings.sort(key=lambda finding: (finding.place.file, finding.place.cell or 0, finding.place.line))
    return Scan(tuple(files), tuple(_without_repetitions(findings)), tuple(conversions))


def _without_repetitions(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield each finding once, and a line as unchanged only if nothing in it changes."""
    findings = list(dict.fromkeys(findings))
    changing = {finding.place for finding in findings if finding.verdict is not Verdict.WORKS}
    for finding in findings:
        if finding.verdict is not Verdict.WORKS or finding.place not in changing:
            yield finding


class _FileScanner:
    """Scans the code of one file."""

    def __init__(self, file: Path, codes: Iterable[Code]):
        self._file = file
        self._codes = list(codes)
        self._names = Names(self._codes)
        self._sdk = Sdk(self._names)
        self.conversions: list[Conversion] = []

    def scan(self) -> Iterator[Finding]:
        """Yield the findings of every line, and collect the conversions."""
        for code in self._codes:
            for statement in code.statements:
                for node in ast.walk(statement):
                    yield from self._node(code, node)
        yield from self._parts_without_an_estimator()

    def _node(self, code: Code, node: ast.AST) -> Iterator[Finding]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._import(code, node, alias.name, None)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield from self._import(code, node, node.module, alias.name)
        elif isinstance(node, ast.Call):
            yield from self._call(code, node)

    def _import(self, code: Code, node: ast.stmt, module: str, name: str | None) -> Iterator[Finding]:
        if old_library.is_ours(module):
            yield self._answered(code, node, old_library.check_import(module, name))
        elif module.startswith(("sagemaker.debugger", "smdebug_rulesconfig")) or (
            module == "sagemaker" and name == "debugger"
        ):
            message = "The configuration is converted: nothing of SageMaker's debugger is needed."
            yield _finding(code, node, Verdict.CHANGES, message, "Remove it.")

    def _call(self, code: Code, call: ast.Call) -> Iterator[Finding]:
        address = self._names.address(call.func)
        if address and old_library.is_ours(address):
            yield from self._library_call(code, call, address)
            return
        if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
            replacement = _METHODS[call.func.attr] or "Remove it."
            message = "This queries SageMaker, which does not know the runs of this library."
            yield _finding(code, call, Verdict.CHANGES, message, replacement)
            return
        part = self._sdk.part(call)
        if part is not None:
            yield _finding(code, call, Verdict.CHANGES, *_PARTS[part[0]])
            return
        job = self._sdk.job(call)
        if job is not None and _is_about_the_debugger(job):
            yield _finding(code, call, Verdict.CHANGES, *_ESTIMATOR)
            yield from self._convert(code, call.lineno, job)
        if self._sdk.is_estimator(call) and self._sdk.has_dynamic_arguments(call):
            message = "The arguments of this estimator are known only when the code runs."
            yield _finding(code, call, Verdict.UNCLEAR, message, "smdebug import-sagemaker JOB")

    def _library_call(self, code: Code, call: ast.Call, address: str) -> Iterator[Finding]:
        answer = old_library.check_call(address, {k.arg: _constant(k.value) for k in call.keywords if k.arg})
        yield self._answered(code, call, answer)

    def _answered(self, code: Code, node: ast.stmt | ast.expr, answer: old_library.Answer) -> Finding:
        verdict = Verdict.WORKS if answer.works else Verdict.CHANGES
        return _finding(code, node, verdict, answer.message, answer.replacement)

    def _convert(self, code: Code, line: int, job: dict[str, Any]) -> Iterator[Finding]:
        cell = f"-cell-{code.cell}" if code.cell is not None else ""
        name = f"{self._file.stem}{cell}-line-{line}"
        conversion, findings = convert(job, name=name, script=self._file.stem, code=code, line=line)
        if conversion is not None:
            self.conversions.append(conversion)
        yield from findings

    def _parts_without_an_estimator(self) -> Iterator[Finding]:
        """Convert what no estimator of the file uses, such as a configuration that a function returns."""
        job: dict[str, Any] = {}
        first: tuple[Code, int] | None = None
        for code in self._codes:
            for call in _calls(code.statements):
                found = self._sdk.part(call) if id(call) not in self._sdk.read_calls else None
                if found is None:
                    continue
                key, content = found
                first = first or (code, call.lineno)
                if key == RULES:
                    job.setdefault(RULES, []).append(content)
                else:
                    job.setdefault(key, content)
        if first is not None:
            yield from self._convert(*first, self._sdk.completed(job))


def _calls(statements: Iterable[ast.stmt]) -> Iterator[ast.Call]:
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                yield node


def _is_about_the_debugger(job: dict[str, Any]) -> bool:
    """Return whether more is configured than that the debugger is off."""
    return any(content is not False and content is not None for content in job.values())


def _constant(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else unknown(node)


def _finding(
    code: Code,
    node: ast.stmt | ast.expr,
    verdict: Verdict,
    message: str = "",
    replacement: str = "",
) -> Finding:
    return Finding(code.place(node.lineno), code.line(node.lineno), verdict, message, replacement)
