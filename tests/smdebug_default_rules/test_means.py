"""What a custom rule asks of an observed run."""

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Rule, restore_state, save_state
from smdebug.trials import create_trial
from tests.smdebug_default_rules.made_runs import findings_of


class Asking(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.answers = []

    def invoke_at_step(self, step):
        self.answers = [
            self.facts(step)["backward_passes"],
            len(self.statistics(step, "gradients")),
            self.history("gradient/Net_0.weight", "rms").steps,
            list(self.replicas("Net_0.weight")),
        ]
        return False


@pytest.fixture
def trial(run):
    run.write(steps=4)
    run.hook.close()
    return create_trial(run.place)


def test_facts_statistics_and_histories_are_asked_by_step(trial):
    rule = Asking(trial)
    for step in range(3):
        rule.invoke(step)
    assert rule.answers == [1, 6, (0, 1, 2), ["worker_0"]]
    assert len(rule.series("loss")) == 4
    assert rule.series("accuracy") is None
    assert rule.statistics(0, "trees") is None
    assert len(rule.statistics(0)) == 6 + 6 + 6 + 6 + 1


def test_a_history_goes_on_in_another_process(trial):
    first = Asking(trial)
    first.invoke(0)
    later = Asking(create_trial(trial.path))
    restore_state(later, bytes(save_state(first)))
    later.invoke(1)
    assert later.answers[2] == (0, 1)
    assert later.history("gradient/Net_0.weight", "rms", 1, keep=1).steps == (0, 1)


def test_a_step_that_is_read_twice_is_read_once(trial):
    assert trial.observations.at(2) is trial.observations.at(2)


def test_the_names_of_rows_are_worked_out_once_for_all_steps_of_a_layout(trial):
    first, last = (trial.observations.at(step).statistics("parameters") for step in (0, 3))
    assert first.names is last.names
    assert last.row("Net_0.weight")["count"] == first.row("Net_0.weight")["count"]


def test_what_is_derived_from_the_losses_of_a_step_is_shared(trial):
    from smdebug_default_rules.loss_history import finite_losses, new_losses

    seen = trial.observations.at(1)
    assert finite_losses(seen) is finite_losses(seen)
    assert [*map(list, finite_losses(seen))] == [*map(list, new_losses(seen))]


def test_without_an_evaluated_step_one_has_to_be_named(trial):
    with pytest.raises(SMDebugValueError, match="Name the step"):
        Asking(trial).replicas("Net_0.weight")
    assert list(Asking(trial).replicas("Net_0.weight", 1)) == ["worker_0"]


def test_a_damaged_matrix_is_left_out_and_named(run, tmp_path):
    run.write(steps=2)
    run.hook.close()
    (file,) = (tmp_path / "run" / "events").rglob("*1_worker_0.tfevents")
    content = bytearray(file.read_bytes())
    place = content.index(b"smdebug/statistics/gradients") + 120
    content[place : place + 8] = bytes(8 * [0xFF])
    file.write_bytes(bytes(content))
    seen = create_trial(str(tmp_path / "run")).observations.at(1)
    assert seen.statistics("gradients") is None
    assert list(seen.damaged) == ["statistics of gradients"]
    assert np.isfinite(seen.statistics("parameters").column("rms")).all()


def test_a_rule_goes_on_with_what_is_not_damaged(run, tmp_path):
    from smdebug_default_rules.catalog import CATALOG

    run.facts["gradients_were_reset"] = False
    run.write(steps=2)
    run.hook.close()
    (file,) = (tmp_path / "run" / "events").rglob("*1_worker_0.tfevents")
    content = bytearray(file.read_bytes())
    place = content.index(b"smdebug/statistics/gradients") + 120
    content[place : place + 8] = bytes(8 * [0xFF])
    file.write_bytes(bytes(content))
    trial = create_trial(str(tmp_path / "run"))
    found = {name for name, entry in CATALOG.items() if findings_of(entry.load()(trial), [1])}
    assert found == {"GradientsNotReset"}
