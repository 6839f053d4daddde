"""Whether there is a reason to list the files of a run: listing is what costs, and usually finds nothing."""

from __future__ import annotations

from smdebug.service.records import RunRecord, StepRecord

NOTIFIED_WITHIN = 60.0  # seconds: a younger file may still be reported by its notification
SILENT_AFTER = 240.0  # seconds without a file after which one may have been missed
LOST_TOGETHER = 20  # lost steps that are listed by one sweep


def doubt_of(record: RunRecord, waiting: StepRecord | None, newest: StepRecord | None, *, now: float) -> str:
    """Return why files of the run may have been missed, or "".

    `waiting` is the first step after those that were evaluated, and `newest` the last one.
    """
    if waiting is not None and now - waiting.indexed >= 2 * NOTIFIED_WITHIN:
        if record.num_workers is None:
            return "no collections file has arrived"
        return f"step {waiting.step} waits"
    silent_for = now - max(record.first_seen, newest.indexed if newest else 0.0)
    # The longer nothing arrives, the more rarely files are listed.
    if silent_for >= SILENT_AFTER and now - record.listed_at >= silent_for / 2:
        return f"nothing has arrived for {silent_for:.0f} s"
    return ""


def may_be_found(record: RunRecord, since_lost: StepRecord, *, now: float) -> bool:
    """Whether to list the files of lost steps again: more and more rarely, as most never come.

    `since_lost` is the first step, counted from the first lost one, with a file that has arrived.
    """
    return now - record.listed_at >= (now - since_lost.indexed) / 4
