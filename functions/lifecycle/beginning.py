"""Beginning to watch a run: its record, its rules, and its place on the list of watched runs."""

from __future__ import annotations

from dataclasses import replace

from functions.arrivals.rules_file import groups_of, requested_rules
from functions.decisions.configuration import default_rules
from functions.decisions.messages import job_of
from functions.lifecycle.silence import wake_in_time
from functions.run_record import change, list_again, with_news
from functions.workflow_start import start_evaluation
from functions.world import World
from smdebug.service.records import REFUSED, GroupRecord, RunRecord, RunState, RunVerdict
from smdebug.service.rules_file import RULES_FILE
from smdebug.service.step_index.items import RulesOfRun


def begun(world: World, run: str) -> RunRecord | None:
    """Return the record of the run, which begins if it is new; None if this place may not be a run."""
    known = world.index.run(run)
    if known is not None and not known.is_refused:
        return known
    reason = world.settings.tenants.refusal_of_run(run) or _overlap(world, run)
    if reason:
        if known is None:
            _refuse(world, run, reason)
        return None
    return begin(world, run, refused=known)


def begin(world: World, run: str, *, refused: RunRecord | None = None) -> RunRecord:
    """Add a run to the index, with its rules, and watch it; it may have been `refused` until now."""
    now = world.clock.now()
    requested, trouble = requested_rules(world, run)
    rules = default_rules(world.settings.default_rules) if requested is None else requested
    job = job_of(run)
    if job is not None:
        world.index.note_job(job, run)
    watch_again(world, refused or RunRecord(run))
    world.index.put_rules(run, RulesOfRun(rules), "")
    groups = groups_of(world, rules)
    for group in groups:
        world.index.groups.begin(run, GroupRecord(group))
    record = RunRecord(run, groups=groups, job=job, first_seen=now)
    record = with_news(record.with_trouble(RULES_FILE, trouble), "begin", now)
    if refused is not None:
        world.checks.leave({"list": run}, after_seconds=0)  # what was left unread
        return change(world, refused, lambda known: _instead_of(known, record))
    if not world.index.begin_run(record):  # another process was faster and did the same
        return world.index.run(run) or record
    return record


def watch_again(world: World, record: RunRecord) -> None:
    """Put the run on the list of watched runs, keep its items, and schedule the check for silence."""
    list_again(world, record)
    wake_in_time(world, record.run)


def _instead_of(refused: RunRecord, record: RunRecord) -> RunRecord | None:
    """Return the new record in place of a refused one; None if another process has done so."""
    return replace(record, version=refused.version) if refused.is_refused else None


def _refuse(world: World, run: str, reason: str) -> None:
    """Record that this place is not watched, and report it once. It has no rules, and is on no list."""
    now = world.clock.now()
    record = RunRecord(
        run,
        first_seen=now,
        state=RunState.FINISHED,
        verdict=RunVerdict.INCOMPLETE.value,
    ).with_trouble(REFUSED, reason)
    record = with_news(record, "refused", now)
    if world.index.begin_run(record):
        world.index.let_expire(record)
        start_evaluation(world, run, 0, attempt="refused")


def _overlap(world: World, run: str) -> str:
    """Return why the run overlaps with one that is being watched, or an empty text."""
    below = world.index.run_below(run)
    if below is not None:
        return (
            f"s3://{run} contains the run s3://{below}, so it is not a run itself: save this training to a "
            "folder of its own."
        )
    folders = run.split("/")
    for depth in range(2, len(folders)):
        above = world.index.run("/".join(folders[:depth]))
        if above is not None and not above.has_ended:
            return (
                f"s3://{run} is inside of the run {above.location}, which has not ended: save this training "
                "beside it."
            )
    return ""
