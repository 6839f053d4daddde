"""Rules over views, one view for each step, against the same rules over the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smdebug.exceptions import (
    RuleEvaluationConditionMet,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.files.names import END_MARKER
from smdebug.mode_keys import ModeKeys
from smdebug.rules import Rule, restore_state, save_state
from smdebug.storage.memory import MemoryStorage
from smdebug_rules.catalog import CATALOG
from tests.rules.made_runs import STANDARD_COLLECTIONS
from tests.smdebug_rules.failing_parameters import COLLECTIONS as MORE_COLLECTIONS
from tests.smdebug_rules.failing_parameters import TENSORS, value
from tests.smdebug_rules.failing_parameters import made as made_with_parameters
from tests.support.looking import each
from tests.trials.viewing import FarStorage, Recorder, view_of, written_by
from tests.trials.writing import begin, open_trial, write_step

GLOBAL, TRAIN, EVAL = ModeKeys.GLOBAL, ModeKeys.TRAIN, ModeKeys.EVAL
COLLECTIONS = {
    name: {"include_regex": regexes} for name, regexes in {**STANDARD_COLLECTIONS, **MORE_COLLECTIONS}.items()
}


@st.composite
def runs(draw: Any) -> MemoryStorage:
    """An ended run. Where it has modes, it begins with training: rules ask whether a run has that mode."""
    workers = draw(st.integers(1, 2))
    modes = draw(st.sampled_from([[GLOBAL], [TRAIN, EVAL]]))
    storage = begin(MemoryStorage(), workers, COLLECTIONS)
    step, mode_steps = -1, dict.fromkeys(modes, -1)
    for at in range(draw(st.integers(1, 9))):
        step += draw(st.integers(1, 5))
        mode = draw(st.sampled_from(modes)) if at else modes[0]
        mode_steps[mode] += 1
        there = draw(st.sampled_from([range(workers), range(workers), [0], [workers - 1]]))
        for worker in there:
            tensors = {name: value(name, number) for name, number in draw(TENSORS).items()}
            number = step if mode is GLOBAL else mode_steps[mode]
            write_step(storage, step, tensors, worker=worker, mode=mode, mode_step=number)
    storage.write(END_MARKER, b"")
    return storage


class Remembering(Rule):
    """A custom rule that accumulates, and reads all earlier steps."""

    def __init__(self, base_trial: Any):
        super().__init__(base_trial)
        self.seen: dict[str, list[float]] = {}

    def invoke_at_step(self, step: int) -> bool:
        trial = self.base_trial
        for name in trial.tensor_names(step=step):
            tensor = trial.tensor(name)
            values = [float(np.mean(tensor.value(back))) for back in tensor.prev_steps(step)]
            self.seen[name] = [*self.seen.get(name, [])[-3:], values[-1], len(values)]
        return len(self.seen.get("loss", [])) > 4


@pytest.fixture(autouse=True, scope="module")
def _same_time_for_all() -> Iterator[None]:
    """Ignore the time at which one rule wrote last."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(CATALOG["CreateXgboostReport"].load(), "now", staticmethod(lambda: 0.0))
        yield


def made(name: str, trial: Any, other: Any) -> Rule:
    if name == "Remembering":
        return Remembering(trial)
    if name == "SimilarAcrossRuns":
        return CATALOG[name].load()(trial, other_trial=other, strict="True")
    made_rule: Rule = made_with_parameters(name, trial, other)
    return made_rule


def evaluated(rule: Rule, step: int) -> Any:
    try:
        rule.invoke(step)
    except RuleEvaluationConditionMet as met:
        return [str(finding) for finding in met.findings], rule.looked
    except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable) as missing:
        return type(missing)
    return [], rule.looked


@pytest.mark.parametrize("name", [*CATALOG, "Remembering"])
@settings(max_examples=12, deadline=None)
@given(storage=runs(), others=runs())
def test_a_rule_finds_over_views_what_it_finds_over_the_ended_run(
    name: str, storage: MemoryStorage, others: MemoryStorage
) -> None:
    whole = made(name, open_trial(storage), open_trial(others))
    known, known_of_other = Recorder(), Recorder()
    looking = view_of(others, known_of_other)
    for step, workers in written_by(others).items():
        known_of_other.record(looking, looking.move_to(step, workers))
    state = None
    for step, workers in each(written_by(storage).items()):
        # A new process every time, which has nothing but the table and the state.
        view = view_of(storage, known, far=FarStorage(storage))
        known.record(view, view.move_to(step, workers))
        other = view_of(others, known_of_other, far=FarStorage(others))
        other.limit_to(step)
        rule = made(name, view, other)
        if state is not None:
            restore_state(rule, state)
        assert evaluated(rule, step) == evaluated(whole, step)
        state = save_state(rule).data
        assert state == save_state(whole).data


def test_a_compared_run_that_is_behind_is_waited_for_and_steps_that_it_skips_are_not():
    run, compared_run = (begin(MemoryStorage(), 1, COLLECTIONS) for _ in range(2))
    for step in (0, 1, 2, 3):
        write_step(run, step, {"loss": 1.0})
    for step in (0, 3):
        write_step(compared_run, step, {"loss": 2.0})

    recorder = Recorder()
    recording = view_of(compared_run, recorder)
    view = view_of(run, Recorder())
    compared = view_of(compared_run, recorder, path="elsewhere")
    rule = made("SimilarAcrossRuns", view, compared)

    def record_of_compared(step: int) -> None:
        recorder.record(recording, recording.move_to(step, ["worker_0"]))

    def evaluated_at(step: int, *, compared_has_passed: bool) -> Any:
        view.move_to(step, ["worker_0"])
        compared.limit_to(step, passed=compared_has_passed)
        return evaluated(rule, step)

    record_of_compared(0)
    findings, _ = evaluated_at(0, compared_has_passed=True)
    assert len(findings) == 1, "the losses differ"

    with pytest.raises(StepNotYetAvailable):
        evaluated_at(1, compared_has_passed=False)

    record_of_compared(3)  # so that steps 1 and 2 were skipped
    compared.refresh_data()
    findings, has_looked = evaluated_at(1, compared_has_passed=True)
    assert findings == []
    assert not has_looked
    with pytest.raises(StepUnavailable):
        compared.tensor("loss").value(1)

    findings, _ = evaluated_at(3, compared_has_passed=True)
    assert len(findings) == 1, "the losses differ again"
