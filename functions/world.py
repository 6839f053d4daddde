"""Everything that evaluating a run needs, in one value: AWS by `functions.wiring`, memory in tests."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from functions.decisions.tenants import Tenants
from functions.ports import CheckQueue, Clock, Lender, Objects, Readers, Schedules, Workflow
from functions.step_index import StepIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from smdebug.storage import Storage


@dataclass(frozen=True, kw_only=True)
class AppSettings:
    """The settings of the deployment, and the limits of the application; times in seconds.

    `infra/settings.py` holds the values of the settings, and their defaults.
    """

    default_rules: tuple[str, ...]
    incomplete_step_timeout: float
    stall_timeout: float  # a run without a step for this long is silent
    silence_timeout: float  # and after this long, it counts as ended

    # Of a stack with custom rules; empty for functions that do not need them
    custom_functions: Mapping[str, str] = field(default_factory=dict)  # by rule name
    sandbox: str = ""  # the function that runs rules loaded from S3
    rule_sources: tuple[str, ...] = ()  # the prefixes they may be loaded from: s3://bucket/prefix/
    partition: str = "aws"

    # What one run may take of what belongs to all
    tenants: Tenants = field(default_factory=Tenants)
    custom_rules_per_run: int = 10
    custom_gb_seconds: int = 100_000  # of a run's custom rules in a day
    custom_memory_mb: int = 1024  # of the functions that run them

    # Limits of the application
    end_grace: int = 1800  # as long as messages of failed batches come back
    lease: float = 130.0
    work: float = 45.0  # no new step is begun after this much work
    execution: float = 145.0  # an execution of the workflow begins nothing new after this long
    check_delay: int = 300
    early: float = 5.0  # seconds by which a message may come early, as clocks differ
    swept_at_once: int = 8  # runs; most of a sweep is waiting for answers
    checks_in_vain: int = 24  # of an ended run, before rules without progress are given up
    largest_outbox: int = 100_000
    longest_backlog: int = 50  # steps read at a time
    longest_gap: int = 10_000  # incomplete steps read in search of a complete one
    page: int = 500  # steps read at a time where no files of theirs are read
    fewest_in_shards: int = 128  # files; fewer are read as fast by one function
    files_a_shard: int = 32  # as many as a function reads at a time


class NoReaders:
    """A stack that deploys no functions that read shards."""

    at_once = 0

    def ask(self, requests: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any] | None]:
        return [None for _ in requests]


@dataclass(frozen=True)
class World:
    """The ports and the settings."""

    index: StepIndex
    objects: Objects
    workflow: Workflow
    checks: CheckQueue
    schedules: Schedules
    clock: Clock
    open_run: Callable[[str], Storage]
    lender: Lender
    settings: AppSettings
    readers: Readers = field(default_factory=NoReaders)
    kept_views: OrderedDict[str, Any] = field(default_factory=OrderedDict, compare=False)
    """Runs as read by this process, kept by `RuleBench` from one invocation to the next."""
