"""Custom rules: a file in `rules/custom/` becomes a function, one at an S3 URI runs in a sandbox.

Their code is not trusted: the functions that run it may only write their logs.
"""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.names import CUSTOM_RULE_SANDBOX, CUSTOM_RULES, RULE_FILE, RULE_ROLE, RULE_SOURCES
from infra.packaging.assets import ROOT, bundle, copied
from infra.packaging.core_layer import PYTHON, install
from infra.packaging.fingerprints import fingerprint_of
from infra.python_function import PythonFunction, Shared
from infra.roles import allow
from infra.settings import LONGEST_JOB, Architecture, Settings, SettingsError
from infra.storage.run_bucket import RULE_SOURCES as OWN_SOURCES
from infra.storage.run_bucket import STATE, RunBucket

MOST_FILES = 25
MOST_NAMES = 2400  # bytes of a function's environment of 4 KB for the rules and their functions
_FUNCTION_NAME = 64  # characters, the longest that Lambda accepts
NARROWED = "The upper limit of what a claim lends; its session policy allows one run and one state key."
_HANDLER = "functions.handlers.run_custom_rule.handler"
_LOCK = ".requirements.txt"
_FUNCTIONS = ROOT / "functions"


@dataclass(frozen=True)
class RuleFile:
    """A file that defines rules, and its requirements besides the core library."""

    path: Path
    rules: tuple[str, ...]

    @property
    def id(self) -> str:
        """`my_rule.py` -> `MyRule`."""
        return "".join(part.capitalize() for part in self.path.stem.split("_"))

    @property
    def lock(self) -> Path | None:
        beside = self.path.with_name(self.path.stem + _LOCK)
        return beside if beside.exists() else None


def rule_files(folder: Path) -> list[RuleFile]:
    """Return the rule files of a folder. They are parsed, not run: they are not trusted here either."""
    files = [
        RuleFile(path, tuple(_rules_in(path)))
        for path in sorted(folder.glob("*.py"))
        if not path.name.startswith("_")
    ]
    if len(files) > MOST_FILES:
        raise SettingsError(
            f"{folder} has {len(files)} rule files, and at most {MOST_FILES} can be deployed: "
            "put several rules into one file, or load them from S3."
        )
    defined_in: dict[str, Path] = {}
    for file in files:
        if not file.rules:
            raise SettingsError(
                f"{file.path} defines no rule: a rule is a class that derives from smdebug.rules.Rule. "
                "Begin the names of other files with an underscore."
            )
        for rule in file.rules:
            if rule in defined_in:
                raise SettingsError(
                    f"{rule} is defined in {defined_in[rule]} and in {file.path}: rename one."
                )
            defined_in[rule] = file.path
    size = sum(len(f'"{rule}":"",') + _FUNCTION_NAME for rule in defined_in)
    if size > MOST_NAMES:
        raise SettingsError(
            f"{folder} defines {len(defined_in)} rules, whose names and functions take up to {size} "
            f"bytes, and {MOST_NAMES} fit into a function's environment: load some of them from S3."
        )
    return files


