"""Records and runs that tests of sinks need."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import smdebug
from smdebug.diagnosis import Issue
from smdebug.sinks.records import (
    DiagnosisRecord,
    FileRecord,
    IssueRecord,
    NumbersRecord,
    ReportRecord,
    RunRecord,
)

RUN = RunRecord("run-a", "/data/run-a", ("nightly",), "1.0")
ISSUE = Issue(
    cause="vanishing",
    what="The gradient of fc is 1e-12",
    since=40,
    last=60,
    advice=("Add a residual connection", "Use another activation"),
    rules=("GradientFlow",),
    title="Gradients vanish",
)
NUMBERS = NumbersRecord(
    40,
    "training",
    1700000000.5,
    {"loss": 0.25, "worst": float("nan"), "most": float("inf")},
    {"gradient/fc.weight": {"rms": 0.5, "non_finite": 1.0}},
)
OPENED, RESOLVED = IssueRecord("opened", 40, ISSUE), IssueRecord("resolved", 80, ISSUE)
DIAGNOSIS = DiagnosisRecord(99, (ISSUE,), 0, ("StuckLoss",), ("Attention",), {"Broken": "ValueError: x"})
REPORT = ReportRecord("<p>report</p>")
FILE = FileRecord("logged/a/step-000000000001-0.png", b"\x89PNG\0")


def numbers_of(record: NumbersRecord) -> dict[str, float]:
    """Return all numbers of a record by one name each."""
    tensors = {f"{name}/{of}": value for name, row in record.statistics.items() for of, value in row.items()}
    return {**record.values, **tensors}


def failing_run(place: Path, *, name: str = "loss") -> Path:
    """Train for 30 steps, with an evaluation of three batches after each ten; the loss is NaN from 20 on."""
    x, weights = np.random.default_rng(0).normal(size=(64, 3)), np.zeros(3)
    with smdebug.Hook(str(place), system_metrics=False) as hook:
        for step in range(30):
            error = x @ weights - 1
            with hook.step(mode=smdebug.modes.TRAIN):
                loss = float("nan") if step >= 20 else float((error**2).mean())
                hook.record_all({name: loss, "weight": weights})
            weights = weights - 0.1 * x.T @ error / len(x)
            if step % 10 == 9:
                for batch in range(3):
                    with hook.step(mode=smdebug.modes.EVAL):
                        hook.record(name, 100.0 + step + batch)
    return place
