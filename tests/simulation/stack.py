"""The stack as its simulated parts know it: `simulation.Simulation` is made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from tests.simulation.limits import LimitedItems
from tests.simulation.scenarios import Scenario
from tests.simulation.scheduler import Actor, Scheduler


class RunFiles(Protocol):
    """The objects of the bucket."""

    def read(self, bucket: str, key: str) -> bytes: ...
    def list(self, bucket: str, prefix: str, after: str) -> Any: ...
    def write(self, key: str, data: bytes) -> None: ...


class Messages(Protocol):
    """Messages on their way to the functions."""

    wakes: dict[str, float]
    sweeps_in_vain: int

    def send(self, body: str, after: float) -> None: ...
    def plan(self, message: Mapping[str, Any], after: float) -> None: ...


class Stack(Scheduler, ABC):
    """The state that the parts share, and the calls that they make of each other."""

    scenario: Scenario
    items: LimitedItems
    bucket: RunFiles
    delivery: Messages
    letters: list[tuple[str, str]]
    stopped_jobs: list[str]
    last_change: float

    @abstractmethod
    def write(self, prefix: str, key: str, data: bytes) -> None: ...

    @abstractmethod
    def invoke(self, function: str, event: Any, request: str = "") -> Actor: ...

    @abstractmethod
    def start(self, name: str, request: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def action_ports(self) -> Any: ...

    @abstractmethod
    def notification_ports(self) -> Any: ...
