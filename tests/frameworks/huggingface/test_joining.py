"""`smdebug.start` before transformers' Trainer: the callback joins by itself, and records nothing twice."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

import smdebug
from smdebug import modes
from smdebug.exceptions import TrainingStopped
from smdebug.files.names import EPOCHS
from smdebug.huggingface import Callback
from smdebug.huggingface.joined import Joined
from smdebug.runs.metrics import measured_sizes
from smdebug.trials import create_trial
from tests.frameworks.huggingface.test_callback import Texts, small_model, train


@pytest.fixture
def place(tmp_path):
    return tmp_path / "run"


def watched(place, tmp_path, *given, **how):
    with smdebug.start(place) as watching:
        trainer = train(tmp_path, *given, **how)
    assert watching.runs == [str(place)]
    return create_trial(place), trainer


def test_what_the_trainer_logs_is_kept_at_the_step_that_it_is_of(place, tmp_path):
    trial, trainer = watched(place, tmp_path, steps=12, eval_strategy="steps", eval_steps=4)
    history = trainer.state.log_history
    kept = {"grad_norm": "grad_norm", "learning_rate": "learning_rate/0/0", "eval_loss": "eval_loss"}
    for name, kept_as in kept.items():
        logged = [(entry["step"] - 1, entry[name]) for entry in history if name in entry]
        series = trial.series(kept_as)
        assert series.steps.tolist() == [step for step, _ in logged]
        np.testing.assert_allclose(series.values, [value for _, value in logged], rtol=1e-6)
    assert len(trial.series("logged/loss")) == 12
    assert "learning_rate" not in trial.observations.series_names()  # it is measured
    assert trial.series("loss").of(modes.TRAIN).steps.tolist() == list(range(12))
    assert trial.series(EPOCHS).steps.tolist() == [0, 8]  # sixteen texts, two in a batch
    assert trial.series("train_loss").of(modes.TRAIN).steps.tolist() == [11]  # after the last evaluation


def test_the_loss_of_an_evaluation_is_the_one_that_the_trainer_gives(place, tmp_path):
    trial, trainer = watched(place, tmp_path, steps=4, evaluate=True)
    (given,) = [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]
    assert trial.series("loss").of(modes.EVAL).values.tolist() == pytest.approx([given])


def test_a_step_after_an_evaluation_with_batches_of_another_size_can_be_read(place, tmp_path):
    trial, _ = watched(place, tmp_path, steps=6, eval_strategy="steps", eval_steps=3)
    evaluations = [step for step in trial.steps() if trial.mode(step) is modes.EVAL]
    assert evaluations == [3, 6]  # after steps 2 and 5, which are saved as well
    batches = [trial.facts(step)["shapes"][0][0] for step in trial.steps()]
    assert batches == [8 if step in evaluations else 2 for step in trial.steps()]


def test_arguments_are_configuration_and_fact_without_secrets(place, tmp_path):
    trial, _ = watched(place, tmp_path, weight_decay=0.25, hub_token="hidden")
    assert (trial.origin.config["weight_decay"], trial.origin.config["model.n_embd"]) == (0.25, 8)
    assert trial.facts(2, modes.TRAIN)["arguments"]["max_steps"] == 3
    assert "hidden" not in (place / "origin.json").read_text(encoding="utf-8")


def test_a_step_with_accumulated_batches_has_the_samples_and_tokens_of_all(place, tmp_path):
    trial, _ = watched(place, tmp_path, steps=8, gradient_accumulation_steps=3)
    sizes = measured_sizes(trial)
    assert sizes["batch_size"] == 6
    assert sizes["tokens_per_second"] == pytest.approx(6 * sizes["samples_per_second"])  # texts of six tokens


def test_checkpoints_are_marked_with_the_step_before_them(place, tmp_path):
    trial, _ = watched(place, tmp_path, steps=6, save_strategy="steps", save_steps=3)
    marked = [(item.step, Path(item.path).name) for item in trial.checkpoints()]
    assert marked == [(2, "checkpoint-3"), (5, "checkpoint-6")]


def test_a_joined_training_has_the_same_results(place, tmp_path):
    _, joined = watched(place, tmp_path, steps=12, gradient_accumulation_steps=2)
    alone = train(tmp_path, steps=12, gradient_accumulation_steps=2)
    state = alone.model.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in joined.model.state_dict().items())


@pytest.mark.parametrize("added", ["given", "added later"])
def test_a_callback_that_a_person_gives_wins_and_nothing_is_recorded_twice(place, tmp_path, added, caplog):
    callback = Callback(str(tmp_path / "mine"))
    with smdebug.start(place) as watching:
        trainer = train(tmp_path, callback if added == "given" else None, steps=0)
        if added == "added later":
            trainer.add_callback(callback)
        trainer.args.max_steps = 4
        trainer.train()
        trainer.evaluate()
    callback.close()
    trial = create_trial(tmp_path / "mine")
    assert watching.runs == []
    assert not place.exists()
    assert len(trial.series("loss").of(modes.TRAIN)) == len(trial.series("grad_norm")) == 4
    assert len(trial.series("eval_loss")) == 1
    assert "no training" not in caplog.text
    with smdebug.start(tmp_path / "another"):
        pass
    assert "no training" in caplog.text


def test_a_callback_beside_an_earlier_trainer_that_was_joined_tells_its_own_run_alone(place, tmp_path):
    callback = Callback(str(tmp_path / "mine"))
    with smdebug.start(place):
        train(tmp_path, steps=3)
        second = train(tmp_path, steps=0)
        second.add_callback(callback)
        second.args.max_steps = 5
        second.train()
    callback.close()
    assert len(create_trial(place).series("grad_norm")) == 3
    assert len(create_trial(tmp_path / "mine").series("grad_norm")) == 5


def test_what_is_trained_after_a_closed_callback_is_watched(place, tmp_path):
    with smdebug.start(place) as watching:
        callback = Callback(str(tmp_path / "mine"))
        train(tmp_path, callback)
        callback.close()
        train(tmp_path, steps=5)
    assert watching.runs == [str(place)]
    assert len(create_trial(place).series("grad_norm")) == 5


def test_each_of_two_trainers_is_watched_from_its_first_step_on(place, tmp_path):
    with smdebug.start(place):
        first = train(tmp_path, steps=4)
        second = train(tmp_path, steps=3)
    trial = create_trial(place)
    logged = [
        entry["grad_norm"]
        for trainer in (first, second)
        for entry in trainer.state.log_history
        if "grad_norm" in entry
    ]
    assert trial.series("grad_norm").steps.tolist() == list(range(7))
    np.testing.assert_allclose(trial.series("grad_norm").values, logged, rtol=1e-6)
    assert trial.steps(modes.TRAIN) == list(range(7))


def test_an_evaluation_alone_is_no_training(place, tmp_path):
    with smdebug.start(place) as watching:
        trainer = train(tmp_path, steps=0, evaluate=True)
    assert watching.runs == []
    assert "eval_loss" in trainer.state.log_history[0]


def test_an_evaluation_before_the_training_is_kept_with_its_first_step(place, tmp_path):
    with smdebug.start(place):
        trainer = train(tmp_path, steps=0)
        trainer.evaluate()
        trainer.args.max_steps = 3
        trainer.train()
        trainer.evaluate()
    trial = create_trial(place)
    assert trial.series("eval_loss").steps.tolist() == [0, 2]
    assert trial.series("loss").of(modes.TRAIN).steps.tolist() == [0, 1, 2]


def test_a_training_that_is_resumed_by_the_trainer_is_watched(place, tmp_path):
    train(tmp_path, steps=4, save_strategy="steps", save_steps=4)
    with smdebug.start(place):
        trainer = train(tmp_path, steps=0)
        trainer.args.max_steps = 7
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoints" / "checkpoint-4"))
    assert trainer.state.global_step == 7
    trial = create_trial(place)
    assert trial.series("grad_norm").steps.tolist() == trial.steps(modes.TRAIN) == [4, 5, 6]


def test_a_run_of_a_resumed_training_begins_with_its_step_and_the_next_run_with_its_own(place, tmp_path):
    train(tmp_path, steps=4, save_strategy="steps", save_steps=4)
    with smdebug.start(place):
        trainer = train(tmp_path, steps=0)
        trainer.evaluate()
        trainer.args.max_steps, trainer.args.save_strategy, trainer.args.save_steps = 6, "steps", 6
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoints" / "checkpoint-4"))
        trainer.evaluate()
    with smdebug.start(tmp_path / "other"):
        train(tmp_path, steps=2)
    resumed, other = create_trial(place), create_trial(tmp_path / "other")
    assert resumed.series("loss").of(modes.TRAIN).steps.tolist() == [4, 5]
    assert resumed.series("loss").of(modes.EVAL).steps.tolist() == [5]
    assert resumed.series("eval_loss").steps.tolist() == [4, 5]
    assert [(item.step, Path(item.path).name) for item in resumed.checkpoints()] == [(5, "checkpoint-6")]
    assert other.series("loss").of(modes.TRAIN).steps.tolist() == [0, 1]


def test_a_run_that_is_resumed_with_its_training_goes_on_by_itself(place, tmp_path):
    for steps, how in ((4, {}), (7, {"if_finished": "resume"})):
        with smdebug.start(place, **how):
            trainer = train(tmp_path, steps=0)
            trainer.args.max_steps, trainer.args.save_strategy, trainer.args.save_steps = steps, "steps", 4
            last = str(tmp_path / "checkpoints" / "checkpoint-4")
            trainer.train(resume_from_checkpoint=last if how else None)
    assert create_trial(place).series("loss").of(modes.TRAIN).steps.tolist() == list(range(7))


def test_a_trainer_of_ones_own_with_its_own_callbacks_is_joined_once(place, tmp_path):
    class Own(TrainerCallback):
        ended = 0

        def on_step_end(self, args, state, control, **given):
            self.ended += 1

    class OwnTrainer(Trainer):
        def __init__(self, **given):
            super().__init__(**given, callbacks=[own])

    own = Own()
    with smdebug.start(place):
        made = train(tmp_path, steps=0)
        arguments = made.args
        arguments.max_steps = 3
        trainer = OwnTrainer(model=small_model(), args=arguments, train_dataset=Texts())
        trainer.train()
    assert own.ended == 3
    assert sum(isinstance(known, Joined) for known in trainer.callback_handler.callbacks) == 1
    assert len(create_trial(place).series("grad_norm")) == 3


def test_a_trainer_that_raises_leaves_the_steps_before_and_its_own_error(place, tmp_path):
    class Breaks(TrainerCallback):
        def on_step_end(self, args, state, control, **given):
            if state.global_step == 3:
                raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"), smdebug.start(place):
        train(tmp_path, Breaks(), steps=9)
    assert create_trial(place).series("loss").of(modes.TRAIN).steps.tolist() == [0, 1, 2]


def test_a_trainer_that_lacks_something_trains_on_and_that_is_said_once(place, tmp_path, monkeypatch, caplog):
    class Older(TrainerCallback):
        def on_train_begin(self, args, state, control, **given):
            monkeypatch.delattr(TrainingArguments, "to_sanitized_dict")

    trial, trainer = watched(place, tmp_path, Older(), steps=5)
    assert trainer.state.global_step == 5
    assert trial.series("loss").of(modes.TRAIN).steps.tolist() == list(range(5))
    assert len(trial.series("grad_norm")) == 5  # what it has is kept
    assert sum("arguments of the Trainer are not kept" in record.message for record in caplog.records) == 1


def test_asked_to_stop_the_trainer_saves_a_checkpoint_and_ends(place, tmp_path):
    class Asking(TrainerCallback):
        def on_step_end(self, args, state, control, **given):
            if state.global_step == 3:
                (place / "control").mkdir()
                (place / "control" / "stop").write_text('{"reason": "enough"}')

    with smdebug.start(place) as watching:
        watching._options["look_for_stop"] = 0  # seconds
        trainer = train(tmp_path, Asking(), steps=50)
    assert trainer.state.global_step < 7
    assert list((tmp_path / "checkpoints").glob("checkpoint-*"))
    assert create_trial(place).loaded_all_steps


def test_a_loop_of_ones_own_after_the_trainer_is_stopped_as_any_loop(place, tmp_path):
    with smdebug.start(place) as watching:
        watching._options["look_for_stop"] = 0  # seconds
        model = train(tmp_path, steps=2).model
        (place / "control").mkdir()
        (place / "control" / "stop").write_text('{"reason": "enough"}')
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with pytest.raises(TrainingStopped, match="enough"):
            for number in range(50):
                ids = Texts()[number % 16]["input_ids"][None]
                model(input_ids=ids, labels=ids).loss.backward()
                optimizer.step()
                optimizer.zero_grad()


def test_a_copy_of_the_trainer_tells_the_hook_of_its_own_process():
    assert isinstance(pickle.loads(pickle.dumps(Joined())), Joined)
