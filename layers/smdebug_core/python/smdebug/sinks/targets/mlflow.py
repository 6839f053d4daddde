"""A run in MLflow: metrics in batches, problems and the diagnosis as tags, the report as an artifact."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from smdebug.exceptions import AlreadySent, SinkRefused, SinkUnavailable
from smdebug.extras import install_command
from smdebug.secrets.texts import redacted
from smdebug.sinks.flat import flat
from smdebug.sinks.names import Names
from smdebug.sinks.records import (
    DiagnosisRecord,
    FileRecord,
    IssueRecord,
    NumbersRecord,
    Record,
    ReportRecord,
    RunRecord,
)

T = TypeVar("T")

MOST_METRICS = 1000
"""How many metrics MLflow takes in one request."""
MOST_IN_TAG = 500
"""Characters: what every server keeps of a tag's value."""
OLDEST = (2, 10)
_FORBIDDEN = r"[^\w.\- /]|(?<=/)(?:\.{1,2}(?=/|$)|/)|/$"
_LONGEST_NAME = 250
_NOTE = "mlflow.note.content"
_EVENT = "smdebug.event"
_WORDS = {
    401: r"\b401\b|unauthori[sz]ed|not authori[sz]ed|authenticat|credential|token",
    403: r"\b403\b|forbidden|permission|access denied",
    404: r"\b404\b|not found|no route",
}
_PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "20", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
"""Unless the environment says otherwise: by default MLflow retries for minutes."""


