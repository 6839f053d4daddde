"""A run in W&B: metrics, an alert for each problem, the diagnosis in the summary, the report as a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from smdebug.diagnosis.wording import sentence
from smdebug.exceptions import SinkRefused, SinkUnavailable
from smdebug.extras import install_command
from smdebug.secrets.texts import redacted
from smdebug.sinks.flat import JOINED_PREFIX, flat
from smdebug.sinks.records import (
    DiagnosisRecord,
    FileRecord,
    IssueRecord,
    NumbersRecord,
    Record,
    ReportRecord,
    RunRecord,
)
from smdebug.sinks.sent_alerts import SentAlerts

OLDEST = (0, 19, 10)
LONGEST_TITLE = 63
_PROJECT = "smdebug"
_STEP = "training_step"
_SECONDS_TO_BEGIN = 30
_REFUSAL = r"\b(401|403)\b|permission|not logged in|unauthori[sz]ed|forbidden|<no message>"
"""An answer without a message is that of a gateway that refuses: a server that is down has a reason."""


class WandbSink:
    """Logs to a run of its own, or to the run that the script has open in this process, `run`.

    W&B numbers the rows of a run itself, and a row that the script logs for an earlier step is lost. So the
    rows of a script's run are never advanced: the numbers join the row that the script logs next, and of
    several that wait for one row the last counts. Its losses and metrics are left to the script. A run of
    its own of the same `event` has the same id: W&B writes the same rows over those that it has.
    """

    def __init__(self, project: str = "", run: Any = None, *, event: str = ""):
        self._project = project
        self._event = event
        self._run = run
        self._joined = run is not None
        self._prefix = JOINED_PREFIX if self._joined else ""
        self._notes: list[str] = []
        self._alerts: SentAlerts | None = None

    @property
    def notes(self) -> list[str]:
        """Where an offline run is, and that alerts may come again."""
        problem = self._alerts.problem if self._alerts else ""
        return [*self._notes, *([problem] if problem else [])]

    @property
    def place(self) -> str:
        """The page of the run, or where its files are."""
        run = self._run
        if run is None:
            return f"W&B project {self._project}" if self._project else "W&B"
        return f"W&B offline in {Path(run.dir).parent}" if run.offline else f"W&B at {run.url}"

    @property
    def run_id(self) -> str | None:
        """The run in W&B, once it has begun."""
        return None if self._run is None else str(self._run.id)

    def begin(self, run: RunRecord) -> None:
        """Begin a run, unless one was joined."""
        if not self._joined:
            self._run = self._begun(run)
        if getattr(self._run, "disabled", False):
            self._run = None
            raise SinkRefused("W&B", "it is switched off: unset WANDB_MODE, or set it to offline")
        self._alerts = SentAlerts(run.path, f"W&B {self._run.project}")
        self._run.define_metric(f"{self._prefix}{_STEP}", hidden=True)
        self._run.define_metric(f"{self._prefix}*", step_metric=f"{self._prefix}{_STEP}")
        self._run.config.update(
            {"smdebug": {"path": run.path, "version": run.version}}, allow_val_change=True
        )

    def send(self, records: Sequence[Record]) -> None:
        """Hand the records to W&B's own process, which sends them."""
        try:
            for record in records:
                self._send(record)
        except Exception as error:
            raise self._error_of(error) from error

    def end(self, *, is_complete: bool = True) -> None:
        """End the run, when all of it has arrived; one of the script stays open."""
        if self._joined or self._run is None:
            return
        folder, is_offline = Path(self._run.dir).parent, bool(self._run.offline)
        self._run.finish(exit_code=0 if is_complete else 1)
        if is_offline:
            self._notes.append(f"W&B was offline. To send the run: wandb sync {folder}")

    def _begun(self, run: RunRecord) -> Any:
        try:
            import wandb
        except ImportError as error:
            raise SinkRefused("W&B", f"its library is not installed: {install_command('wandb')}") from error
        version = tuple(int(part) for part in re.findall(r"\d+", wandb.__version__)[:3])
        if version < OLDEST:
            raise SinkRefused(
                "W&B", f"its library is too old, {wandb.__version__}: pip install 'wandb>=0.19.10'"
            )
        settings = wandb.Settings(
            silent=True, console="off", init_timeout=_SECONDS_TO_BEGIN, x_disable_stats=True
        )
        try:
            return wandb.init(
                project=self._project or wandb.Settings().project or _PROJECT,
                name=run.name,
                id=self._event or None,
                tags=list(run.tags) or None,
                reinit="create_new",
                settings=settings,
            )
        except Exception as error:
            raise self._error_of(error) from error

    def _send(self, record: Record) -> None:
        run = self._run
        if isinstance(record, NumbersRecord):
            row = dict(flat(record, joined=self._joined, with_values=not self._joined))
            if row:
                row[f"{self._prefix}{_STEP}"] = record.step
                run.log(row, commit=not self._joined)
        elif isinstance(record, IssueRecord):
            if record.state == "opened" and not (self._alerts and self._alerts.has(record)):
                run.alert(
                    title=_shortened(redacted(record.title)),
                    text=redacted(_text_of(record)),
                    level="WARN",
                    wait_duration=timedelta(milliseconds=1),
                )
                if self._alerts:
                    self._alerts.add(record)
            run.summary[f"{self._prefix}problem/{record.key}"] = redacted(record.title)
        elif isinstance(record, DiagnosisRecord):
            run.summary[f"{self._prefix}diagnosis"] = redacted(record.summary)
            run.summary[f"{self._prefix}problems"] = len(record.issues)
        elif isinstance(record, ReportRecord):
            page = Path(run.dir) / "smdebug-report.html"
            page.write_text(record.html, encoding="utf-8")
            run.save(str(page), base_path=run.dir, policy="now")
        elif isinstance(record, FileRecord):
            file = Path(run.dir) / "smdebug" / record.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(record.data)
            run.save(str(file), base_path=run.dir, policy="now")

    def _error_of(self, error: Exception) -> SinkRefused | SinkUnavailable:
        text = str(error)
        reason = redacted(text.partition("\n")[0])[:300]
        if "API key" in text or type(error).__name__ == "AuthenticationError":
            return SinkRefused(
                "W&B",
                "the credentials are missing or refused: set WANDB_API_KEY, or WANDB_MODE=offline to keep "
                f"the run here and send it later ({reason.rstrip('.')})",
            )
        if type(error).__name__ == "CommError":
            if re.search(_REFUSAL, text, re.IGNORECASE):
                return SinkRefused("W&B", f"it refuses the credentials: set WANDB_API_KEY ({reason})")
            return SinkUnavailable("W&B", f"it cannot be reached: {reason}")
        return SinkRefused("W&B", f"{type(error).__name__}: {reason}")


def _shortened(title: str) -> str:
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


def _text_of(record: IssueRecord) -> str:
    advice = f"\nTry: {record.first_advice}" if record.first_advice else ""
    return f"{sentence(record.issue.what)}{advice}"
