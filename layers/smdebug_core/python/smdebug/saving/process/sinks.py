"""The sinks of a run, from the training's side: which run of a tool the script has open, and who logs to it.

The process beside the training logs to the tools, so that no tool can delay the training. W&B alone knows
the run of a script only within the script: its records come back through a pipe, to a thread here.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Sequence
from typing import Any, BinaryIO

from smdebug.exceptions import SMDebugValueError
from smdebug.logger import get_logger
from smdebug.sinks.pipe import deliver_from
from smdebug.sinks.sink import RunSink, SinkChoice, choices_of
from smdebug.sinks.targets import sink_for

LAST_SECONDS = 10.0


def checked_sinks(sinks: Any) -> tuple[SinkChoice, ...]:
    """Return the sinks with these names; raise if there is no such sink or its library is not installed."""
    choices = choices_of(sinks)
    for choice in choices:
        if choice.missing_library:
            raise SMDebugValueError(f"sinks: {choice.missing_library}")
    return choices


class ScriptRuns:
    """The runs that the script has open in the tools of its sinks."""

    def __init__(self, choices: Sequence[SinkChoice], place: str):
        self._place = place
        self._relayed: RunSink | None = None
        self._again = ""
        self._thread: threading.Thread | None = None
        self.settings = [self._setting(choice) for choice in choices]
        """The sinks, as the process beside the training is told of them."""

    @property
    def needs_pipe(self) -> bool:
        """Whether records come back to this process."""
        return self._relayed is not None

    def deliver_from(self, stream: BinaryIO) -> None:
        """Deliver what comes back, on a thread."""
        if self._relayed is None:
            return
        self._thread = threading.Thread(
            target=deliver_from,
            args=(stream, self._relayed, get_logger().warning, self._again, LAST_SECONDS),
            name="smdebug-script-run",
            daemon=True,
        )
        self._thread.start()

    def finish(self, seconds: float = LAST_SECONDS) -> None:
        """Wait until what came back is delivered, for at most so long."""
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                get_logger().warning(
                    "W&B: what is found after the training does not arrive. Send it again: %s", self._again
                )

    def _setting(self, choice: SinkChoice) -> dict[str, str]:
        setting = {"name": choice.name, "target": choice.target}
        try:
            if choice.name == "mlflow":
                setting |= _mlflow_run()
            elif choice.name == "trackio" and not choice.target and (project := _trackio_project()):
                setting["target"] = project
            elif choice.name == "wandb" and (run := _wandb_run()) is not None:
                self._relayed, self._again = sink_for(choice, run=run), choice.export_command(self._place)
                setting["relayed"] = "yes"
        except Exception as error:  # noqa: BLE001 - a tool may be in any state; it gets a run of its own
            get_logger().debug("The script's run of %s is not known: %r", choice.kind.tool, error)
        return setting


def _mlflow_run() -> dict[str, str]:
    mlflow = sys.modules.get("mlflow")
    if mlflow is None:
        return {}
    if (run := mlflow.active_run()) is not None:
        run_id, target = run.info.run_id, mlflow.get_tracking_uri()
    elif (logger := _lightning_logger("MLFlowLogger")) is not None:  # its run is not the active one
        run_id, target = logger.run_id, logger._tracking_uri
    else:
        return {}
    get_logger().info(
        "MLflow: logging to the script's run %s; losses and metrics are left to the script", run_id
    )
    return {"run_id": str(run_id), "target": str(target)}


def _lightning_logger(kind: str) -> Any:
    """Return the logger of this kind that a trainer of Lightning which runs now logs to; None without one."""
    packages = map(sys.modules.get, ("lightning.pytorch", "pytorch_lightning"))
    trainers = tuple(package.Trainer for package in packages if package is not None)
    for known in gc.get_objects() if trainers else ():
        if issubclass(type(known), trainers) and known.state.status == "running":
            for logger in known.loggers:
                if kind in {each.__name__ for each in type(logger).__mro__}:
                    return logger
    return None


def _trackio_project() -> str:
    """Return the project of the script's run: its own run in trackio is left alone, and ours is beside it."""
    variables = sys.modules.get("trackio.context_vars")
    return "" if variables is None else str(variables.current_project.get() or "")


def _wandb_run() -> Any:
    wandb = sys.modules.get("wandb")
    run = None if wandb is None else wandb.run
    if run is not None:
        get_logger().info(
            "W&B: logging to the script's run %s; losses and metrics are left to the script", run.id
        )
    return run