class CustomRules(Construct):
    """A function per rule file, the sandbox, and the role whose narrowed credentials they get."""

    def __init__(self, scope: Construct, id: str, *, shared: Shared) -> None:
        super().__init__(scope, id)
        settings = shared.settings
        files = rule_files(settings.custom_rules)
        self._function_of: dict[str, PythonFunction] = {}
        self._sandbox = self._untrusted("Sandbox", "Runs a rule from its source code", shared, None)
        self._functions = [self._sandbox]
        for file in files:
            function = self._untrusted(
                file.id,
                f"Runs the rules of {file.path.name}",
                shared,
                _code_of(file, settings.architecture),
            )
            function.knows(RULE_FILE, f"custom/{file.path.name}")
            self._functions.append(function)
            self._function_of.update(dict.fromkeys(file.rules, function))

    @property
    def functions(self) -> Sequence[PythonFunction]:
        """The functions that run untrusted code."""
        return self._functions

    def backtest_sandbox(self, shared: Shared) -> PythonFunction:
        """The same sandbox again, for backtests: rules of live runs do not wait for them."""
        return self._untrusted(
            "BacktestSandbox", "Runs a rule from its source code, for backtests", shared, None, reserved=0
        )

    def let_know_rules(self, function: PythonFunction) -> None:
        """Know which rules are deployed, and which function runs each."""
        names = {rule: deployed.name for rule, deployed in sorted(self._function_of.items())}
        function.knows(CUSTOM_RULES, cdk.Stack.of(self).to_json_string(names) if names else "{}")

    def let_claim(
        self,
        function: PythonFunction,
        *,
        bucket: RunBucket,
        settings: Settings,
    ) -> None:
        """Fetch a rule's source, and lend it credentials that are narrowed to one run."""
        self.let_know_rules(function)
        function.knows(CUSTOM_RULE_SANDBOX, self._sandbox.name)
        # With tenants, each has sources of its own: a folder that all can read belongs to none of them.
        own = [] if settings.tenants else [f"s3://{bucket.name}/{OWN_SOURCES}"]
        prefixes = [*own, *settings.rule_sources]
        elsewhere = [prefix.removeprefix("s3://") for prefix in settings.rule_sources]
        if elsewhere:  # besides the bucket itself
            function.may(
                "s3:GetObject",
                on=[f"arn:{cdk.Aws.PARTITION}:s3:::{place}*" for place in elsewhere],
                because="Custom rules are below the prefixes that `rule_sources` allows.",
            )
        function.knows(RULE_SOURCES, json.dumps(prefixes))
        role = iam.Role(
            self,
            "AccessRole",
            assumed_by=iam.ArnPrincipal(function.role.role_arn),
            # The shortest that IAM offers; a claim asks for 900 s.
            max_session_duration=cdk.Duration.hours(1),
            description="The upper limit of what custom rules may do; each claim narrows it",
        )
        others = [f"arn:{cdk.Aws.PARTITION}:s3:::{name}" for name in settings.other_buckets]
        buckets = [bucket.arn, *others]
        files = [f"arn:{cdk.Aws.PARTITION}:s3:::{place}*" for place in elsewhere]
        allow(role, "s3:GetObject", on=[*(f"{arn}/*" for arn in buckets), *files], because=NARROWED)
        allow(role, "s3:ListBucket", on=buckets)
        allow(role, "s3:PutObject", on=bucket.keys(STATE), because=NARROWED)
        function.may("sts:AssumeRole", on=[role.role_arn])
        function.knows(RULE_ROLE, role.role_arn)

    def _untrusted(
        self,
        id: str,
        does: str,
        shared: Shared,
        code: lambda_.Code | None,
        reserved: int | None = None,
    ) -> PythonFunction:
        return PythonFunction(
            self,
            id,
            shared=shared,
            handler=_HANDLER,
            does=does,
            timeout=LONGEST_JOB,
            memory_mb=shared.settings.memory_mb,
            scratch_mb=shared.settings.scratch_mb,
            is_trusted=False,
            code=code,
            reserved=shared.settings.custom_concurrency if reserved is None else reserved,
        )


def filling(file: RuleFile, architecture: Architecture) -> Callable[[Path], None]:
    """Return a function that fills a folder with the rule file, its requirements, and `functions`."""

    def fill(target: Path) -> None:
        if file.lock:
            if "--hash=" not in file.lock.read_text(encoding="utf-8"):
                raise SettingsError(
                    f"{file.lock} has no hashes, so other versions than the tested ones could be deployed: "
                    f"create it with `uv pip compile --generate-hashes --python-version {PYTHON}`."
                )
            install(file.lock, target, architecture)
        copied(_FUNCTIONS)(target)
        (target / "custom").mkdir()
        shutil.copy(file.path, target / "custom")

    return fill


def _code_of(file: RuleFile, architecture: Architecture) -> lambda_.Code:
    parts = [_FUNCTIONS, file.path, *([file.lock] if file.lock else [])]
    fingerprint = fingerprint_of(parts, architecture, PYTHON)
    return bundle(_FUNCTIONS, filling(file, architecture), fingerprint)


def _rules_in(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except (SyntaxError, ValueError) as error:
        raise SettingsError(f"{path} is not valid Python: {error}") from error
    rules: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            if any(base.endswith("Rule") for base in bases) or bases & set(rules):
                rules.append(node.name)
    return rules
