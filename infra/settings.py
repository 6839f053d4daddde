"""What a user can choose about the deployed debugger, checked before anything is synthesized."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any


class SettingsError(ValueError):
    """A setting that cannot be used: the text says which, what is wrong with it, and what to write."""


class WorkflowType(StrEnum):
    EXPRESS = "express"
    STANDARD = "standard"


class Removal(StrEnum):
    """What happens to the runs and the step index when the stack is deleted."""

    RETAIN = "retain"
    DESTROY = "destroy"


class Architecture(StrEnum):
    ARM64 = "arm64"
    X86_64 = "x86_64"


DEFAULT_RULES = ("VanishingGradient", "ExplodingTensor", "LossNotDecreasing")
LOG_RETENTIONS = (
    1,
    3,
    5,
    7,
    14,
    30,
    60,
    90,
    120,
    150,
    180,
    365,
    400,
    545,
    731,
    1096,
    1827,
    2192,
    2557,
    2922,
    3288,
    3653,
)
# The environment of a function is limited to 4 KB, and the default rules are part of it.
_MOST_DEFAULT_RULES = 40


@dataclass(frozen=True)
class Settings:
    """How the debugger is to be deployed; every field has a value that is right for most."""

    bucket: str | None = None
    """An existing bucket to watch, with EventBridge events on; without, the stack makes its own."""
    run_retention_days: int | None = None
    """Objects of the stack's own bucket are deleted after so many days; without, they are kept."""
    index_retention_days: int = 90
    """What is known of a run is forgotten so many days after its last change."""
    default_rules: tuple[str, ...] = DEFAULT_RULES
    """The built-in rules that watch a run which brings no `rules.json`."""
    rule_sources: tuple[str, ...] = ()
    """`s3://bucket/prefix/` from where custom rules may be loaded, besides `rule-sources/` of the bucket."""
    other_buckets: tuple[str, ...] = ()
    """Buckets with runs that rules may compare with (`other_trials`); they are only read."""
    workflow_type: WorkflowType = WorkflowType.EXPRESS
    """`express` costs a tenth; `standard` keeps the history of each execution for 90 days."""
    alert_emails: tuple[str, ...] = ()
    """Addresses that get the alerts, after confirming once."""
    alert_phone_numbers: tuple[str, ...] = ()
    """Numbers that get the alerts as SMS, as +15551234567."""
    slack_secret: str | None = None
    """A Secrets Manager secret `{"url": …, "token": …}`: findings go to that Slack webhook."""
    webhook_secret: str | None = None
    """A Secrets Manager secret `{"url": …, "token": …}`: events go there as they are."""
    memory_mb: int = 1024
    """Memory of the functions that evaluate rules."""
    scratch_mb: int = 4096
    """Their `/tmp`, where event files too large for the memory are spooled."""
    architecture: Architecture = Architecture.ARM64
    """The processor of the functions; custom rules with their own requirements may need `x86_64`."""
    encryption_key_arn: str | None = None
    """A KMS key of yours for the bucket, the step index and the alerts; without, AWS's own keys."""
    log_retention_days: int = 30
    """Logs of the functions are deleted after so many days."""
    removal_policy: Removal = Removal.RETAIN
    """`retain` keeps the runs and the step index when the stack is deleted; `destroy` does not."""
    point_in_time_recovery: bool = True
    """Backups of the step index, to any second of the last 35 days."""
    batch_window_seconds: int = 0
    """How long notifications are collected before they are handled; 2 is right above 16 workers."""
    incomplete_step_timeout_seconds: int = 900
    """A step that some worker never finished is given up after so long."""
    stall_timeout_seconds: int = 1800
    """A run that has saved nothing for so long is reported as stalled."""
    silence_timeout_seconds: int = 21600
    """A run that has saved nothing for so long is taken to be over; it reopens when data comes."""
    custom_rules: Path = field(default=Path(__file__).parents[1] / "rules" / "custom")
    """The folder of which every rule file becomes a function of its own."""
    local: bool = False
    """For a laptop: the layer is the sources without the wheels. Nothing else differs."""

    def __post_init__(self) -> None:
        for check in (
            self._check_buckets,
            self._check_endpoints,
            self._check_numbers,
            self._check_default_rules,
            self._check_key,
            self._check_folder,
        ):
            check()

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Settings:
        """The settings among the values of `cdk.json` and of `cdk deploy -c name=value`."""
        known = {f.name: f for f in fields(cls)}
        given: dict[str, Any] = {}
        for name, value in context.items():
            if name in known:
                if value not in ("", None):
                    given[name] = _READERS[str(known[name].type)](name, value)
            elif not re.search(
                r"[:@/]", name
            ):  # CDK's own are aws:cdk:…, @aws-cdk/…, hosted-zone:…
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}."
                raise SettingsError(f"There is no setting {name!r}; {hint}")
        return cls(**given)

    def _check_buckets(self) -> None:
        for name, bucket in [
            ("bucket", self.bucket),
            *(("other_buckets", b) for b in self.other_buckets),
        ]:
            if bucket is not None and not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", bucket):
                raise SettingsError(
                    f"{name}={bucket!r} is not the name of a bucket: write it without s3:// and key."
                )
        for source in self.rule_sources:
            if not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/([^*?]*/)?", source):
                raise SettingsError(
                    f"rule_sources={source!r} is not a prefix: write s3://bucket/prefix/ with the last slash."
                )
        if self.bucket and self.run_retention_days is not None:
            raise SettingsError(
                f"run_retention_days={self.run_retention_days} is for the stack's own bucket: "
                f"set a lifecycle rule on {self.bucket!r} yourself, or leave `bucket` out."
            )

    def _check_endpoints(self) -> None:
        for address in self.alert_emails:
            if not re.fullmatch(r"[^@\s,]+@[^@\s,]+\.[^@\s,]+", address):
                raise SettingsError(f"alert_emails: {address!r} is not an e-mail address.")
        for number in self.alert_phone_numbers:
            if not re.fullmatch(r"\+[1-9]\d{6,14}", number):
                raise SettingsError(
                    f"alert_phone_numbers: {number!r} is not a number with its country: write +15551234567."
                )
        for name in ("slack_secret", "webhook_secret"):
            secret = getattr(self, name)
            if secret is not None and not re.fullmatch(r"[\w/+=.@-]{1,512}", secret):
                raise SettingsError(
                    f"{name}={secret!r} is not the name of a secret in Secrets Manager; the URL goes into it."
                )

    def _check_numbers(self) -> None:
        for name, least, most, why in (
            ("run_retention_days", 1, 36500, "days"),
            ("index_retention_days", 1, 3650, "days"),
            ("memory_mb", 256, 10240, "what Lambda offers, and what numpy needs"),
            ("scratch_mb", 512, 10240, "what Lambda offers"),
            ("batch_window_seconds", 0, 300, "what Lambda offers"),
            ("incomplete_step_timeout_seconds", 60, 7 * 86400, "a minute to a week"),
            ("stall_timeout_seconds", 60, 7 * 86400, "a minute to a week"),
            ("silence_timeout_seconds", 300, 30 * 86400, "five minutes to thirty days"),
        ):
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise SettingsError(f"{name}={value} is outside of {least} to {most} ({why}).")
        if self.log_retention_days not in LOG_RETENTIONS:
            raise SettingsError(
                f"log_retention_days={self.log_retention_days} is not a time that CloudWatch offers: "
                f"take one of {', '.join(map(str, LOG_RETENTIONS))}."
            )
        if self.silence_timeout_seconds <= self.stall_timeout_seconds:
            raise SettingsError(
                f"silence_timeout_seconds={self.silence_timeout_seconds} would end a run before it is "
                f"reported as stalled, after {self.stall_timeout_seconds} s: make it longer than that."
            )

    def _check_default_rules(self) -> None:
        for rule in self.default_rules:
            if not re.fullmatch(r"[A-Za-z_]\w{0,63}", rule):
                raise SettingsError(
                    f"default_rules: {rule!r} is not the name of a rule; docs/rules.md lists them. "
                    "Parameters go into the rules.json of a run."
                )
        twice = sorted({rule for rule in self.default_rules if self.default_rules.count(rule) > 1})
        if twice:
            raise SettingsError(
                f"default_rules: {', '.join(twice)} is there twice; once is enough."
            )
        if len(self.default_rules) > _MOST_DEFAULT_RULES:
            raise SettingsError(
                f"default_rules names {len(self.default_rules)} rules, and {_MOST_DEFAULT_RULES} fit into "
                "a function's environment: put the others into the rules.json of the runs."
            )

    def _check_key(self) -> None:
        arn = self.encryption_key_arn
        if arn is not None and not re.fullmatch(r"arn:aws[\w-]*:kms:[\w-]+:\d{12}:key/[\w-]+", arn):
            raise SettingsError(
                f"encryption_key_arn={arn!r} is not the ARN of a KMS key, which reads "
                "arn:aws:kms:<region>:<account>:key/<id>; an alias will not do."
            )

    def _check_folder(self) -> None:
        if not self.custom_rules.is_dir():
            raise SettingsError(f"custom_rules={str(self.custom_rules)!r} is not a folder.")


