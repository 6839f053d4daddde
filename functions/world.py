"""Everything a function may touch, in one value: AWS by `functions.wiring`, memory in tests."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from functions.ports import CheckQueue, Clock, Lender, Objects, Schedules, Workflow
from functions.step_index import StepIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from smdebug.storage import Storage


@dataclass(frozen=True)
class Settings:
    """What whoever deployed the stack has decided; all times in seconds."""

    default_rules: tuple[str, ...] = ("VanishingGradient", "ExplodingTensor", "LossNotDecreasing")
    incomplete_step_timeout: float = 900.0
    stall_timeout: float = 1800.0  # without a step for so long, a run counts as silent
    silence_timeout: float = 6 * 3600.0  # and after so long, as ended
    end_grace: int = 60
    lease: float = 130.0
    work: float = 45.0  # no new step is begun after so much work
    check_delay: int = 300
    checks_in_vain: int = 24  # of an ended run, before what comes no further is given up
    largest_outbox: int = 100_000
    longest_backlog: int = 50  # steps looked at together
    custom_functions: dict[str, str] = field(default_factory=dict)  # deployed rules, by name
    sandbox: str = ""  # the function that runs rules loaded from S3
    rule_sources: tuple[str, ...] = ()  # from where they may be loaded: s3://bucket/prefix/
    partition: str = "aws"


@dataclass(frozen=True)
class World:
    """The ports, and the settings."""

    index: StepIndex
    objects: Objects
    workflow: Workflow
    checks: CheckQueue
    schedules: Schedules
    clock: Clock
    open_run: Callable[[str], Storage]
    lender: Lender
    settings: Settings = field(default_factory=Settings)
    kept_views: OrderedDict[str, Any] = field(default_factory=OrderedDict, compare=False)
    """Runs as read by this process, kept by `RuleBench` from one invocation to the next."""
