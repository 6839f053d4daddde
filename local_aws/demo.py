"""`make demo`: a training goes wrong, and a minute later it is stopped and somebody has been told why.

Everything runs on this machine: the template that would be deployed to AWS is deployed into a local stand-in,
two real trainings in processes of their own save their tensors to its bucket, and the real functions look.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from local_aws.aws import LocalAws
from local_aws.debugger import LocalDebugger
from local_aws.errors import (
    INTERRUPTED,
    LocalStackError,
    WaitedTooLong,
    complain,
    in_words,
)
from local_aws.screen import Screen

ROOT = Path(__file__).parents[1]
PLACE = ROOT / ".demo"
REPORT = "report/report.html"
TRAINING = ROOT / "examples" / "train_numpy.py"
STEPS = {"ill": 1200, "healthy": 300}
SAVE_INTERVAL, PAUSE = 20, 0.05
PATIENCE = 80.0  # seconds for all that happens once the trainings run
PAGES_PATIENCE = 30.0  # and for the two reports at the end
FOUND = "Rule Evaluation Condition Met"
RULES: list[Any] = [
    {"name": "VanishingGradient", "rule": "VanishingGradient", "actions": ["stoptraining"]},
    {"name": "ExplodingTensor", "rule": "ExplodingTensor", "actions": ["stoptraining"]},
]


def main(argv: Sequence[str] | None = None) -> int:
    arguments = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").splitlines()[0])
    arguments.add_argument(
        "--keep", metavar="FOLDER", help="leave the two runs there, to look at them afterwards"
    )
    arguments.add_argument(
        "--json", action="store_true", help="tell all of it in one document, at the end"
    )
    asked = arguments.parse_args(argv)
    for stopping in (signal.SIGTERM, signal.SIGINT):  # a shell may have us ignore the second
        signal.signal(stopping, _as_interrupt)
    try:
        with ExitStack() as stack:
            out = sys.stdout
            if asked.json:  # whoever waits at a terminal sees the story all the same
                unseen = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
                out = sys.stderr if sys.stderr.isatty() else unseen
            told = demo(keep=Path(asked.keep) if asked.keep else None, out=out)
    except KeyboardInterrupt:
        print("Interrupted. Nothing was left behind.", file=sys.stderr)
        return INTERRUPTED
    except LocalStackError as error:
        return complain(error, as_json=asked.json)
    if asked.json:
        print(json.dumps(told, ensure_ascii=False, indent=2))
    return 0 if told["as_it_should_be"] else 1


def demo(*, keep: Path | None = None, out: IO[str] | None = None) -> dict[str, Any]:
    """Show it all, and give it as data: whether it went as it should, and what was seen of each run."""
    screen = Screen(out or sys.stdout)
    began = time.monotonic()
    for folder in (PLACE, keep):
        if folder is not None:
            _make(folder)
    screen.say(INTRODUCTION)
    with ExitStack() as stack:
        with screen.waiting("Deploying the debugger on this machine (no account, no Docker)"):
            aws = stack.enter_context(LocalAws())
            debugger = LocalDebugger(aws)
            inbox = aws.inbox("demo")
        screen.say(f"  bucket    s3://{debugger.bucket}")
        screen.say("  inbox     subscribed to the alerts, as your e-mail would be\n")
        screen.say("Two networks begin to train, each in a process of its own.")
        screen.say(screen.dim(f"  {'seconds':>7}  {'training':<9}what happens"))
        for name in STEPS:
            debugger.attach(name, RULES)
        runs = [stack.enter_context(_training(name, debugger)) for name in STEPS]
        screen.begin()
        _watch(runs, debugger, inbox, screen)
        with screen.waiting("\nTelling the rules that the trainings are over"):
            for run in runs:
                debugger.finish(run.name)
        with screen.waiting("Having a report written of each"):
            for run in runs:
                _fetch_report(run, debugger)
        _tell_times(runs, screen)
        summary = _summary(runs, debugger)
        if keep is not None:
            _download(runs, debugger, keep)
        screen.say(_closing_words(runs, summary, keep, screen))
        return {
            "as_it_should_be": runs[0].was_stopped and not runs[1].was_stopped,
            "seconds": round(time.monotonic() - began, 1),
            "summary": str(summary),
            "kept": str(keep) if keep else None,
            "runs": [_as_data(run, debugger) for run in runs],
        }


@dataclass
class Run:
    """A training, and what was seen of it."""

    name: str
    process: subprocess.Popen[bytes]
    said: Path
    told_steps: set[int] = field(default_factory=set)
    told_findings: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    alerted_after: dict[str, float] = field(default_factory=dict)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    report: Path | None = None
    told_actions: set[str] = field(default_factory=set)
    has_told_end: bool = False

    @property
    def was_stopped(self) -> bool:
        return "stopped" in self.said.read_text(encoding="utf-8", errors="replace")


@contextmanager
def _training(name: str, debugger: LocalDebugger) -> Iterator[Run]:
    command = [sys.executable, "-W", "ignore", str(TRAINING), "--out-dir", debugger.path(name)]
    command += ["--steps", str(STEPS[name]), "--pause", str(PAUSE)]
    command += ["--save-interval", str(SAVE_INTERVAL), *(["--ill"] if name == "ill" else [])]
    sources = [ROOT / "layers" / "smdebug_core" / "python", ROOT / "rules"]
    environment = {
        **os.environ,
        **debugger.aws.environment,
        "PYTHONPATH": os.pathsep.join(map(str, sources)),
        "SMDEBUG_LOG_LEVEL": "error",
        "OPENBLAS_NUM_THREADS": "1",
        "TMPDIR": debugger.aws.folder,  # whatever ends us, the stack ends what was started there
    }
    with tempfile.TemporaryDirectory(prefix="training-", dir=debugger.aws.folder) as folder:
        said = Path(folder) / "said"
        with said.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - our own example
                command,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
        try:
            yield Run(name, process, said)
        finally:
            process.kill()
            process.wait()


def _watch(runs: Sequence[Run], debugger: LocalDebugger, inbox: Any, screen: Screen) -> None:
    """Tell what happens until both trainings are over and all that they saved was looked at."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for message in inbox.messages():
            _tell_alert(runs, debugger, message, screen)
        settled = [_tell_of(run, debugger, screen) for run in runs]
        if all(settled) and _all_alerts_are_there(runs):
            return
        time.sleep(0.1)


