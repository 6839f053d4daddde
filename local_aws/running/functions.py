"""The functions of the template, and what a call of one returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from local_aws.clock import MovableClock
from local_aws.limits.lineage import Lineage
from local_aws.running.runtime_api import error_payload


@dataclass(frozen=True)
class Function:
    """A function as the template describes it."""

    name: str
    arn: str
    role: str
    handler: str
    code: Path  # the asset, as /var/task
    layers: tuple[Path, ...]  # as /opt
    environment: Mapping[str, str]
    timeout: float
    memory_mb: int
    log_group: str
    dead_letters: str | None

    @property
    def short_name(self) -> str:
        """`functions.handlers.evaluate.handler` -> `evaluate`."""
        return self.handler.split(".")[-2]


@dataclass(frozen=True)
class Invocation:
    """One call of a function, and its result."""

    function: str
    payload: bytes
    error: str | None  # the type of error, or None
    began: float  # on the local clock
    seconds: float
    is_cold: bool
    request: str
    log: tuple[str, ...] = field(default=(), repr=False)

    def too_large(self) -> Invocation:
        """The same, with an answer that is beyond Lambda's 6 MB."""
        kind = "Function.ResponseSizeTooLarge"
        text = f"Response payload size exceeded maximum allowed payload size ({len(self.payload)} bytes)."
        return replace(self, payload=error_payload(kind, text), error=kind)


@dataclass(frozen=True)
class Runtime:
    """What the functions of a stack run with."""

    folder: Path  # everything that they write is below
    packages: Path  # Lambda's own: its client and boto3
    wheels: Path  # the layer's
    endpoint: str
    clock: MovableClock
    credentials: Callable[[Function, str], Mapping[str, str]]
    log: Callable[[Function, str, str], None]  # function, stream, line
    begin: Callable[[str, Lineage], None]  # an environment works for a chain of calls
