"""Query a deployed debugger about runs, from a notebook or the command line.

debugger = smdebug.service.connect()
debugger.runs()
run = debugger.run("s3://my-bucket/resnet")
run.statuses()
run.findings(rule="VanishingGradient")
run.wait(on_news=print)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import RunUnknown
from smdebug.plain_text import nearest_of
from smdebug.service.log_lines import LogReader
from smdebug.service.run_status import RunSnapshot, RunSummary
from smdebug.service.step_index import items
from smdebug.service.step_index.formats import ReadableItems
from smdebug.service.step_index.item_reader import ItemReader
from smdebug.service.tables import Rows
from smdebug.service.waiting import Clock
from smdebug.service.watched_run import WatchedRun, read_run
from smdebug.storage.base import S3_SCHEME

if TYPE_CHECKING:
    from smdebug.storage import Storage

DEFAULT_STACK = "smdebug"
_THREADS = 8


def connect(
    stack: str | None = None,
    *,
    table: str | None = None,
    bucket: str | None = None,
    log_groups: Sequence[str] = (),
    client: Callable[[str], Any] | None = None,
) -> Debugger:
    """Return the debugger of a stack, or over a table.

    Without either it is the one that `SMDEBUG_TABLE` and `SMDEBUG_BUCKET` name (a local stack prints them),
    else the stack `SMDEBUG_STACK`, else "smdebug". `client` makes the clients, such as
    `boto3.Session(profile_name="research").client`.
    """
    from smdebug.service.aws import (
        Deployment,
        Logs,
        Table,
        default_clients,
        find_deployment,
        run_storage,
    )

    clients = _cached(client or default_clients())
    environ = os.environ
    if stack is None and table is None and environ.get("SMDEBUG_TABLE"):
        table, bucket = environ["SMDEBUG_TABLE"], bucket or environ.get("SMDEBUG_BUCKET")
        named_groups = environ.get("SMDEBUG_LOG_GROUPS", "").split(",")
        log_groups = log_groups or tuple(filter(None, named_groups))
    if table is not None:
        found = Deployment(table, bucket or "", log_groups=tuple(log_groups))
    else:
        found = find_deployment(stack or environ.get("SMDEBUG_STACK") or DEFAULT_STACK, clients)
    groups = tuple(log_groups) or found.log_groups
    return Debugger(
        Table(found.table, clients),
        lambda run: run_storage(run, clients),
        logs=Logs(groups, clients) if groups else None,
        bucket=bucket or found.bucket,
        name=str(found),
        outputs=found.outputs or {},
    )


class Debugger:
    """A deployed debugger: the runs that it has seen."""

    def __init__(
        self,
        index: ItemReader,
        open_run: Callable[[str], Storage],
        *,
        logs: LogReader | None = None,
        bucket: str = "",
        name: str = "",
        outputs: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ):
        self.bucket = bucket
        self.outputs = dict(outputs or {})
        self._name = name
        self._index = ReadableItems(index)
        self._open_run = open_run
        self._logs = logs
        self._clock = clock or Clock()

    def __repr__(self) -> str:
        runs = f" of the runs in s3://{self.bucket}" if self.bucket else ""
        return f"<the debugger{runs}, {self._name or 'in memory'}>"

    def runs(self, *, watched: bool = False) -> Rows[RunSummary]:
        """Return the runs, the newest first; with `watched` only those that have not finished."""
        runs = [run.summary for run in self.snapshots(self.run_names(watched=watched))]
        runs.sort(key=lambda run: (run.first_seen is not None, run.first_seen), reverse=True)
        return Rows(runs, RunSummary.columns, "No runs yet.")

    def snapshots(self, names: Sequence[str]) -> list[RunSnapshot]:
        """Return those runs as they are now, with one query each. Unknown ones are left out."""
        with ThreadPoolExecutor(_THREADS) as pool:
            found = list(pool.map(partial(read_run, self._index), names))
        return [run for run in found if run is not None]

    def run(self, name: str) -> WatchedRun:
        """Return the run at `s3://bucket/prefix`, or of the SageMaker training job of that name.

        The bucket may be omitted if it is the stack's own.
        """
        wanted = name.strip().removeprefix(S3_SCHEME).rstrip("/")
        own = f"{self.bucket}/{wanted}" if wanted else self.bucket
        for candidate in dict.fromkeys([wanted, own] if self.bucket else [wanted]):
            if candidate and self._index.get(items.run_pk(candidate), items.RUN) is not None:
                return self.watched(candidate)
        if wanted and "/" not in wanted:
            for item in self._index.query(items.job_pk(wanted)):
                return self.watched(item["sk"])
        raise RunUnknown(name, self._nearest(wanted))

    def _nearest(self, wanted: str) -> str | None:
        """Compare without the stack's own bucket, which may be omitted and is most of a name."""
        names = self.run_names()
        own = f"{self.bucket}/"
        by_prefix = {name.removeprefix(own): name for name in names}
        near = nearest_of(wanted.removeprefix(own), by_prefix)
        return by_prefix[near] if near is not None else nearest_of(wanted, names)

    def watched(self, run: str) -> WatchedRun:
        """Return the run `bucket/prefix` without reading the table."""
        return WatchedRun(run, self._index, self._open_run, self._logs, self._clock)

    def run_names(self, *, watched: bool = False) -> list[str]:
        """Return the runs as `bucket/prefix`; with `watched` only those that have not finished."""
        lists = (items.RUNS,) if watched else (items.RUNS, items.PAST_RUNS)
        found = (item["sk"] for pk in lists for item in self._index.query(pk))
        return list(dict.fromkeys(found))


def _cached(clients: Callable[[str], Any]) -> Callable[[str], Any]:
    """Keep one client of each service."""
    from threading import Lock

    made: dict[str, Any] = {}
    lock = Lock()

    def client(service: str) -> Any:
        with lock:
            if service not in made:
                made[service] = clients(service)
            return made[service]

    return client


__all__ = ["Clock", "Debugger", "ItemReader", "LogReader", "WatchedRun", "connect", "read_run"]