def _tell_of(run: Run, debugger: LocalDebugger, screen: Screen) -> bool:
    """Tell what is new of a run; is it over, and all of it looked at?"""
    from smdebug.exceptions import RunUnknown

    is_over = run.process.poll() is not None
    try:
        known = debugger.aws.connect().run(debugger.path(run.name))
        steps, statuses = known.steps(), known.statuses()
        findings = {one.step: one.detail for one in known.findings()}
    except RunUnknown:
        return False
    new = [one for one in steps if one.evaluated and one.step not in run.told_steps]
    together: list[Any] = []
    for one in new:
        if one.step in findings:
            _tell_steps(run, together, statuses, screen)
            together = []
            _tell_finding(run, findings[one.step], screen)
        else:
            together.append(one)
    _tell_steps(run, together, statuses, screen)
    run.told_steps.update(one.step for one in new)
    for action in known.actions():
        if action.finding_id not in run.told_actions:
            run.told_actions.add(action.finding_id)
            said = screen.bold("is asked to stop, by an object that its hook looks for")
            screen.happen(run.name, f"the training {said}")
    if is_over and not run.has_told_end:
        run.has_told_end = True
        if run.was_stopped:
            how = screen.bold("has stopped")
        else:
            how = "has ended" if run.process.returncode == 0 else "has failed"
        screen.happen(run.name, f"the training {how}")
        if run.process.returncode:
            screen.say(run.said.read_text(encoding="utf-8", errors="replace"))
    return is_over and all(one.evaluated for one in steps)


def _tell_steps(run: Run, steps: Sequence[Any], statuses: Sequence[Any], screen: Screen) -> None:
    """Tell of steps at which no rule had anything new to say."""
    if not steps:
        return
    first, last = steps[0].step, steps[-1].step
    which = f"step {first}" if first == last else f"steps {first} to {last}"
    # A rule says nothing while what it found goes on.
    open_issues = [one.name for one in statuses if one.issue_since is not None]
    said = (
        screen.dim(f"{', '.join(open_issues)} still sees it")
        if open_issues
        else screen.green(f"{len(statuses)} rules looked, all is well")
    )
    after = time.time() - steps[-1].uploaded.timestamp()
    screen.happen(run.name, f"{which:<19}{said}{screen.dim(f', {after:.1f} s after it came')}")


