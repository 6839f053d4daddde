"""Runs put before the local debugger, and what it says of them: what a test of a rule needs."""

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
_GRACE = 61.0  # seconds, a little more than the application gives a run that has ended
_AGAIN = 5.0


class LocalDebugger:
    """The debugger of a local stack, for runs below a prefix of their own.

    path = debugger.path("mnist")               # s3://…, for a hook or a training in another process
    debugger.put(folder, "mnist")               # or a run that lies in a folder
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
        """Where in the bucket a run of that name is."""
        return f"{self._prefix}{name}"

    def path(self, name: str) -> str:
        """The s3:// path of a run of that name."""
        return f"s3://{self.bucket}/{self.key(name)}"

    def storage(self, name: str) -> Storage:
        """The run's place, to write files of one's own."""
        from smdebug.storage.s3 import S3Storage

        return S3Storage(self.bucket, self.key(name), self.aws.client("s3"))

    def put(
        self,
        folder: str | Path,
        name: str,
        *,
        rules: Sequence[Any] | None = None,
    ) -> WatchedRun:
        """Upload a run that was saved to a folder, in the order in which a training would have written it."""
        if rules is not None:
            self.attach(name, rules)
        place, root = self.storage(name), Path(folder)
        files = [file for file in root.rglob("*") if file.is_file()]
        for file in sorted(files, key=lambda one: _as_written(one.relative_to(root))):
            place.write(file.relative_to(root).as_posix(), file.read_bytes())
        return self.run(name)

    def attach(self, name: str, rules: Sequence[Any]) -> None:
        """Say which rules are to watch a run: names, or entries as rules.json has them."""
        import json

        from smdebug.service.rules_file import RULES_FILE, VERSION

        entries = [{"name": one, "rule": one} if isinstance(one, str) else one for one in rules]
        told = {"version": VERSION, "rules": entries}
        self.storage(name).write(RULES_FILE, json.dumps(told).encode())

    def run(self, name: str, *, seconds: float = 60.0) -> WatchedRun:
        """The run as the debugger knows it, once it does."""
        from smdebug.exceptions import RunUnknown

        def known() -> Any:
            try:
                return self._debugger.run(self.path(name))
            except RunUnknown:
                return None

        return self.aws.wait_until(known, what=f"the run {name} to be known", seconds=seconds)  # type: ignore[no-any-return]

    def wait(self, name: str, *, through: int, seconds: float = 120.0) -> WatchedRun:
        """Wait until every rule of the run has looked at the steps up to that one, and has said so."""
        run = self.run(name)

        def has_looked() -> bool:
            rules = [one for one in run.statuses() if one.attached]
            return bool(rules) and all(
                one.status in _FINAL
                or (one.evaluated_through is not None and one.evaluated_through >= through)
                for one in rules
            )

        self.aws.wait_until(
            has_looked, what=f"the rules of {name} to have seen step {through}", seconds=seconds
        )
        self.aws.settle(run.run, seconds=seconds)
        return run

    def finish(self, name: str, *, seconds: float = 120.0) -> WatchedRun:
        """Wait for the end of a run that has written its end marker; its grace period passes at once."""
        run = self.end(name, seconds=seconds)
        self.aws.wait_until(
            lambda: str(run.look().state) == "Finished",
            what=f"the last words on {name}",
            seconds=seconds,
        )
        self.aws.settle(run.run, seconds=seconds)
        return run

    def end(self, name: str, *, seconds: float = 120.0) -> WatchedRun:
        """The same, without waiting for what its rules come to in the end."""
        run = self.run(name)
        moved = -_AGAIN

        def is_over() -> bool:
            nonlocal moved
            state = str(run.look().state)
            # The message that ends the grace period may be left only after the clock was moved.
            if state == "Ending" and time.monotonic() - moved >= _AGAIN:
                self.aws.forward(_GRACE)
                moved = time.monotonic()
            return state in ("Ended", "Finished")

        self.aws.wait_until(is_over, what=f"the end of {name}", seconds=seconds)
        self.aws.settle(run.run, seconds=seconds)
        return run

    def findings(self, name: str) -> Any:
        """What the rules found in the run, in the order of steps."""
        return self.run(name).findings()

    def events(self, name: str, detail_type: str | None = None) -> list[Mapping[str, Any]]:
        """The events about the run that have come over the bus of findings.

        After `wait`, `end` or `finish` those of all that had been found are among them.
        """
        found = self.aws.events(detail_type)
        run = f"{self.bucket}/{self.key(name)}"
        return [one for one in found if one.get("detail", {}).get("run") == run]


def _as_written(file: Path) -> tuple[int, str, int, str]:
    """Collections, then each step with its event files before its index files, then the end."""
    parts = file.parts
    if parts[0] == "events" and len(parts) > 2:
        return 1, parts[1], 0, file.name
    if parts[0] == "index" and len(parts) > 2:
        return 1, file.name[:12], 1, file.name
    return (2 if file.name == "training_job_end.ts" else 0), file.as_posix(), 0, ""
