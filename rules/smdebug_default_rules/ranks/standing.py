"""Which ranks stand elsewhere than in the collective that the others wait in.

Only durations by each rank's own clock are compared: clocks of ranks may differ by minutes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from smdebug.files.notes.stalls import STANDS, Stall

CONFIRMED = 2.0
"""After how many of its limits a rank that waits has waited long enough for others to have written, too."""
PATIENT = 10.0
"""The same for a rank that computes, evaluates or writes a checkpoint, and where no rank is behind."""
COMPUTES = 0.2
"""The share of a processor from which on a rank computes."""
BACKWARD = "the backward pass"
_PAUSE = re.compile(r"checkpoint|save|serializ|safetensors|evaluat|validat", re.IGNORECASE)
_COLLECTIVES = ("torch.distributed.", "smdebug.pytorch.ranks:", "horovod.")
_NO_COLLECTIVES = ("torch.distributed.checkpoint.", "torch.distributed.elastic.")
_AROUND = ("torch.", "smdebug.", "contextlib:")


class Standing(NamedTuple):
    """What the ranks of a training that makes no progress say together."""

    behind: Mapping[str, Stall]
    """The ranks that stand elsewhere."""
    lost: Sequence[str]
    """The ranks that have written nothing while others wait."""
    waits: Mapping[str, str]
    """In which function each of the others waits."""
    seconds: float
    """How long those have waited."""


def waits_in(stall: Stall) -> str:
    """Return the function in which a rank waits for others; "" if it stands in code of its own."""
    for frame in stall.stack:
        if frame.startswith("torch.autograd.graph:_engine_run_backward"):
            return BACKWARD
        if frame.startswith(_COLLECTIVES) and not frame.startswith(_NO_COLLECTIVES):
            return frame.split(":")[1] if ":" in frame else frame
        if not frame.startswith(_AROUND) or frame.startswith(_NO_COLLECTIVES):
            break
    return ""


def is_pause(stall: Stall) -> bool:
    """Whether a rank seems to do what takes long: it computes, evaluates or writes a checkpoint."""
    computes = stall.processor is not None and stall.processor >= COMPUTES
    return computes or any(_PAUSE.search(frame) for frame in stall.stack)


def names_of_ranks(expected: int) -> list[str]:
    """Return the workers of so many ranks, in their order."""
    return [f"worker_{rank}" for rank in range(expected)]


def standing(stalls: Mapping[str, Stall], expected: int) -> Standing | None:
    """Return which ranks the others wait for; None if none do, or if a pause may explain it."""
    ranks = names_of_ranks(expected)
    known = {worker: stalls[worker] for worker in ranks if worker in stalls and stalls[worker].is_open}
    still = {worker: stall for worker, stall in known.items() if stall.state == STANDS}
    waits = {worker: where for worker, stall in still.items() if (where := waits_in(stall))}
    if not waits:
        return None
    seconds = max(still[worker].seconds for worker in waits)
    limits = max(still[worker].seconds / still[worker].limit for worker in waits)
    own = {worker: stall for worker, stall in still.items() if worker not in waits}
    behind = {
        worker: stall
        for worker, stall in own.items()
        if stall.seconds >= (PATIENT if is_pause(stall) else 1.0) * stall.limit
    }
    lost = [worker for worker in ranks if worker not in known] if limits >= CONFIRMED else []
    if 2 * len(lost) > expected:
        lost = []
    if behind or lost:
        return Standing(behind, lost, waits, seconds)
    if len(waits) < expected or limits < CONFIRMED:
        return None
    places = {worker: (still[worker].step, where) for worker, where in waits.items()}
    counts = Counter(places.values())
    if len(counts) == 1:
        return Standing({}, (), waits, seconds) if limits >= PATIENT else None
    usual = max(counts, key=lambda place: (counts[place], place[0]))
    apart = {worker: still[worker] for worker, place in places.items() if place != usual}
    return Standing(apart, (), {w: where for w, where in waits.items() if w not in apart}, seconds)
