"""`make demo`: detect a failing run, send an alert and stop the training, within a minute.

Everything runs on this machine: the template for AWS is deployed into a local stack, two real trainings
save their tensors to its bucket, and the real functions evaluate the rules.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from local_aws.aws import LocalAws
from local_aws.debugger import LocalDebugger
from local_aws.demo.narration import INTRODUCTION, Narrator, conclusion, show_latencies
from local_aws.demo.results import PLACE, as_data, download, fetch_report, write_summary
from local_aws.demo.screen import Screen
from local_aws.demo.training import RULES, STEPS, training
from local_aws.errors import INTERRUPTED, LocalStackError, explain_os_error, report_error


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--keep", metavar="FOLDER", help="leave the two runs in FOLDER, to inspect them afterwards"
    )
    parser.add_argument("--json", action="store_true", help="print all results in one document at the end")
    arguments = parser.parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGINT):  # a shell may have set SIGINT to be ignored
        signal.signal(number, _as_interrupt)
    try:
        with ExitStack() as stack:
            out = sys.stdout
            if arguments.json:  # on a terminal, stderr shows the events
                unseen = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
                out = sys.stderr if sys.stderr.isatty() else unseen
            keep = Path(arguments.keep) if arguments.keep else None
            results = demo(keep=keep, out=out)
    except KeyboardInterrupt:
        print("Interrupted. Nothing was left behind.", file=sys.stderr)
        return INTERRUPTED
    except LocalStackError as error:
        return report_error(error, as_json=arguments.json)
    if arguments.json:
        print(json.dumps(results, ensure_ascii=False, indent=2))
    return 0 if results["as_it_should_be"] else 1


def demo(*, keep: Path | None = None, out: IO[str] | None = None) -> dict[str, Any]:
    """Run the demo; return whether it went as expected, and the results of each run."""
    screen = Screen(out or sys.stdout)
    began = time.monotonic()
    for folder in (PLACE, keep):
        if folder is not None:
            _make(folder)
    screen.line(INTRODUCTION)
    with ExitStack() as stack:
        with screen.progress("Deploying the debugger on this machine (no account, no Docker)"):
            aws = stack.enter_context(LocalAws())
            debugger = LocalDebugger(aws)
            inbox = aws.inbox("demo")
        screen.line(f"  bucket    s3://{debugger.bucket}")
        screen.line("  inbox     subscribed to the alerts, like your email\n")
        screen.line("Two networks start training, each in its own process.")
        screen.line(screen.dim(f"  {'seconds':>7}  {'run':<9}event"))
        for name in STEPS:
            debugger.attach(name, RULES)
        runs = [stack.enter_context(training(name, debugger)) for name in STEPS]
        screen.start_clock()
        Narrator(runs, debugger, inbox, screen).watch()
        with screen.progress("\nFinishing both runs"):
            for run in runs:
                debugger.finish(run.name)
        with screen.progress("Fetching the report of each run"):
            for run in runs:
                fetch_report(run, debugger)
        show_latencies(runs, screen)
        summary = write_summary(runs, debugger)
        if keep is not None:
            download(runs, debugger, keep)
        screen.line(conclusion(runs, summary, keep, screen))
        return {
            "as_it_should_be": runs[0].was_stopped and not runs[1].was_stopped,
            "seconds": round(time.monotonic() - began, 1),
            "summary": str(summary),
            "kept": str(keep) if keep else None,
            "runs": [as_data(run, debugger) for run in runs],
        }


def _make(folder: Path) -> None:
    """Make a folder and check that it is writable, before anything else starts."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise explain_os_error(error, str(folder)) or LocalStackError(
            f"{folder} cannot be used as a folder ({error.strerror}): choose another one"
        ) from error


def _as_interrupt(*_: object) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):  # the first signal cleans up; ignore others
        signal.signal(number, lambda *_: None)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
