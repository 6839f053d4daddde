"""Replaces what the handlers are wired to by the simulated stack."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

import smdebug.storage
from functions import wiring
from functions.decisions.messages import bucket_and_prefix
from functions.environment import IndexAccess
from functions.world import World
from smdebug.logger import redirected
from tests.simulation.ports import Place
from tests.simulation.spy_rules import in_the_catalog

if TYPE_CHECKING:
    from tests.simulation.stack import Stack


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


@contextmanager
def surroundings(simulation: Stack) -> Iterator[None]:
    """Replace the wiring and the storage by the simulation's, and add the spies to the catalog."""

    def world(environment: type[IndexAccess]) -> World:
        assert simulation.running is not None
        assert simulation.running.process is not None
        return simulation.running.process.world

    def opened(location: str) -> Place:
        return Place(simulation, bucket_and_prefix(location.removeprefix("s3://"))[1].rstrip("/"))

    replacements = (
        (wiring, "world", world),
        (wiring, "opened", opened),
        (wiring, "action_ports", simulation.action_ports),
        (wiring, "notification_ports", simulation.notification_ports),
        (smdebug.storage, "open_storage", opened),
    )
    before = [(place, name, getattr(place, name)) for place, name, _ in replacements]
    for place, name, replacement in replacements:
        setattr(place, name, replacement)
    no_log = redirected(logging.CRITICAL, [logging.NullHandler()])
    try:
        with in_the_catalog(), no_log, redirect_stdout(_Nowhere()), redirect_stderr(_Nowhere()):
            yield
    finally:
        simulation.is_over = True
        for place, name, original in before:
            setattr(place, name, original)
        sys.modules.pop("custom_rule", None)
        for actor in simulation.actors:
            actor.is_killed = True
