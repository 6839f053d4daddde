"""The states of a recorder, and what a call does in each. `TABLE` has all of it.

    NEW ── begin ──▶ IN_STEP ◀── begin ── BETWEEN_STEPS
                        └─────── end ─────────▲

From each of them a recorder may go QUIET, when nothing can or should be saved, and from any to CLOSED.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple


class State(IntEnum):
    """Where a recorder is. QUIET counts steps; CLOSED is final."""

    NEW = 0
    IN_STEP = 1
    BETWEEN_STEPS = 2
    QUIET = 3
    CLOSED = 4


class Offer(IntEnum):
    """What happens to a value that is offered."""

    TAKE = 0
    AMEND = 1  # it is added to the step that ran last
    WAIT = 2  # it is kept for the first step
    WARN = 3
    IGNORE = 4


class Behaviour(NamedTuple):
    """What the calls of a training do in one state."""

    begin: State
    end: State
    record: Offer
    """For `record`: a tensor that is saved if a collection wants it at this step."""
    save: Offer
    """For `save_scalar` and `save_tensor`: a value that is saved whatever is due."""


TABLE: Mapping[State, Behaviour] = {
    State.NEW: Behaviour(State.IN_STEP, State.NEW, Offer.WARN, Offer.WAIT),
    State.IN_STEP: Behaviour(State.IN_STEP, State.BETWEEN_STEPS, Offer.TAKE, Offer.TAKE),
    State.BETWEEN_STEPS: Behaviour(State.IN_STEP, State.BETWEEN_STEPS, Offer.WARN, Offer.AMEND),
    State.QUIET: Behaviour(State.QUIET, State.QUIET, Offer.IGNORE, Offer.IGNORE),
    State.CLOSED: Behaviour(State.CLOSED, State.CLOSED, Offer.IGNORE, Offer.IGNORE),
}
