"""What the demo leaves: a summary, reports, the runs themselves, and a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from local_aws.debugger import LocalDebugger
from local_aws.demo.narration import seconds_after_upload
from local_aws.demo.training import STEPS, Run
from local_aws.deployment.assembly import ROOT
from local_aws.errors import WaitedTooLong

PLACE = ROOT / ".demo"
REPORT = "report/report.html"
REPORT_TIMEOUT = 30.0  # seconds


def write_summary(runs: Sequence[Run], debugger: LocalDebugger) -> Path:
    """Write the statuses, findings and actions of all rules as a page."""
    place = PLACE / "summary.md"
    lines = ["# What the rules found", ""]
    for run in runs:
        known = debugger.run(run.name)
        lines += [f"## {run.name}", "", "| rule | status | reason |", "|---|---|---|"]
        lines += [
            f"| {status.name} | {status.status} | {status.reason or '–'} |" for status in known.statuses()
        ]
        for finding in known.findings():
            lines += ["", f"- step {finding.step}, {finding.name}: {finding.reason}"]
            lines += [f"  - {worst['message']}" for worst in finding.worst[:5]]
        for action in known.actions():
            lines += ["", f"- {action.name}: {action.message}"]
        lines.append("")
    place.write_text("\n".join(lines), encoding="utf-8")
    return place


def fetch_report(run: Run, debugger: LocalDebugger) -> None:
    """Download the page that a function writes for each finished run."""
    storage = debugger.storage(run.name)
    with suppress(WaitedTooLong):  # the summary has the same findings
        debugger.aws.wait_until(
            lambda: storage.exists(REPORT),
            what=f"the report of {run.name}",
            seconds=REPORT_TIMEOUT,
        )
        run.report = PLACE / f"{run.name}.html"
        run.report.write_bytes(storage.read(REPORT))


def download(runs: Sequence[Run], debugger: LocalDebugger, folder: Path) -> None:
    """Download all files of the runs."""
    client = debugger.aws.client("s3")
    for run in runs:
        prefix = f"{debugger.key(run.name)}/"
        pages = client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=debugger.bucket, Prefix=prefix):
            for item in page.get("Contents", ()):
                file = folder / run.name / item["Key"].removeprefix(prefix)
                file.parent.mkdir(parents=True, exist_ok=True)
                client.download_file(debugger.bucket, item["Key"], str(file))


def as_data(run: Run, debugger: LocalDebugger) -> dict[str, Any]:
    """What the debugger knows about a run, for a program."""
    known = debugger.run(run.name)
    findings = {finding.id: finding for finding in known.findings()}
    return {
        "name": run.name,
        "path": debugger.path(run.name),
        "steps": [step.step for step in known.steps() if step.evaluated],
        "steps_planned": STEPS[run.name],
        "ended": run.ending,
        "stopped_by": [
            {
                "action": action.name,
                "rule": findings[action.finding_id].name,
                "step": findings[action.finding_id].step,
                "how": action.message,
            }
            for action in known.actions()
            if run.was_stopped and action.done
        ],
        "rules": [
            {"name": status.name, "status": str(status.status), "reason": status.reason}
            for status in known.statuses()
        ],
        "findings": [
            {
                "id": finding.id,
                "step": finding.step,
                "rule": finding.name,
                "messages": [worst["message"] for worst in finding.worst],
                "diagnosis": finding.detail.get("diagnosis"),
                "seconds_after_upload": seconds_after_upload(
                    run.shown_findings.get(finding.id, finding.detail)
                ),
            }
            for finding in findings.values()
        ],
        "alerts": run.alerts,
        "report": str(run.report) if run.report else None,
    }