class MlflowSink:
    """Logs to a run of its own, or joins the run of the script, `run_id`.

    In a run of the script, losses and metrics are left to the script, unless `with_values`. The run of its
    own is that of `event`, of which the experiment gets one whole run, however often it is sent.
    """

    def __init__(
        self,
        server: str = "",
        run_id: str | None = None,
        *,
        with_values: bool | None = None,
        event: str = "",
    ):
        self._server = server
        self._event = event
        self._run_id = run_id or (None if event else os.environ.get("MLFLOW_RUN_ID")) or None
        self._joined = self._run_id is not None
        self._with_values = not self._joined if with_values is None else with_values
        self._names = Names(_FORBIDDEN, _LONGEST_NAME)
        self._client: Any = None
        self._notes: list[str] = []
        self._issues: dict[str, int] = {}
        self._has_infinity = False
        self._about = ""

    @property
    def place(self) -> str:
        """The server, or what the environment says of it."""
        server = redacted(self._server or os.environ.get("MLFLOW_TRACKING_URI", ""))
        return f"MLflow at {server}" if server else "MLflow"

    @property
    def run_id(self) -> str | None:
        """The run in MLflow, once it has begun."""
        return self._run_id

    @property
    def notes(self) -> list[str]:
        """Names that MLflow does not allow, and numbers that it changes."""
        changed = self._names.in_words("MLflow")
        infinity = "MLflow's databases keep infinity as the largest number, 1.8e308"
        return [*self._notes, *([changed] if changed else []), *([infinity] if self._has_infinity else [])]

    def begin(self, run: RunRecord) -> None:
        """Join the run of the script, or begin one in the experiment that the environment names."""
        for name, value in _PATIENCE.items():
            os.environ.setdefault(name, value)
        client = self._client = self._connected()
        tags = {"smdebug.path": run.path, "smdebug.version": run.version}
        if run.tags:
            tags["smdebug.tags"] = ", ".join(run.tags)[:MOST_IN_TAG]
        if self._run_id is not None:
            self._set_tags(tags)
            return
        experiment = self._asked(lambda: self._experiment(client))
        if self._event:
            self._asked(lambda: self._delete_unfinished(client, experiment))
            tags[_EVENT] = self._event
        self._about = f"Watched by smdebug: {run.path}"
        source = {"mlflow.source.name": "smdebug", _NOTE: self._about}
        made = self._asked(lambda: client.create_run(experiment, run_name=run.name, tags={**tags, **source}))
        self._run_id = made.info.run_id

    def send(self, records: Sequence[Record]) -> None:
        """Log the numbers in batches, then what was found."""
        metrics = [metric for record in records for metric in self._metrics_of(record)]
        for start in range(0, len(metrics), MOST_METRICS):
            batch = metrics[start : start + MOST_METRICS]
            self._asked(lambda batch=batch: self._client.log_batch(self._run_id, metrics=batch))
        for record in records:
            if isinstance(record, IssueRecord):
                self._set_tags(self._tags_of(record))
            elif isinstance(record, DiagnosisRecord):
                tags = {"smdebug.diagnosis": record.summary, "smdebug.problems": str(len(record.issues))}
                if not self._joined:  # what the page of the run shows first
                    tags[_NOTE] = f"{record.summary}\n\n{self._about}"
                self._set_tags(tags)
                self._keep("diagnosis.json", json.dumps(record.to_dict(), indent=1, ensure_ascii=False))
            elif isinstance(record, ReportRecord):
                self._keep("report.html", record.html)
            elif isinstance(record, FileRecord):
                self._keep_file(record)

    def end(self, *, is_complete: bool = True) -> None:
        """End the run; one of the script stays open."""
        if not self._joined and self._run_id is not None:
            status = "FINISHED" if is_complete else "FAILED"
            self._asked(lambda: self._client.set_terminated(self._run_id, status))

    def _connected(self) -> Any:
        try:
            import mlflow
        except ImportError as error:
            raise SinkRefused(
                "MLflow", f"its library is not installed: {install_command('mlflow')}"
            ) from error
        version = tuple(int(part) for part in mlflow.__version__.split(".")[:2])
        if version < OLDEST:
            raise SinkRefused(
                "MLflow", f"its library is too old, {mlflow.__version__}: pip install 'mlflow>=2.10'"
            )
        return self._asked(lambda: mlflow.MlflowClient(tracking_uri=self._server or None))

    def _experiment(self, client: Any) -> str:
        number = os.environ.get("MLFLOW_EXPERIMENT_ID")
        if number:
            return number
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME")
        if not name:
            return "0"
        found = client.get_experiment_by_name(name)
        return str(client.create_experiment(name) if found is None else found.experiment_id)

    def _delete_unfinished(self, client: Any, experiment: str) -> None:
        """Delete what a program that was killed or has failed had sent; raise if the whole run is there."""
        for run in client.search_runs([experiment], f"tags.`{_EVENT}` = '{self._event}'"):
            if run.info.status == "FINISHED":
                raise AlreadySent(self.place, f"it has the run already, as {run.info.run_id}")
            client.delete_run(run.info.run_id)

    def _metrics_of(self, record: Record) -> Iterator[Any]:
        if not isinstance(record, NumbersRecord):
            return
        from mlflow.entities import Metric

        at = int(1000 * (time.time() if record.time is None else record.time))
        for name, value in flat(record, joined=self._joined, with_values=self._with_values):
            self._has_infinity = self._has_infinity or value in (float("inf"), float("-inf"))
            yield Metric(self._names.allowed(name), value, at, record.step)

    def _tags_of(self, record: IssueRecord) -> dict[str, str]:
        number = self._issues.setdefault(record.key, len(self._issues) + 1)
        advice = f". Try: {record.first_advice}" if record.first_advice else ""
        text = f"{record.title}: {record.issue.what.rstrip('.')}{advice}"
        return {f"smdebug.problem.{number}": text, "smdebug.problems": str(len(self._issues))}

    def _set_tags(self, tags: dict[str, str]) -> None:
        from mlflow.entities import RunTag

        entries = [RunTag(name, _shortened(redacted(value))) for name, value in tags.items()]
        self._asked(lambda: self._client.log_batch(self._run_id, tags=entries))

    def _keep(self, name: str, content: str) -> None:
        """Store an artifact. The store of artifacts is not that of metrics, and may fail alone."""
        try:
            self._client.log_text(self._run_id, content, f"smdebug/{name}")
        except Exception as error:  # noqa: BLE001 - a store of artifacts may fail in any way
            reason = redacted(str(error).partition("\n")[0])[:300]
            self._notes.append(f"MLflow did not store the artifact smdebug/{name}: {reason}")

    def _keep_file(self, record: FileRecord) -> None:
        folder, _, name = f"smdebug/{record.path}".rpartition("/")
        try:
            with tempfile.TemporaryDirectory(prefix="smdebug-") as place:
                file = Path(place) / name
                file.write_bytes(record.data)
                self._client.log_artifact(self._run_id, str(file), folder)
        except Exception as error:  # noqa: BLE001 - a store of artifacts may fail in any way
            reason = redacted(str(error).partition("\n")[0])[:300]
            note = f"MLflow did not store files that the run has logged: {reason}"
            self._notes.extend([] if note in self._notes else [note])

    def _asked(self, ask: Any) -> Any:
        from mlflow.exceptions import MlflowException

        try:
            return ask()
        except MlflowException as error:
            raise self._error_of(error) from error
        except OSError as error:
            raise SinkUnavailable(self.place, str(error)) from error

    def _error_of(self, error: Any) -> SinkRefused | SinkUnavailable:
        status = error.get_http_status_code()
        reason = redacted(str(error).partition("\n")[0])[:300]
        answer = getattr(error, "json", None)
        is_of_gateway = isinstance(answer, dict) and "error_code" not in answer
        if is_of_gateway:  # MLflow's client takes it for an error of the server
            status = _status_in(answer)
        if status in (401, 403):
            return SinkRefused(
                self.place,
                f"it refuses the credentials ({status}). Set MLFLOW_TRACKING_TOKEN, or "
                "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
            )
        if error.error_code == "ENDPOINT_NOT_FOUND" or (is_of_gateway and status == 404):
            return SinkRefused(self.place, "it is no tracking server of MLflow, or one that is too old")
        if status < 500 and status != 429:
            return SinkRefused(self.place, reason)
        if "Max retries exceeded" in reason or "Connection" in reason:
            slow = "timed out" in str(error)
            return SinkUnavailable(self.place, "it answers too slowly" if slow else "it cannot be reached")
        return SinkUnavailable(self.place, reason)


def _status_in(answer: Any) -> int:
    """Return the status that an answer in JSON speaks of. MLflow's client keeps its text alone."""
    text = json.dumps(answer)
    for status, words in _WORDS.items():
        if re.search(words, text, re.IGNORECASE):
            return status
    return 500


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_IN_TAG else f"{text[: MOST_IN_TAG - 1]}…"
