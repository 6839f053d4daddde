"""Runs given to the local debugger, and its results: for tests of rules."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local_aws.aws import LocalAws

if TYPE_CHECKING:
    from smdebug.service.client import WatchedRun
    from smdebug.storage import Storage

_FINAL = ("Error", "Stopped")
_GRACE = 1801.0  # seconds; slightly more than the application waits for files that are missing at the end
_CHECK = 301.0  # seconds; slightly more than until the application's next check
_RETRY = 5.0


class LocalDebugger:
    """The debugger of a local stack, for the runs below a prefix.

    path = debugger.path("mnist")               # s3://…, for a hook or a training in another process
    debugger.put(folder, "mnist")               # or a run in a folder
    debugger.wait("mnist", through=40)
    debugger.findings("mnist")
    """

    def __init__(self, aws: LocalAws, prefix: str = ""):
        self.aws = aws
        self._prefix = f"{prefix.strip('/')}/" if prefix else ""
        self._debugger = aws.connect()

    @property
    def bucket(self) -> str:
        return self.aws.bucket

    def key(self, name: str) -> str:
        """The prefix of a run in the bucket."""
        return f"{self._prefix}{name}"

    def path(self, name: str) -> str:
        """The s3:// path of a run."""
        return f"s3://{self.bucket}/{self.key(name)}"

    def storage(self, name: str) -> Storage:
        """The storage of a run, for writing files directly."""
        from smdebug.storage.s3 import S3Storage

        return S3Storage(self.bucket, self.key(name), self.aws.client("s3"))

    def put(
        self,
        folder: str | Path,
        name: str,
        *,
        rules: Sequence[Any] | None = None,
    ) -> WatchedRun:
        """Upload a run from a folder, in the order in which a training writes it."""
        if rules is not None:
            self.attach(name, rules)
        place, root = self.storage(name), Path(folder)
        files = [file for file in root.rglob("*") if file.is_file()]
        for file in sorted(files, key=lambda file: _written_order(file.relative_to(root))):
            place.write(file.relative_to(root).as_posix(), file.read_bytes())
        return self.run(name)

    def attach(self, name: str, rules: Sequence[Any]) -> None:
        """Choose the rules of a run: names, or entries as in rules.json."""
        import json

        from smdebug.service.rules_file import RULES_FILE, VERSION

        entries = [{"name": rule, "rule": rule} if isinstance(rule, str) else rule for rule in rules]
        payload = {"version": VERSION, "rules": entries}
        self.storage(name).write(RULES_FILE, json.dumps(payload).encode())

    def run(self, name: str, *, seconds: float = 60.0) -> WatchedRun:
        """Wait until the debugger knows the run, and return it."""
        from smdebug.exceptions import RunUnknown

        def known() -> Any:
            try:
                return self._debugger.run(self.path(name))
            except RunUnknown:
                return None

        return self.aws.wait_until(known, what=f"the run {name} to be known", seconds=seconds)  # type: ignore[no-any-return]

    def wait(self, name: str, *, through: int, seconds: float = 300.0) -> WatchedRun:
        """Wait until every rule has evaluated all steps up to `through` and published the results."""
        run = self.run(name)

        def is_evaluated() -> bool:
            rules = [rule for rule in run.statuses() if rule.attached]
            return bool(rules) and all(
                rule.status in _FINAL
                or (rule.evaluated_through is not None and rule.evaluated_through >= through)
                for rule in rules
            )

        self.aws.wait_until(
            is_evaluated, what=f"the rules of {name} to evaluate step {through}", seconds=seconds
        )
        self.aws.settle(run.run, seconds=seconds)
        return run

    def finish(self, name: str, *, seconds: float = 300.0) -> WatchedRun:
        """Wait until a run with an end marker is finished; its grace period is skipped."""
        run = self.end(name, seconds=seconds)
        moved = time.monotonic()

        def is_finished() -> bool:
            nonlocal moved
            if str(run.look().state) == "Finished":
                return True
            # An evaluation that met another one is asked for again after minutes.
            if time.monotonic() - moved >= _RETRY:
                self._skip(run.run, _CHECK)
                moved = time.monotonic()
            return False

        self.aws.wait_until(is_finished, what=f"{name} to be finished", seconds=seconds)
        self.aws.settle(run.run, seconds=seconds)
        return run

    def end(self, name: str, *, seconds: float = 300.0) -> WatchedRun:
        """Wait until a run with an end marker has ended; the last status of its rules may follow."""
        run = self.run(name)
        moved = time.monotonic()

        def is_over() -> bool:
            nonlocal moved
            state = str(run.look().state)
            # The message that ends the grace period may be sent only after the clock was moved.
            if state == "Ending" and time.monotonic() - moved >= _RETRY:
                self._skip(run.run, _GRACE)
                moved = time.monotonic()
            return state in ("Ended", "Finished")

        self.aws.wait_until(is_over, what=f"the end of {name}", seconds=seconds)
        self.aws.settle(run.run, seconds=seconds)
        return run

    def _skip(self, run: str, seconds: float) -> None:
        """Move the clock forward while none of the run's evaluations holds a lease, which would run out."""
        self.aws.settle(run)
        self.aws.forward(seconds)

    def findings(self, name: str) -> Any:
        """The findings of the run, in the order of steps."""
        return self.run(name).findings()

    def events(self, name: str, detail_type: str | None = None) -> list[Mapping[str, Any]]:
        """The events about the run on the bus of findings.

        After `wait`, `end` or `finish` they include the events of all findings up to then.
        """
        found = self.aws.events(detail_type)
        run = f"{self.bucket}/{self.key(name)}"
        return [event for event in found if event.get("detail", {}).get("run") == run]


def _written_order(file: Path) -> tuple[int, str, int, str]:
    """Sort collections first, then each step with event files before index files, then the end marker."""
    parts = file.parts
    if parts[0] == "events" and len(parts) > 2:
        return 1, parts[1], 0, file.name
    if parts[0] == "index" and len(parts) > 2:
        return 1, file.name[:12], 1, file.name
    return (2 if file.name == "training_job_end.ts" else 0), file.as_posix(), 0, ""
