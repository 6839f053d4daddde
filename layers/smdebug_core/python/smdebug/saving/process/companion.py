"""A process beside the training that evaluates its rules: started with the run, and ended with it.

The training only starts it and closes a pipe: the end of the pipe tells the process that the training has
ended, however it ended. Settings go through the pipe: all users of a machine can read a command line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.extras import install_command
from smdebug.logger import get_logger
from smdebug.saving.process.sinks import ScriptRuns
from smdebug.sinks.sink import SinkChoice

HERE = "here"
LAST_WORDS_SECONDS = 20.0
"""How long the end of a run waits for the evaluation of its last steps."""


RuleFile = str | os.PathLike[str] | None


def refuse_unevaluable(
    evaluate: Any,
    alerts: Iterable[str],
    place: str,
    *,
    rule_file: RuleFile = None,
    sinks: Sequence[SinkChoice] = (),
) -> None:
    """Raise `SMDebugValueError` for options of an evaluation beside the training that cannot work."""
    if evaluate not in (None, False, True, HERE):
        raise SMDebugValueError(f'evaluate must be "{HERE}" or True, or None, not {evaluate!r}')
    if sinks and evaluate is False:
        raise SMDebugValueError(
            "sinks get what an evaluation beside the training detects: leave out evaluate=False, "
            "or send the run later with `smdebug export`"
        )
    evaluate = evaluate or bool(sinks)
    if alerts and not evaluate:
        raise SMDebugValueError(
            'alerts report what an evaluation beside the training detects: add evaluate="here"'
        )
    if rule_file is not None and not evaluate:
        raise SMDebugValueError(
            'rule_file has rules for an evaluation beside the training: add evaluate="here"'
        )
    if evaluate and place.startswith("memory:"):
        raise SMDebugValueError(
            f"{place} cannot be evaluated beside the training: another process reads it. "
            "Save to a folder or to S3"
        )


def checked_alerts(alerts: Any) -> tuple[str, ...]:
    """Return the addresses of alerts; an address is text such as `slack://$SLACK_TOKEN`."""
    if isinstance(alerts, str):
        alerts = [alerts]
    if not isinstance(alerts, Iterable):
        raise SMDebugTypeError(f"alerts must be a list of addresses, not {type(alerts).__name__}")
    addresses = tuple(alerts)
    for address in addresses:
        if not isinstance(address, str) or not ("://" in address or address.startswith("$")):
            kind = "text without ://" if isinstance(address, str) else type(address).__name__
            raise SMDebugValueError(  # the address itself may hold a secret
                "An alert needs an address such as slack://$SLACK_TOKEN, mailto://user:$PASSWORD@host or "
                f"json://host/path, not {kind}"
            )
    if addresses:
        from importlib.util import find_spec

        if find_spec("apprise") is None:
            raise SMDebugValueError(f"alerts are sent with apprise: {install_command('alerts')}")
    return addresses


def checked_rule_file(file: RuleFile) -> str | None:
    """Return the absolute path of a Python file with rules; raise `SMDebugValueError` if there is none."""
    if file is None:
        return None
    path = Path(file).expanduser().absolute()
    if not path.is_file():
        raise SMDebugValueError(f"rule_file: there is no file {os.fspath(file)}")
    return str(path)


class Companion:
    """The process, from the training's side."""

    def __init__(
        self,
        place: str,
        alerts: Iterable[str] = (),
        *,
        rule_file: str | None = None,
        sinks: Sequence[SinkChoice] = (),
    ):
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._place = place
        self._is_missed = False
        self._tools = ", ".join(sink.kind.tool for sink in sinks)
        self._script_runs = ScriptRuns(sinks, place)
        settings = {
            "place": place,
            "alerts": list(alerts),
            "rule_file": rule_file,
            "sinks": self._script_runs.settings,
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "smdebug.companion"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if self._script_runs.needs_pipe else subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C ends the training; its last findings are still reported
                env=_environment(),
            )
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(settings).encode() + b"\n")
            self._process.stdin.flush()
            if self._process.stdout is not None:
                self._script_runs.deliver_from(cast(BinaryIO, self._process.stdout))
        except OSError as error:
            get_logger().warning("No rules are evaluated beside the training: %s", error)

    @property
    def uses_script_runs(self) -> bool:
        """Whether it logs to a run of a tool that ends with this process."""
        return self._script_runs.needs_pipe

    def check(self) -> None:
        """Warn, once, if the process has ended although the training continues."""
        process = self._process
        if process is None or self._is_missed or os.getpid() != self._owner:
            return
        code = process.poll()
        if code is not None:
            self._warn(code)

    def _warn(self, code: int) -> None:
        self._is_missed = True
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        get_logger().warning(
            "The evaluation beside the training has ended early (%s); the training continues. "
            "Evaluate the run yourself: smdebug evaluate %s",
            reason,
            self._place,
        )

    def finish(self, seconds: float = LAST_WORDS_SECONDS) -> None:
        """Let it evaluate the last steps and end. In a forked child, do nothing."""
        process = self._process
        if process is None or os.getpid() != self._owner:
            return
        self._process = None
        try:
            if process.stdin is not None:
                process.stdin.close()
            code = process.wait(seconds)
            self._script_runs.finish()
            if code and not self._is_missed:
                self._warn(code)
        except subprocess.TimeoutExpired:
            what = f"or what is sent to {self._tools} " if self._tools else ""
            get_logger().info(
                "The training waits no longer: the evaluation of the last steps %sgoes on in process %s",
                what,
                process.pid,
            )
            self._script_runs.finish(0)
        except OSError as error:
            get_logger().warning("The evaluation beside the training has ended: %s", error)


def _environment() -> Mapping[str, str]:
    """Return the environment: the same modules, one thread, and no GPU."""
    paths = [path or "." for path in sys.path]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