def _text(_: str, value: Any) -> str:
    return str(value)


def _number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"-?\d+", str(value)):
        raise SettingsError(f"{name}={value!r} is not a whole number.")
    return int(value)


def _truth(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() not in ("true", "false"):
        raise SettingsError(f"{name}={value!r} is neither true nor false.")
    return str(value).lower() == "true"


def _texts(name: str, value: Any) -> tuple[str, ...]:
    """From a list in cdk.json, or from a line with commas on the command line."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, Sequence) or not all(isinstance(part, str) for part in value):
        raise SettingsError(
            f"{name}={value!r} is neither a list of texts nor one line with commas."
        )
    return tuple(value)


def _one_of(choices: type[StrEnum]) -> Any:
    def read(name: str, value: Any) -> StrEnum:
        try:
            return choices(str(value).lower())
        except ValueError:
            raise SettingsError(f"{name}={value!r} is none of {', '.join(choices)}.") from None

    return read


def _folder(_: str, value: Any) -> Path:
    return Path(str(value)).resolve()


_READERS: dict[str, Any] = {
    "str": _text,
    "str | None": _text,
    "int": _number,
    "int | None": _number,
    "bool": _truth,
    "tuple[str, ...]": _texts,
    "WorkflowType": _one_of(WorkflowType),
    "Removal": _one_of(Removal),
    "Architecture": _one_of(Architecture),
    "Path": _folder,
}
