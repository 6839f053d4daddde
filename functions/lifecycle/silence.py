"""Looking at a run that says nothing, after so long as its rules and the stack say."""

from __future__ import annotations

from functions.decisions.silence import marks
from functions.world import World


def marks_of(world: World, run: str) -> list[float]:
    """After how many seconds of silence somebody looks at the run, the least first."""
    return marks(
        world.index.rules(run).wanted,
        stall_timeout=world.settings.stall_timeout,
        silence_timeout=world.settings.silence_timeout,
    )


def wake_in_time(world: World, run: str) -> None:
    """Have somebody look as soon as the run could have been silent for so long."""
    world.schedules.wake(run, at=world.clock.now() + marks_of(world, run)[0])
