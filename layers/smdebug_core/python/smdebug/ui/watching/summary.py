"""What the list shows of a run that is read in full."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smdebug.diagnosis.wording import in_a_line
from smdebug.mode_keys import ModeKeys
from smdebug.plain_text import escaped
from smdebug.trials.observations.loss_names import likely_losses
from smdebug.ui.finding.glance import (
    CURVE,
    Glance,
    configuration_of,
    finite,
    metrics_of,
    state_of,
    timed,
)
from smdebug.ui.following.reading import RunReader
from smdebug.ui.read_run import ReadRun


def summary_of(known: Glance, reader: RunReader) -> Glance:
    """Return the summary of a run brought up to date with what was read of it."""
    trial, steps = reader.trial, reader.steps
    if trial is None:
        return replace(known, error=reader.error) if reader.error else known
    checked = reader.steps_checked
    first = reader.issues[0] if reader.issues else None
    glance = replace(
        timed(known, trial, steps),
        training_step=int(reader.charts.training_steps.of(np.array(steps[-1:]))[0]) if steps else None,
        state=state_of(trial, steps, ended=reader.has_ended),
        error=reader.error,
        workers=trial.num_workers,
        configuration=configuration_of(trial),
        metrics=metrics_of(trial),
        issues=len(reader.issues) if checked else None,
        issue="" if first is None else escaped(in_a_line(first)),
        since=None if first is None else first.since,
        checked=checked,
        passed=passed_of(reader),
        missing=reader.missing,
    )
    name = known.loss_name or next(iter(likely_losses(reader.series)), "")
    pyramid = reader.charts.lines.get(ModeKeys.TRAIN.name, {}).get(name)
    if not pyramid:  # it has no values of training
        pyramid = reader.series.get(name)
    if not pyramid:
        return glance
    values = pyramid.between(None, None, CURVE).high
    return replace(
        glance,
        loss_name=name,
        loss=finite(float(pyramid.values[-1])),
        curve=tuple(finite(float(value)) for value in values),
    )


def passed_of(reader: ReadRun) -> int:
    """Return how many rules had what they check and detected nothing."""
    return sum(rule["state"] == "passed" for rule in reader.verdict["rules"])
