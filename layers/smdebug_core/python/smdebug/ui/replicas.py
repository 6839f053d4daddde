"""Which workers' copies of the model differ."""

from __future__ import annotations

from collections import Counter

from smdebug.mode_keys import ModeKeys
from smdebug.plain_text import escaped
from smdebug.runs.overview import thinned
from smdebug.trials import Trial
from smdebug.ui.answer_types import RanksAnswer

MOST_STEPS = 2000  # at which workers are compared
SAME, DIFFERENT, ABSENT = 0, 1, 2


def differences(trial: Trial) -> RanksAnswer:
    """Compare the digests of all workers with those that most of them have."""
    observed = trial.observations
    steps = thinned(observed.replica_steps(), MOST_STEPS) if trial.steps() else []
    roots = {step: observed.roots(step, ModeKeys.GLOBAL) for step in steps}
    workers = sorted({worker for step_roots in roots.values() for worker in step_roots})
    columns = []
    for step in steps:
        of_worker = {
            worker: digests["parameters"]
            for worker, digests in roots[step].items()
            if "parameters" in digests  # inputs of workers differ by design
        }
        usual = Counter(of_worker.values()).most_common(1)
        columns.append(
            [
                ABSENT if worker not in of_worker else SAME if of_worker[worker] == usual[0][0] else DIFFERENT
                for worker in workers
            ]
        )
    state = [list(row) for row in zip(*columns, strict=True)] if columns else []
    return {"workers": [escaped(worker) for worker in workers], "steps": steps, "state": state}
