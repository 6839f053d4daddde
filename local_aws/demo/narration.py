"""The lines that the demo prints about its runs, as things happen."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from local_aws.debugger import LocalDebugger
from local_aws.demo.screen import Screen
from local_aws.demo.training import FAILING, SAVE_INTERVAL, STEPS, Run
from smdebug.diagnosis import Issue, as_text

TIMEOUT = 80.0  # seconds, for everything after the start of the trainings
FOUND = "Rule Evaluation Condition Met"
TEXTS_BEGIN = 14  # the column of the texts of a diagnosis
TIMES = ("indexed", "evaluated", "published")
INTRODUCTION = f"""
smdebug: find out what is going wrong in a training while it runs

{
    " ".join(
        (
            "Two networks learn to separate points inside a circle from those outside. One run is failing:",
            "its gradients vanish before they reach the first layers. A hook saves the loss, and statistics",
            f"of weights and gradients, to a bucket every {SAVE_INTERVAL} steps. Each saved step starts the",
            "default rules; a finding sends an alert, and can stop the training. All of it takes a minute.",
        )
    )
}
"""


class Narrator:
    """Watches the runs and prints what is new about them."""

    def __init__(self, runs: Sequence[Run], debugger: LocalDebugger, inbox: Any, screen: Screen):
        self._runs = runs
        self._debugger = debugger
        self._inbox = inbox
        self._screen = screen

    def watch(self) -> None:
        """Return when both trainings have ended and every saved step is evaluated."""
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            for message in self._inbox.messages():
                self._show_alert(message)
            settled = [self._show_news(run) for run in self._runs]
            if all(settled) and self._all_alerts_arrived():
                return
            time.sleep(0.1)

    def _show_news(self, run: Run) -> bool:
        """Print what is new about a run; return whether it is over and completely evaluated."""
        from smdebug.exceptions import RunUnknown

        has_ended = run.has_ended
        try:
            known = self._debugger.aws.connect().run(self._debugger.path(run.name))
            steps, statuses = known.steps(), known.statuses()
            findings = {finding.step: finding.detail for finding in known.findings()}
        except RunUnknown:
            return False
        found = {rule_name(detail): step for step, detail in sorted(findings.items(), reverse=True)}
        rules = [(status, found.get(status.name, -1)) for status in statuses]
        new = [step for step in steps if step.evaluated and step.step not in run.shown_steps]
        uneventful: list[Any] = []
        for step in new:
            if step.step in findings:
                self._show_uneventful(run, uneventful, rules)
                uneventful = []
                self._show_finding(run, findings[step.step])
            else:
                uneventful.append(step)
        self._show_uneventful(run, uneventful, rules)
        run.shown_steps.update(step.step for step in new)
        for action in known.actions():
            if action.finding_id not in run.shown_actions:
                run.shown_actions.add(action.finding_id)
                request = self._screen.bold("stop requested")
                self._screen.event(run.name, f"{request} (control file written)")
        if has_ended and not run.end_is_shown:
            self._show_end(run)
        return has_ended and all(step.evaluated for step in steps)

    def _show_uneventful(self, run: Run, steps: Sequence[Any], rules: Sequence[tuple[Any, int]]) -> None:
        """Print a line for steps without a new finding; `rules` have the step where they found an issue."""
        if not steps:
            return
        first, last = steps[0].step, steps[-1].step
        which = f"step {first}" if first == last else f"steps {first} to {last}"
        # A rule publishes an issue once, and nothing while it stays open.
        statuses = [status for status, _ in rules]
        open_issues = still_open(rules, first)
        verdict = (
            self._screen.dim(f"issue still open: {', '.join(open_issues)}")
            if open_issues
            else self._screen.green(rules_passed(statuses))
        )
        delay = self._screen.dim(_delay(time.time() - steps[-1].uploaded.timestamp()))
        self._screen.event(run.name, f"{which:<19}{verdict}{delay}")

    def _show_finding(self, run: Run, detail: Mapping[str, Any]) -> None:
        screen, evidence = self._screen, detail["evidence"]
        step, finding = f"step {detail['step']}", f"{rule_name(detail)} found an issue"
        screen.event(run.name, f"{step:<19}{screen.red(finding)}")
        for worst in evidence["worst"][:2]:
            screen.line(f"{'':40}{screen.red(worst['message'])}")
        if evidence["count"] > 2:
            more = f"and {evidence['count'] - 2} more"
            screen.line(f"{'':40}{screen.red(more)}")

    def _show_end(self, run: Run) -> None:
        run.end_is_shown = True
        how = run.ending
        self._screen.event(run.name, f"training {self._screen.bold(how) if how == 'stopped' else how}")
        if run.process.returncode:
            self._screen.line(run.output_text)

    def _show_alert(self, message: Mapping[str, str]) -> None:
        for run in self._runs:
            place = f"{self._debugger.bucket}/{self._debugger.key(run.name)}"
            if place in message["message"]:
                self._show_alert_of(run, message)

    def _show_alert_of(self, run: Run, message: Mapping[str, str]) -> None:
        subject, delay = short_subject(message["subject"], self._debugger.bucket), ""
        alert: dict[str, Any] = {"subject": message["subject"]}
        for event in self._debugger.events(run.name, FOUND):
            detail = event["detail"]
            if detail["id"] in message["message"]:
                run.shown_findings[detail["id"]] = detail
                seconds = time.time() - seconds_of(detail["times"]["uploaded"])
                run.alerted_after[detail["id"]] = seconds
                alert |= {
                    "rule": rule_name(detail),
                    "step": detail["step"],
                    "finding": detail["id"],
                    "seconds_after_upload": round(seconds, 3),
                }
                delay = self._screen.dim(_delay(seconds))
                break
        run.alerts.append(alert)
        self._screen.event(run.name, f"{'alert':<19}{self._screen.bold(subject)}{delay}")

    def _all_alerts_arrived(self) -> bool:
        return bool(self._runs[0].alerted_after) and all(
            set(run.shown_findings) <= set(run.alerted_after) for run in self._runs
        )


def show_latencies(runs: Sequence[Run], screen: Screen) -> None:
    """Print a table of the times between the upload of a step and the event about it."""
    if not any(run.shown_findings for run in runs):
        return
    screen.line("\n" + screen.bold("Seconds since the last file of the step was uploaded"))
    screen.line(screen.dim(f"  {'finding':<28}{'indexed':>9}{'evaluated':>11}{'published':>11}{'alert':>8}"))
    for run in runs:
        for finding, detail in run.shown_findings.items():
            took = seconds_after_upload(detail)
            indexed, evaluated, published = (took.get(name, 0.0) for name in TIMES)
            name = f"{run.name}, {rule_name(detail)}"
            alert = run.alerted_after.get(finding)
            numbers = f"{indexed:9.2f}{evaluated:11.2f}{published:11.2f}"
            screen.line(f"  {name:<28}{numbers}" + (f"{alert:8.2f}" if alert else ""))
    screen.line(screen.dim("  (the first ones include the cold start of each function, as on AWS)"))


def conclusion(runs: Sequence[Run], summary: Path, keep: Path | None, screen: Screen) -> str:
    """The last lines of the demo."""
    failing, healthy = runs
    pages = [os.path.relpath(run.report) for run in runs if run.report]
    last = max(failing.shown_steps, default=0)
    stopped = "was stopped" if failing.was_stopped else "was not stopped"
    lines = [
        "",
        f"The {screen.bold('failing')} run {stopped} after {last} of {STEPS[FAILING]} steps: "
        "no gradient reaches its first layers, so they never learn. "
        "Its loss alone would have shown this much later.",
        *diagnosis_lines(failing, screen),
        f"The {screen.bold('healthy')} run {'was stopped, too' if healthy.was_stopped else 'completed'}.",
        "",
        f"Summary: {screen.bold(os.path.relpath(summary))}",
        *([f"Reports: {screen.bold(', '.join(pages))}"] if pages else []),
        "To deploy the same template to AWS: docs/deploy.md",
    ]
    if keep:
        lines.append(f"The runs are in {keep}. Look at the failing one again:")
        lines.append(f"  {_command()} evaluate {shlex.quote(str(keep / FAILING))}")
    else:
        lines.append(f"To keep the two runs in a folder: {_command()} demo --keep FOLDER")
    return "\n".join(lines)


def _command() -> str:
    """Return how this shell calls the command of the environment that runs the demo."""
    beside = Path(sys.executable).with_name("smdebug")
    if shutil.which("smdebug") or not beside.exists():
        return "smdebug"
    return shlex.quote(os.path.relpath(beside))


def diagnosis_lines(run: Run, screen: Screen) -> list[str]:
    """The problems of a run, as its first events say them: each once, with what to try."""
    found: dict[str, list[str]] = {}
    for detail in run.shown_findings.values():
        issue = Issue.from_dict(detail.get("diagnosis") or {})
        if issue.what:
            width = shutil.get_terminal_size().columns - TEXTS_BEGIN
            lines = as_text(issue, width=width)
            lines = [line.replace(" smdebug rules ", f" {_command()} rules ") for line in lines]
            found.setdefault(issue.cause or issue.what, lines)
    shown: list[str] = []
    for first, *rest in found.values():
        shown += ["", screen.red(f"✗ {first}"), *rest]
    return [*shown, ""] if shown else []


def still_open(rules: Sequence[tuple[Any, int]], step: int) -> list[str]:
    """Return the rules with an issue that was found by that step; several steps may be evaluated at once."""
    return [status.name for status, found in rules if status.issue_since is not None and found <= step]


def rules_passed(statuses: Sequence[Any]) -> str:
    """Return how many rules passed at some step; the others had nothing to check so far."""
    passed = sum(status.last_good is not None for status in statuses)
    return f"{passed} rules passed" if passed else "nothing to check"


def short_subject(subject: str, bucket: str) -> str:
    """Return the subject of an alert without the run's location, which the line already names."""
    return subject.partition(" of ")[0].replace(f"{bucket}/", "") or "an alert"


def rule_name(detail: Mapping[str, Any]) -> str:
    return str(detail["configuration"]["name"])


def seconds_after_upload(detail: Mapping[str, Any]) -> dict[str, float]:
    """The seconds from the upload of a step to each of `TIMES`."""
    times = {name: seconds_of(moment) for name, moment in detail["times"].items() if moment}
    start = times.get("uploaded", times.get("indexed", 0.0))
    return {name: round(times[name] - start, 3) for name in TIMES if name in times}


def seconds_of(moment: str | None) -> float:
    return datetime.fromisoformat(moment).timestamp() if moment else time.time()


def _delay(seconds: float) -> str:
    return f", {seconds:.1f} s after upload"
