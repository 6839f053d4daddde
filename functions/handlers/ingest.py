"""Batches of S3 events -> step index: record which worker has written which step, start what became complete.

The same queue delivers reminders to check that everything that was started has happened, which are passed
on, and continuations of executions that had no time left, which are started.
"""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.arrivals.batch import read_batch
from functions.arrivals.recording import record_arrivals
from functions.environment import IngestEnvironment
from functions.lifecycle.announced_end import job_ended
from functions.lifecycle.upkeep import go_on, pass_on


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    batch = read_batch(event)
    world = wiring.world(IngestEnvironment)
    for run, together in batch.by_run():
        with batch.seen_again_if_it_fails(run):
            record_arrivals(world, run, together, attempt=batch.attempt)
    for ended in batch.ended_jobs:
        with batch.seen_again_if_it_fails(ended):
            job_ended(world, ended)
    for reminder in batch.reminders:
        with batch.seen_again_if_it_fails(reminder):
            pass_on(world, reminder, batch.attempt)
    for continuation in batch.continuations:
        with batch.seen_again_if_it_fails(continuation):
            go_on(world, continuation, batch.attempt)
    return batch.answer()
