"""The report of a finished run, from its findings and its tensors, in bounded time and memory."""

from __future__ import annotations

from collections.abc import Callable

from functions.telemetry import log
from smdebug.backtesting.bundles.bundle_file import LARGEST_BUNDLE
from smdebug.backtesting.bundles.bundled_run import bundled, keep_bundle
from smdebug.exceptions import RunUnknown
from smdebug.reports import gather, of_service, page_of
from smdebug.reports.gathering import verdicts_alone
from smdebug.runs.opening import IMPATIENT
from smdebug.runs.verdicts import latency_of
from smdebug.service.client import ItemReader, WatchedRun
from smdebug.storage import Storage, open_storage
from smdebug.trials import Trial, create_trial

KEY = "report/report.html"
MOST_FINDINGS = 2000  # of a run, the last ones
_OURS = 300 << 20  # bytes in use before any tensor is read
_COPIES = 4  # of a value: as stored, decoded, and in statistics
_FEWEST_READERS = 4  # with fewer, a long curve alone would take longer than there is time


class NoTime(Exception):
    """The time of the function ends before the page is complete."""


def write_report(
    index: ItemReader,
    storage: Storage,
    run: str,
    *,
    has_time: Callable[[], bool],
    memory: int,
    bundles: str = "",
) -> str | None:
    """Write the page beside the run; return its key, or None if there is nothing to report.

    The run's record may have expired, or the place was refused as a run: then nothing of it is read.

    The verdicts are always on it. The charts are left out, with a note, if reading the tensors would take
    longer than there is time, or more bytes than `memory`.

    With the place of `bundles`, what is read goes into the run's bundle, so that no backtest reads it again.
    """
    watched = WatchedRun(run, index, lambda _: storage)
    try:
        run_now = watched.look()
    except RunUnknown:
        return None
    if run_now.record.is_refused:
        return None
    statuses = run_now.statuses
    findings = watched.findings(limit=MOST_FINDINGS)
    reading = bundled(storage, open_storage(bundles), keeps=True) if bundles else storage
    trial = create_trial(reading, name=run.rpartition("/")[2], wait_limits=IMPATIENT)
    verdicts = of_service(statuses, findings)

    ours = _OURS + (LARGEST_BUNDLE if bundles else 0)
    at_a_time = (memory - ours) // (_COPIES * max(1, _largest(trial)))

    def go_on(_: int) -> None:
        if not has_time():
            raise NoTime

    try:
        if at_a_time < _FEWEST_READERS:
            found = verdicts_alone(trial, verdicts, _note(run, "its tensors are too large"), deployed=True)
        else:
            trial.most_readers = at_a_time
            latency = latency_of(findings)
            found = gather(trial, verdicts, latency=latency, deployed=True, progress=go_on)
    except NoTime:
        why = "there was no time to read its tensors"
        found = verdicts_alone(trial, verdicts, _note(run, why), deployed=True)
    storage.write(KEY, page_of(found).encode())
    if problem := keep_bundle(reading):
        log("The bundle of the run was replaced, or could not be written", run=run, problem=problem)
    return KEY


def _largest(trial: Trial) -> int:
    """Return the size in bytes of the largest tensor in a file."""
    lengths = (
        max(written.spans.lengths, default=0)
        for workers in trial.index.at.values()
        for written in workers.values()
    )
    return max(lengths, default=0)


def _note(run: str, because: str) -> str:
    return (
        f"Nothing of this run is drawn: {because}. "
        f"`smdebug report s3://{run} --deployed` draws it, on your own machine."
    )