def _tell_finding(run: Run, detail: Mapping[str, Any], screen: Screen) -> None:
    step, evidence = f"step {detail['step']}", detail["evidence"]
    screen.happen(run.name, f"{step:<19}{screen.red(_name(detail) + ' has found something')}")
    for worst in evidence["worst"][:2]:
        screen.say(f"{'':40}{screen.red(worst['message'])}")
    if evidence["count"] > 2:
        screen.say(f"{'':40}{screen.red('and {} more'.format(evidence['count'] - 2))}")


def _name(detail: Mapping[str, Any]) -> str:
    return str(detail["configuration"]["name"])


def _tell_alert(
    runs: Sequence[Run], debugger: LocalDebugger, message: Mapping[str, str], screen: Screen
) -> None:
    for run in runs:
        if f"{debugger.bucket}/{debugger.key(run.name)}" not in message["message"]:
            continue
        subject, after = message["subject"].partition(" of ")[0] or "an alert", ""
        alert: dict[str, Any] = {"subject": message["subject"]}
        for event in debugger.events(run.name, FOUND):
            detail = event["detail"]
            if detail["id"] in message["message"]:
                run.told_findings[detail["id"]] = detail
                seconds = time.time() - _seconds(detail["times"]["uploaded"])
                run.alerted_after[detail["id"]] = seconds
                alert |= {
                    "rule": _name(detail),
                    "step": detail["step"],
                    "finding": detail["id"],
                    "seconds_after_upload": round(seconds, 3),
                }
                after = f", {seconds:.1f} s after the file came"
                break
        run.alerts.append(alert)
        screen.happen(run.name, f"in the inbox       {screen.bold(subject)}{screen.dim(after)}")


def _all_alerts_are_there(runs: Sequence[Run]) -> bool:
    return bool(runs[0].alerted_after) and all(
        set(run.told_findings) <= set(run.alerted_after) for run in runs
    )


def _tell_times(runs: Sequence[Run], screen: Screen) -> None:
    """Where the time went between the upload of a step and the event that tells of it."""
    findings = [detail for run in runs for detail in run.told_findings.values()]
    if not findings:
        return
    screen.say(
        "\n" + screen.bold("How long it took, in seconds since the step's last file was uploaded")
    )
    screen.say(
        screen.dim(f"  {'finding':<28}{'indexed':>9}{'evaluated':>11}{'published':>11}{'alert':>8}")
    )
    for run in runs:
        for finding, detail in run.told_findings.items():
            took = _seconds_after_upload(detail)
            told = [took.get(name, 0.0) for name in ("indexed", "evaluated", "published")]
            name = f"{run.name}, {_name(detail)}"
            alert = run.alerted_after.get(finding)
            numbers = f"{told[0]:9.2f}{told[1]:11.2f}{told[2]:11.2f}"
            screen.say(f"  {name:<28}{numbers}" + (f"{alert:8.2f}" if alert else ""))
    screen.say(screen.dim("  (the first ones include the start of each function, as on AWS)"))


def _summary(runs: Sequence[Run], debugger: LocalDebugger) -> Path:
    """What the rules have come to, as a page."""
    place = PLACE / "summary.md"
    lines = ["# What the rules found", ""]
    for run in runs:
        known = debugger.run(run.name)
        lines += [f"## {run.name}", "", "| rule | status | why |", "|---|---|---|"]
        for one in known.statuses():
            lines.append(f"| {one.name} | {one.status} | {one.reason or '–'} |")
        for finding in known.findings():
            lines += ["", f"- step {finding.step}, {finding.name}: {finding.reason}"]
            for worst in finding.worst[:5]:
                lines.append(f"  - {worst['message']}")
        for action in known.actions():
            lines += ["", f"- {action.name}: {action.message}"]
        lines.append("")
    place.write_text("\n".join(lines), encoding="utf-8")
    return place


def _fetch_report(run: Run, debugger: LocalDebugger) -> None:
    """The page that a function writes beside each run that has finished."""
    there = debugger.storage(run.name)
    with suppress(WaitedTooLong):  # the summary tells the same
        debugger.aws.wait_until(
            lambda: there.exists(REPORT), what=f"the report of {run.name}", seconds=PAGES_PATIENCE
        )
        run.report = PLACE / f"{run.name}.html"
        run.report.write_bytes(there.read(REPORT))


