"""What a sink is, and how one is named: `mlflow`, `wandb:my-project`, `jsonl:records.jsonl`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.extras import install_command
from smdebug.plain_text import did_you_mean
from smdebug.sinks.records import Record, RunRecord


class RunSink(Protocol):
    """Takes the records of one run, in order: `begin`, any number of `send`, `end`.

    `SinkUnavailable` says that the same records may be sent again later, `SinkRefused` that they cannot be
    sent until somebody corrects something.
    """

    @property
    def place(self) -> str:
        """Where the records go, for a sentence; without secrets."""

    @property
    def notes(self) -> list[str]:
        """What arrives otherwise than it was, in sentences: names that were changed, numbers left out."""

    def begin(self, run: RunRecord) -> None:
        """Begin, or join, the run in the tool."""

    def send(self, records: Sequence[Record]) -> None:
        """Send the records; all of them have arrived once it returns."""

    def end(self, *, is_complete: bool = True) -> None:
        """End what `begin` began. A run that was joined stays open."""


@dataclass(frozen=True)
class SinkKind:
    """A tool that takes records."""

    tool: str
    """Its name in sentences."""
    target: str
    """What may follow the colon, in words; "" if nothing may."""
    ending: str = ""
    """The ending of its files; "" if it writes none. A file has to be named."""
    extra: str = ""
    """The extra that has its library; "" if it needs none."""
    module: str = ""
    """The module of its library."""
    knows_events: bool = False
    """Whether a run that is sent again for the same event is the same run of the tool."""


KINDS: dict[str, SinkKind] = {
    "jsonl": SinkKind("JSON lines", "a file", "jsonl"),
    "prometheus": SinkKind("Prometheus", "a file", "prom"),
    "cloudwatch": SinkKind("CloudWatch", "a file", "emf.jsonl"),
    "otlp": SinkKind("OpenTelemetry", "the endpoint of a collector"),
    "mlflow": SinkKind(
        "MLflow", "the address of a tracking server", extra="mlflow", module="mlflow", knows_events=True
    ),
    "wandb": SinkKind("W&B", "a project", extra="wandb", module="wandb", knows_events=True),
    "trackio": SinkKind("trackio", "a project", extra="trackio", module="trackio"),
}


@dataclass(frozen=True)
class SinkChoice:
    """A sink that somebody asked for."""

    name: str
    target: str = ""

    @property
    def kind(self) -> SinkKind:
        return KINDS[self.name]

    @property
    def missing_library(self) -> str:
        """What is missing, in a sentence; "" if the tool's library is installed or none is needed."""
        kind = self.kind
        if not kind.module or find_spec(kind.module) is not None:
            return ""
        return f"{kind.tool} needs its library, which is not installed: {install_command(kind.extra)}"

    def __str__(self) -> str:
        return f"{self.name}:{self.target}" if self.target else self.name

    def export_command(self, run: str, run_id: str = "") -> str:
        """Return the command that sends a saved run to this tool, into its run `run_id` if there is one.

        A file is left out: those of a hook may have lines of several runs, and an export replaces its file.
        """
        words = ["smdebug", "export", self.name, run]
        if self.target and not self.kind.ending:
            words += ["--to", self.target]
        if run_id:
            words += ["--into", run_id]
        return shlex.join(words)


def choice_of(text: Any) -> SinkChoice:
    """Return the sink with that name; raise if there is none, or its file is missing."""
    if not isinstance(text, str):
        raise SMDebugTypeError(f'A sink is named by text such as "mlflow", not by {type(text).__name__}')
    name, _, target = text.partition(":")
    kind = KINDS.get(name)
    if kind is None:
        known = ", ".join(KINDS)
        hint = did_you_mean(name, list(KINDS))
        raise SMDebugValueError(f"There is no sink {name!r}: the sinks are {known}.{hint}")
    if kind.ending and not target:
        raise SMDebugValueError(f'The sink {name} writes a file: name it, as in "{name}:run.{kind.ending}"')
    return SinkChoice(name, target)


def choices_of(sinks: Any) -> tuple[SinkChoice, ...]:
    """Return the sinks in an option of a hook, each once; raise if there is no such sink."""
    if isinstance(sinks, str | SinkChoice):
        sinks = [sinks]
    if not isinstance(sinks, Iterable):
        raise SMDebugTypeError(f"sinks must be a list of names, not {type(sinks).__name__}")
    found = (sink if isinstance(sink, SinkChoice) else choice_of(sink) for sink in sinks)
    return tuple(dict.fromkeys(found))
