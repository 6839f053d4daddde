"""The work on a run that none of its files starts: a schedule does, as often as needed."""

from __future__ import annotations

from collections.abc import Mapping

from functions.decisions.messages import Continuation, Reminder
from functions.lifecycle.last_listing import finish, list_again
from functions.lifecycle.reminders import check
from functions.lifecycle.silence import watch
from functions.workflow_start import start_evaluation
from functions.world import World


def tend(world: World, message: Mapping[str, str]) -> None:
    """Do what the message of a schedule asks for."""
    attempt = f"{world.clock.now():.0f}"
    if "finish" in message:
        finish(world, message["finish"], attempt)
    elif "list" in message:
        list_again(world, message["list"], attempt)
    elif "check" in message:
        check(world, message["check"], attempt)
    else:
        watch(world, message["run"])


def pass_on(world: World, reminder: Reminder, attempt: str) -> None:
    """Pass a message of the queue on to a schedule; start an evaluation for one that is urgent.

    The work is not done here: whatever it takes must not hold up the files that arrive, and messages that
    return to their own queue are dropped after about 16 times.
    """
    if reminder.at_once:
        start_evaluation(world, reminder.run, 0, attempt=attempt)
    else:
        kind = "finish" if reminder.finish else "check"
        world.checks.leave({kind: reminder.run}, after_seconds=0)


def go_on(world: World, left: Continuation, attempt: str) -> None:
    """Start another execution for the group that the last one had no time for.

    Nothing is started while the group is held: its holder goes on by itself. So executions that wait for
    each other do not multiply; should the holder have died, the check that was left finds the group.
    """
    held = world.index.groups.get(left.run, left.group) if left.group else None
    if held is None or held.lease_until <= world.clock.now():
        only = (left.group,) if left.group else ()
        start_evaluation(world, left.run, 0, attempt=attempt, only=only)
