"""`python -m tests.sinks.pictures`: a run as MLflow, trackio and W&B show it, in docs/images."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image

from smdebug.export.sending import send_run, tool_sink
from tests.reports.browser import Tab
from tests.sinks.collector import collector
from tests.sinks.servers import answers, free_port, tracking_server
from tests.ui.pictures import write_runs
from tools.pictures import IMAGES, drawn, shown, terminal

RUN = "runs/lr-3e-3"
_SETTLED = 3.0  # seconds: neither page says when its charts are drawn


def main(argv: Sequence[str] | None = None) -> int:
    """Send a failing run to each tool, and write the pictures."""
    parser = argparse.ArgumentParser(prog="python -m tests.sinks.pictures", description=__doc__)
    parser.add_argument("--to", type=Path, default=IMAGES)
    images = parser.parse_args(argv).to.resolve()
    with tempfile.TemporaryDirectory(prefix="smdebug-sinks-") as name, contextlib.chdir(name):
        folder = Path(name).resolve()
        write_runs(folder / "runs")
        of_mlflow(folder, images / "mlflow.png")
        of_trackio(folder, images / "trackio.png")
        os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
        picture = terminal([f"smdebug export wandb {RUN} --to my-project"], folder)
        (images / "wandb.svg").write_text(picture, encoding="utf-8")
        (images / "opentelemetry.svg").write_text(of_collector(), encoding="utf-8")
    return 0


def of_mlflow(folder: Path, to: Path) -> None:
    """Write a picture of the run in MLflow's own server."""
    from mlflow import MlflowClient

    with tracking_server(folder) as address:
        sink = tool_sink("mlflow", address)
        send_run(RUN, sink)
        run_id = str(getattr(sink, "run_id", ""))
        client = MlflowClient(address)
        for tag in ("smdebug.path", "mlflow.note.content"):  # not the folder of this machine
            value = client.get_run(run_id).data.tags[tag].replace(f"{folder}/", "")
            client.set_tag(run_id, tag, value)
        page = f"{address}/#/experiments/0/runs/{run_id}"
        with Tab(page, width=1280, height=760, dark=False, ready=_text("smdebug.path")) as tab:
            time.sleep(_SETTLED)
            tab.value("document.querySelector('[aria-label=Close]')?.click()")  # of the assistant
            time.sleep(1)
            _write(tab, to)


def of_trackio(folder: Path, to: Path) -> None:
    """Write a picture of the alerts in trackio's own page."""
    os.environ |= {"TRACKIO_DIR": str(folder / "trackio")}
    _exported("trackio", "--to", "my-project")
    with (
        _trackio() as address,
        Tab(
            f"{address}/?project=my-project", width=1280, height=760, dark=False, ready=_text("training")
        ) as tab,
    ):
        buttons = "[...document.querySelectorAll('button')]"
        tab.value(f"{buttons}.find(each => each.innerText === 'Alerts & Reports').click()")
        time.sleep(_SETTLED)
        _write(tab, to)


@contextlib.contextmanager
def _trackio() -> Iterator[str]:
    port = free_port()
    command = [str(Path(sys.executable).with_name("trackio")), "show", "--project", "my-project"]
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "BROWSER": "true"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            for _ in range(600):
                if answers(address):
                    break
                time.sleep(0.1)
            yield address
        finally:
            process.terminate()


def of_collector() -> str:
    """Return a picture of the event of the problem, as a collector got it."""
    with collector() as found:
        said = _exported("otlp", "--to", found.address).replace(found.address, "http://localhost:4318")
        (body, *_) = found.bodies("/v1/logs")
    event = json.loads(body)["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    received = {
        "eventName": event["eventName"],
        "severityText": event["severityText"],
        "body": event["body"]["stringValue"],
        **{each["key"]: next(iter(each["value"].values())) for each in event["attributes"]},
    }
    command = f"smdebug export otlp {RUN} --to http://localhost:4318"
    lines = ["", f"\x1b[PROMPT]$ {command}\x1b[0m", *shown([said.strip()]), "", "an event at the collector:"]
    return drawn([*lines, *shown(json.dumps(received, indent=1).splitlines())], command)


def _exported(tool: str, *words: str) -> str:
    command = [sys.executable, "-m", "smdebug.cli", "export", tool, RUN, *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def _text(text: str) -> str:
    return f"document.body?.innerText.includes({json.dumps(text)})"


def _write(tab: Tab, to: Path) -> None:
    Image.open(BytesIO(tab.picture())).convert("RGB").quantize(120).save(to, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
