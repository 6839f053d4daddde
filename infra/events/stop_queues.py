"""A queue for each cluster of the user's own, of findings whose rules ask to stop the training.

The cluster asks the queue; nothing in the account may call the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from constructs import Construct

from infra.events.dead_letters import Undelivered, encrypted_queue, let_rules_send
from infra.events.findings_bus import FOUND, FindingsBus

_HANDLED_WITHIN = cdk.Duration.seconds(60)
_OUTDATED_AFTER = cdk.Duration.hours(1)
"""A stop that nobody has read by then might hit the next attempt of the run."""


class StopQueues(Construct):
    """The queues by the names of their clusters."""

    def __init__(
        self, scope: Construct, id: str, *, names: Sequence[str], bus: FindingsBus, undelivered: Undelivered
    ) -> None:
        super().__init__(scope, id)
        self.urls: Mapping[str, str] = {name: self._queue(name, bus, undelivered) for name in names}
        """The address of each queue."""

    def _queue(self, name: str, bus: FindingsBus, undelivered: Undelivered) -> str:
        queue = encrypted_queue(
            self,
            name.capitalize(),
            visible_again_after=_HANDLED_WITHIN,
            dead_letters=undelivered.queue,
            kept=_OUTDATED_AFTER,
        )
        rule = bus.when(
            f"Stop{name.capitalize()}",
            does=f"Findings that ask for an action, for the cluster {name}",
            detail_types=[FOUND],
            detail={"has_actions": [True]},
            target=queue.queue_arn,
        )
        let_rules_send(queue, [rule])
        return queue.queue_url
