"""A run in trackio: metrics, an alert for each problem, the diagnosis, the report as an artifact."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from smdebug.exceptions import SinkRefused
from smdebug.extras import install_command
from smdebug.secrets.texts import redacted
from smdebug.sinks.flat import flat
from smdebug.sinks.records import (
    DiagnosisRecord,
    IssueRecord,
    NumbersRecord,
    Record,
    ReportRecord,
    RunRecord,
)
from smdebug.sinks.sent_alerts import SentAlerts
from smdebug.sinks.targets.trackio_server import check_server

OLDEST = (0, 43)
_PROJECT = "smdebug"


class TrackioSink:
    """Logs to a run of its own: trackio lets only the process that has begun a run go on with it.

    The run is on this machine, or where the variables of trackio say. A server of one's own is asked first
    whether it takes the run; one that goes away later is trackio's own concern, which keeps the rows here.
    """

    def __init__(self, project: str = ""):
        self._project = project or _PROJECT
        self._run: Any = None
        self._trackio: Any = None
        self._alerts: SentAlerts | None = None
        self._last_step = 0  # of training, as the numbers count them

    @property
    def place(self) -> str:
        """The project."""
        return f"trackio project {self._project}"

    @property
    def run_id(self) -> str | None:
        """The run in trackio, once it has begun."""
        return None if self._run is None else str(self._run.id)

    @property
    def notes(self) -> list[str]:
        """That alerts may come again."""
        return [self._alerts.problem] if self._alerts and self._alerts.problem else []

    def begin(self, run: RunRecord) -> None:
        """Begin a run of the same name; without measuring the machine, which the hook does."""
        trackio = self._trackio = _library()
        if not os.environ.get("TRACKIO_SPACE_ID") and (address := os.environ.get("TRACKIO_SERVER_URL")):
            check_server(address)
        about: dict[str, Any] = {"path": run.path, "version": run.version, "tags": list(run.tags)}
        self._run = self._asked(
            lambda: trackio.init(
                project=self._project,
                name=run.name,
                config={"smdebug": about},
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        )
        self._alerts = SentAlerts(run.path, self.place)

    def send(self, records: Sequence[Record]) -> None:
        """Hand the records to trackio's own thread, which writes or sends them."""
        for record in records:
            self._asked(lambda record=record: self._send(record))

    def end(self, *, is_complete: bool = True) -> None:
        """End the run, when all of it has been written."""
        if self._run is not None:
            self._asked(self._run.finish)

    def _send(self, record: Record) -> None:
        run, trackio = self._run, self._trackio
        if isinstance(record, NumbersRecord):
            row = dict(flat(record, joined=False))
            if row:
                run.log(row, step=record.step)
                self._last_step = max(self._last_step, record.step)
        elif isinstance(record, IssueRecord):
            self._alert(record)
        elif isinstance(record, DiagnosisRecord):
            problems = "".join(f"\n- **{issue.title}**: {issue.what}" for issue in record.issues)
            text = redacted(f"{record.summary}\n{problems}")
            run.log(
                {"diagnosis": trackio.Markdown(text), "problems": len(record.issues)}, step=self._last_step
            )
        elif isinstance(record, ReportRecord):
            with tempfile.TemporaryDirectory() as folder:
                page = Path(folder) / "report.html"
                page.write_text(record.html, encoding="utf-8")
                run.log_artifact(page, name="smdebug-report", type="report")

    def _alert(self, record: IssueRecord) -> None:
        is_new = record.state == "opened"
        if is_new and self._alerts and self._alerts.has(record):
            return
        levels = self._trackio.AlertLevel
        advice = f"\nTry: {record.first_advice}" if record.first_advice else ""
        self._run.alert(
            redacted(record.title),
            redacted(f"{record.issue.what}{advice}"),
            levels.WARN if is_new else levels.INFO,
            step=record.step,
        )
        if is_new and self._alerts:
            self._alerts.add(record)

    def _asked(self, ask: Any) -> Any:
        """Ask trackio, without the lines that it prints; its errors become one sentence."""
        try:
            with redirect_stdout(io.StringIO()):
                return ask()
        except Exception as error:
            if type(error).__name__ == "LocalTokenNotFoundError":
                problem = (
                    "the credentials of Hugging Face are missing: set HF_TOKEN, or unset TRACKIO_SPACE_ID"
                )
                raise SinkRefused(self.place, problem) from error
            reason = redacted(str(error).partition("\n")[0])[:300]
            raise SinkRefused(self.place, f"{type(error).__name__}: {reason}") from error


def _library() -> Any:
    try:
        import trackio
    except ImportError as error:
        raise SinkRefused("trackio", f"its library is not installed: {install_command('trackio')}") from error
    version = tuple(int(part) for part in re.findall(r"\d+", trackio.__version__)[:2])
    if version < OLDEST:
        raise SinkRefused(
            "trackio", f"its library is too old, {trackio.__version__}: pip install 'trackio>=0.43'"
        )
    return trackio
