"""Queues from which programs of the user's own read events: nothing in the account calls these programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
from constructs import Construct

from infra.events.dead_letters import LONGEST, Undelivered, encrypted_queue, let_rules_send
from infra.events.findings_bus import FOUND, RUN, FindingsBus


@dataclass(frozen=True)
class Wanted:
    """What the readers of a kind get, and what becomes of a message that they could not handle."""

    verb: str
    """What they do, as a part of names."""
    of: str
    """The events, in words."""
    detail_type: str
    detail: Mapping[str, Any]
    tried_again_after: cdk.Duration
    tries: int = 5
    kept: cdk.Duration = LONGEST


STOPS = Wanted(
    "Stop",
    "Findings that ask for an action, for the cluster",
    FOUND,
    {"has_actions": [True]},
    tried_again_after=cdk.Duration.minutes(1),
    # A stop that nobody has read by then might hit the next attempt of the run.
    kept=cdk.Duration.hours(1),
)
EXPORTS = Wanted(
    "Export",
    "Finished runs, for the tool",
    RUN,
    {"state": ["Finished"]},
    tried_again_after=cdk.Duration.hours(1),
    tries=24,
)


class ReadersQueues(Construct):
    """A queue for each reader, by its name."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        wanted: Wanted,
        names: Sequence[str],
        bus: FindingsBus,
        undelivered: Undelivered,
    ) -> None:
        super().__init__(scope, id)
        self.urls: Mapping[str, str] = {name: self._queue(name, wanted, bus, undelivered) for name in names}
        """The address of each queue."""

    def listed(self) -> str:
        """Return the names and addresses, for an output."""
        return ",".join(f"{name}={url}" for name, url in self.urls.items())

    def _queue(self, name: str, wanted: Wanted, bus: FindingsBus, undelivered: Undelivered) -> str:
        queue = encrypted_queue(
            self,
            name.capitalize(),
            visible_again_after=wanted.tried_again_after,
            dead_letters=undelivered.queue,
            tries=wanted.tries,
            kept=wanted.kept,
        )
        rule = bus.when(
            f"{wanted.verb}{name.capitalize()}",
            does=f"{wanted.of} {name}",
            detail_types=[wanted.detail_type],
            detail=wanted.detail,
            target=queue.queue_arn,
        )
        let_rules_send(queue, [rule])
        return queue.queue_url
