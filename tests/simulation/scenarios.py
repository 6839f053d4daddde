"""The scenarios that are simulated, by what is special in them.

They are small: a defect with thousands of steps also shows with three. A seed takes its scenario by its
position, so that new ones change which scenario a seed stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.simulation.trainings import FLOODS, KEPT_FOR, Training


@dataclass(frozen=True)
class Scenario:
    """Trainings that go on at the same time."""

    name: str
    trainings: tuple[Training, ...] = field(default_factory=lambda: (Training(),))
    has_gaps: bool = False  # steps that never become complete
    has_listeners: bool = False  # on the bus: those who act, and those who tell people
    has_readers: bool = False  # functions that read the files of a step for the one that evaluates it
    kept_for: float = KEPT_FOR  # seconds after which the table deletes steps
    pause: float = 0.0  # seconds between two steps, in which everything becomes quiet
    killed_every: float = 0.0  # seconds after which whatever runs then is killed, for a while


TWO_WORKERS = ((0, 1, 2), (0, 1, 2))

WORKERS = (
    Scenario("one worker, goes on", (Training(ends=False),)),
    Scenario("one worker, ends"),
    Scenario("two workers, go on", (Training(saves=TWO_WORKERS, ends=False),)),
    Scenario("two workers, end", (Training(saves=TWO_WORKERS),)),
    Scenario("two workers, read in shards", (Training(saves=TWO_WORKERS),), has_readers=True),
    Scenario("one skips a step", (Training(saves=((0, 1, 2, 3), (0, 2, 3))),), has_gaps=True),
    Scenario("one dies", (Training(saves=((0, 1, 2), (0, 1)), ends=False),), has_gaps=True),
    Scenario(
        "one dies, and the run ends",
        (Training(saves=((0, 1, 2, 3), (0, 1)), dead=frozenset({1})),),
    ),
    Scenario(
        "one dies, and nothing is found",
        (Training(saves=((0, 3, 6), (0, 3)), dead=frozenset({1})),),
    ),
    Scenario(
        "one saves the last steps alone",
        (Training(saves=((0, 1, 2, 3), (0, 1))),),
    ),
    Scenario(
        "collections come last, and the run ends",
        (Training(saves=TWO_WORKERS, collections_last=True),),
    ),
    Scenario("nobody closes", (Training(saves=TWO_WORKERS, dead=frozenset({0, 1})),)),
    Scenario("of the old library", (Training(saves=TWO_WORKERS, written_by_old_library=True),)),
    Scenario("collections come last", (Training(saves=TWO_WORKERS, collections_last=True, ends=False),)),
)
"""Which steps workers save, and how they end."""

RULES_OF_A_RUN = (
    Scenario("a large memory", (Training(rules=("large", "remembers"), ends=False),)),
    Scenario("asked at the end", (Training(saves=TWO_WORKERS, rules=("ends", "remembers")),)),
    Scenario("a rule that breaks", (Training(rules=("breaks", "remembers")),)),
)
"""Rules that are large, wait for the end, or break."""

SEVERAL_TRAININGS = (
    Scenario(
        "two runs at once",
        (Training(ends=False), Training("mnist2", ends=True, first_value=2.0, saves=((0, 1),))),
    ),
    Scenario("resumed", (Training(resumed=((1, 2, 3),), ends=False),)),
    Scenario(
        "two workers resume",
        (Training(saves=((0, 1, 2, 3), (0, 1, 2, 3)), resumed=((2,), (2,))),),
    ),
)
"""A second run, or a second attempt of the same one."""

CUSTOM_RULES = (
    Scenario("a custom rule", (Training(rules=("custom", "remembers"), ends=False),)),
    Scenario("custom rules to the end", (Training(rules=("custom", "custom, large")),)),
    Scenario(
        "a custom rule, resumed",
        (Training(rules=("custom",), saves=((0, 1, 2, 3),), resumed=((1, 2),)),),
    ),
)
"""Rules that users bring."""

CHANGING_RULES = (
    Scenario(
        "rules come and go",
        (Training(rules_change=(("remembers",), ("remembers", "large")), ends=False),),
    ),
    Scenario(
        "a rule comes back",
        (Training(rules_change=(("remembers",), ("remembers", "opens"))),),
    ),
    Scenario(
        "a custom rule comes, and goes at last",
        (
            Training(
                rules=("remembers",),
                rules_change=(("remembers", "custom"),),
                rules_at_last=("remembers",),
            ),
        ),
    ),
    Scenario(
        "rules of an ended run",
        (Training(rules=("remembers",), rules_at_last=("large", "custom")),),
    ),
)
"""Rules that are attached and detached."""

EXPIRY = (
    Scenario(
        "steps expire, and the run ends",
        (Training(saves=((0, 1, 2, 3, 4),)),),
        kept_for=6 * 3600.0,
        pause=3600.0,
    ),
    Scenario(
        "steps of two workers expire",
        (Training(saves=((0, 1, 2, 3), (0, 1, 2, 3)), ends=False),),
        kept_for=6 * 3600.0,
        pause=3600.0,
    ),
)
"""The table deletes steps while they are still needed."""

LIMITS = (
    Scenario(
        "limits are hit",
        (Training(rules=("huge", *(str(rule["name"]) for rule in FLOODS))),),
    ),
)
"""Sizes and counts beyond what the services take."""

KILLS = (
    Scenario("killed every half second", (Training(saves=TWO_WORKERS),), killed_every=0.5),
    Scenario(
        "killed every half second, collections last",
        (Training(saves=TWO_WORKERS, collections_last=True),),
        killed_every=0.5,
    ),
    Scenario(
        "killed every half second, resumed",
        (Training(saves=((0, 1, 2),), resumed=((1, 2, 3),)),),
        killed_every=0.5,
    ),
)
"""Everything that runs is killed again and again."""

LISTENERS = (Scenario("actions and alerts", (Training(rules=("acts",)),), has_listeners=True),)
"""Actions and messages that follow from events."""

SCENARIOS: tuple[Scenario, ...] = (
    *WORKERS,
    *RULES_OF_A_RUN,
    *SEVERAL_TRAININGS,
    *CUSTOM_RULES,
    *CHANGING_RULES,
    *EXPIRY,
    *LIMITS,
    *KILLS,
    *LISTENERS,
)
