"""Beginning to watch a run: its record, its rules, and its place on the list of watched runs."""

from __future__ import annotations

from functions.arrivals.rules_file import groups_of, requested_rules
from functions.decisions.configuration import default_rules
from functions.decisions.messages import job_of
from functions.lifecycle.silence import wake_in_time
from functions.run_record import list_again, with_news
from functions.world import World
from smdebug.service.records import GroupRecord, RunRecord
from smdebug.service.rules_file import RULES_FILE
from smdebug.service.step_index.items import RulesOfRun


def begin(world: World, run: str) -> RunRecord:
    """Add a run to the index, with its rules, and watch it."""
    now = world.clock.now()
    requested, trouble = requested_rules(world, run)
    rules = default_rules(world.settings.default_rules) if requested is None else requested
    job = job_of(run)
    if job is not None:
        world.index.note_job(job, run)
    watch_again(world, RunRecord(run))
    world.index.put_rules(run, RulesOfRun(rules), "")
    groups = groups_of(world, rules)
    for group in groups:
        world.index.groups.begin(run, GroupRecord(group))
    record = RunRecord(run, groups=groups, job=job, first_seen=now)
    record = with_news(record.with_trouble(RULES_FILE, trouble), "begin", now)
    if not world.index.begin_run(record):  # another process was faster and did the same
        return world.index.run(run) or record
    return record


def watch_again(world: World, record: RunRecord) -> None:
    """Put the run on the list of watched runs, keep its items, and schedule the check for silence."""
    list_again(world, record)
    wake_in_time(world, record.run)
