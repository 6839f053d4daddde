"""The functions of the debugger: what each does, and how much time and memory it has."""

from __future__ import annotations

from typing import Any

from constructs import Construct

from infra.alerting.webhooks import webhooks_of
from infra.custom_rules import CustomRules
from infra.python_function import PythonFunction, Shared
from infra.releases.gradual_releases import GradualReleases
from infra.watch_schedules import WatchSchedules

QUICK = 60  # seconds, for a function that reads records and no tensors
ARRIVALS = 30
"""Seconds for a batch of arrivals. Those of a call that was throttled are hidden for as long."""
EVALUATION = 120
SHARD = 20
REPORT = 300
SWEEP = 300


class Functions:
    """All functions, below one construct; none may do anything yet (see `infra.grants`)."""

    def __init__(self, scope: Construct, *, shared: Shared, schedules: WatchSchedules) -> None:
        self._scope = scope
        self._shared = shared
        settings = shared.settings
        tensors = {"memory_mb": settings.memory_mb, "scratch_mb": settings.scratch_mb}
        self.ingest = self._function(
            "Ingest", "ingest", "Records what has arrived, starts the evaluation of complete steps", ARRIVALS
        )
        self.evaluate = self._function(
            "Evaluate",
            "evaluate",
            "Evaluates the built-in rules",
            EVALUATION,
            reserved=settings.reserved_concurrency,
            **tensors,
        )
        self.read_shard = (
            self._function("ReadShard", "read_shard", "Reads files of many workers for Evaluate", SHARD)
            if settings.readers_at_once
            else None
        )
        self.claim = self._function("Claim", "claim", "Prepares the evaluation of a custom rule", EVALUATION)
        self.commit = self._function(
            "Commit", "commit", "Checks and commits the result of a custom rule", EVALUATION
        )
        self.mark_published = self._function(
            "MarkPublished", "mark_published", "Removes published events from the outbox"
        )
        self.finish_run = self._function(
            "FinishRun", "finish_run", "Sets the final status of every rule of a run", EVALUATION
        )
        self.sweep = self._asynchronous("Sweep", "sweep", "Finds files whose notification was lost", SWEEP)
        self.watch = self._asynchronous(
            "Watch",
            "watch",
            "Checks runs, ends them, detects silent ones",
            EVALUATION,
            name=schedules.function_name,
        )
        self.act = self._asynchronous("Act", "act", "Performs the actions of a finding")
        self.notify = self._asynchronous("Notify", "notify", "Sends alerts to people", memory_mb=256)
        self.write_report = self._asynchronous(
            "WriteReport", "write_report", "Writes the report of a finished run", REPORT, **tensors
        )
        self.webhooks = [
            (
                webhook,
                self._asynchronous(
                    f"PostTo{webhook.id}",
                    "post_webhook",
                    "Posts events to a webhook",
                    memory_mb=256,
                ),
            )
            for webhook in webhooks_of(settings)
        ]
        self.custom = CustomRules(scope, "CustomRules", shared=shared)
        if settings.gradual_deployment:
            releases = GradualReleases(scope, "Releases")
            for busy in (self.ingest, self.evaluate):  # the others are called too rarely to be judged
                releases.release(busy)

    @property
    def monitored(self) -> list[PythonFunction]:
        """The functions on the dashboard, in its order."""
        return [
            self.ingest,
            self.evaluate,
            *([self.read_shard] if self.read_shard else []),
            self.claim,
            *self.custom.functions,
            self.commit,
            self.finish_run,
            self.sweep,
            self.watch,
            self.act,
            self.notify,
            self.write_report,
            *(function for _, function in self.webhooks),
        ]

    def _function(
        self, id: str, module: str, does: str, timeout: int = QUICK, **options: Any
    ) -> PythonFunction:
        return PythonFunction(
            self._scope,
            id,
            shared=self._shared,
            handler=f"functions.handlers.{module}.handler",
            does=does,
            timeout=timeout,
            **options,
        )

    def _asynchronous(
        self, id: str, module: str, does: str, timeout: int = QUICK, **options: Any
    ) -> PythonFunction:
        """A function that nothing waits for: its failed events are kept as dead letters."""
        return self._function(id, module, does, timeout, is_asynchronous=True, **options)