def _as_data(run: Run, debugger: LocalDebugger) -> dict[str, Any]:
    """What was seen of a run, for a program."""
    known = debugger.run(run.name)
    findings = known.findings()
    found = {one.id: one for one in findings}
    return {
        "name": run.name,
        "path": debugger.path(run.name),
        "steps": [one.step for one in known.steps() if one.evaluated],
        "steps_planned": STEPS[run.name],
        "ended": "stopped"
        if run.was_stopped
        else "failed"
        if run.process.returncode
        else "finished",
        "stopped_by": [
            {
                "action": one.name,
                "rule": found[one.finding_id].name,
                "step": found[one.finding_id].step,
                "how": one.message,
            }
            for one in known.actions()
            if run.was_stopped and one.done
        ],
        "rules": [
            {"name": one.name, "status": str(one.status), "reason": one.reason}
            for one in known.statuses()
        ],
        "findings": [
            {
                "id": one.id,
                "step": one.step,
                "rule": one.name,
                "messages": [worst["message"] for worst in one.worst],
                "seconds_after_upload": _seconds_after_upload(
                    run.told_findings.get(one.id, one.detail)
                ),
            }
            for one in findings
        ],
        "alerts": run.alerts,
        "report": str(run.report) if run.report else None,
    }


def _seconds_after_upload(detail: Mapping[str, Any]) -> dict[str, float]:
    at = {name: _seconds(told) for name, told in detail["times"].items() if told}
    begun = at.get("uploaded", at.get("indexed", 0.0))
    reached = ("indexed", "evaluated", "published")
    return {name: round(at[name] - begun, 3) for name in reached if name in at}


def _download(runs: Sequence[Run], debugger: LocalDebugger, folder: Path) -> None:
    client = debugger.aws.client("s3")
    for run in runs:
        prefix = f"{debugger.key(run.name)}/"
        pages = client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=debugger.bucket, Prefix=prefix):
            for found in page.get("Contents", ()):
                file = folder / run.name / found["Key"].removeprefix(prefix)
                file.parent.mkdir(parents=True, exist_ok=True)
                client.download_file(debugger.bucket, found["Key"], str(file))


def _closing_words(runs: Sequence[Run], place: Path, keep: Path | None, screen: Screen) -> str:
    ill, healthy = runs
    pages = [os.path.relpath(run.report) for run in runs if run.report]
    ended = "was stopped" if ill.was_stopped else "was not stopped"
    going = "was left alone" if not healthy.was_stopped else "was stopped, too"
    shown = os.path.relpath(place)
    last = max(ill.told_steps, default=0)
    lines = [
        "",
        f"The {screen.bold('ill')} training {ended} after {last} of {STEPS['ill']} steps: "
        "no gradient reaches its first layers,",
        "so they never learn. Its loss alone would have taken much longer to say so.",
        f"The {screen.bold('healthy')} one {going}.",
        "",
        f"The summary is in {screen.bold(shown)}, a report of each in {screen.bold(' and '.join(pages))}."
        if pages
        else f"The summary is in {screen.bold(shown)}.",
        "On AWS it is the same template: docs/deploy.md",
    ]
    if keep:
        lines.append(
            f"The runs are in {keep}: python -m smdebug.rules.rule_invoker --trial-dir {keep}/ill"
        )
    return "\n".join(lines)


def _seconds(told: str | None) -> float:
    return datetime.fromisoformat(told).timestamp() if told else time.time()


def _make(folder: Path) -> None:
    """While it is not too late to choose another."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise in_words(error, str(folder)) or LocalStackError(
            f"{folder} is no place for files ({error.strerror}): choose another folder"
        ) from error


def _as_interrupt(*_: object) -> None:
    for stopping in (signal.SIGTERM, signal.SIGINT):  # one is enough: it is clearing up
        signal.signal(stopping, lambda *_: None)
    raise KeyboardInterrupt


INTRODUCTION = f"""
smdebug: what is going wrong inside a training, while it runs

Two networks learn to tell points inside a circle from those outside. One is ill: its gradients vanish on
their way to the first layers. A hook saves loss, weights and gradients to a bucket, every {SAVE_INTERVAL}
steps. Each saved step wakes the rules, which look, tell, and may stop the training.
"""

if __name__ == "__main__":
    sys.exit(main())
