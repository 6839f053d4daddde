"""Trainings with TRL and PEFT as they are, watched by the callback and from one line on."""

import pytest
import torch
from peft import (
    AdaLoraConfig,
    IA3Config,
    LoraConfig,
    PromptTuningConfig,
    get_peft_model,
)
from trl import (
    DPOConfig,
    DPOTrainer,
    GRPOConfig,
    GRPOTrainer,
    RewardConfig,
    RewardTrainer,
    SFTConfig,
    SFTTrainer,
)
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

import smdebug
from smdebug import modes
from smdebug.huggingface import Callback
from smdebug.trials import create_trial
from smdebug_default_rules.catalog import CATALOG
from tests.frameworks.huggingface import tiny_language
from tests.smdebug_default_rules.made_runs import findings_of

STEPS = 12
WAYS = ("callback", "start")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return tiny_language.saved_model(tmp_path_factory.mktemp("model"))


def lora(**options):
    chosen = {"r": 4, "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM", **options}
    return LoraConfig(**chosen)


def trained(folder, way, kind, config, model, *, columns=(), **options):
    """Train some steps, watched in one of two ways; return the trial of the run."""
    place, steps = str(folder / "run"), config.pop("steps", STEPS)
    arguments = {
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
        "bf16": False,
        "fp16": False,
        "save_strategy": "no",
        "per_device_train_batch_size": 8,
        "max_steps": steps,
        "learning_rate": 1e-3,
        "logging_steps": 1,
        **config,
    }
    made = arguments.pop("made_by")(str(folder / "checkpoints"), **arguments)
    data = tiny_language.texts(steps * 8)
    data = data.select_columns([name for name in data.column_names if name in ("prompt", *columns)])
    watched = None
    if way == "callback":
        watched = Callback(place)
        options["callbacks"] = [watched]
    elif way == "start":
        watched = smdebug.start(place)
    torch.manual_seed(0)
    given = {"processing_class": tiny_language.tokenizer(), "train_dataset": data, **options}
    try:
        kind(model, args=made, **given).train()
    finally:
        if watched is not None:
            watched.close() if way == "callback" else watched.stop()
    return None if watched is None else create_trial(place)


def fine_tuned(folder, way, *, config=None, model=None, **options):
    config = {"made_by": SFTConfig, "max_length": 32, **(config or {})}
    model = model or tiny_language.language_model()
    return trained(folder, way, SFTTrainer, config, model, columns=("completion",), **options)


def preferring(folder, way, model, *, kind=DPOTrainer, config=None, **options):
    config = {"made_by": DPOConfig, "max_length": 32, **(config or {})}
    return trained(folder, way, kind, config, model, columns=("chosen", "rejected"), **options)


def rewarded(folder, way, model, reward, *, config=None, **options):
    config = {
        "made_by": GRPOConfig,
        "num_generations": 4,
        "max_completion_length": 6,
        "beta": 0.04,
        **(config or {}),
    }
    return trained(folder, way, GRPOTrainer, config, model, reward_funcs=reward, **options)


def low_words(completions, **others):
    return [sum(word in tiny_language.WORDS[:20] for word in text.split()) / 6 for text in completions]


def problems(trial):
    """The titles of what the default rules find, or else the causes."""
    return {
        finding.title or finding.cause
        for entry in CATALOG.values()
        for _, finding in findings_of(entry.load()(trial), trial.steps())
    }


def logged(trial):
    return {name.removeprefix("scalar/") for name in trial.observations.series_names()}


def assert_each_update_is_a_step(trial, steps=STEPS):
    assert trial.steps(modes.EVAL) == []
    assert trial.steps(modes.TRAIN)[-1] == steps - 1
    assert list(trial.series("loss").steps) == list(range(steps))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("adapts", [True, False])
def test_supervised_fine_tuning_is_healthy_and_its_labels_are_known(tmp_path, way, adapts):
    trial = fine_tuned(tmp_path, way, peft_config=lora() if adapts else None)
    assert problems(trial) == set()
    assert_each_update_is_a_step(trial)
    loss = trial.facts(3, modes.TRAIN)["loss"]
    assert loss["tokens"]["equal"] == [0.0, 1.0, 0.0]
    (term,) = loss["terms"]
    assert 0.4 < term["ignored"] < 0.9  # prompts and padding
    assert term["classes"] == tiny_language.SIZES["vocab_size"]
    mean = loss["value"] / loss["factor"] / term["targets"]
    assert mean == pytest.approx(4.2, abs=0.3)  # ln(65), and it learns


def test_accumulated_batches_of_fine_tuning_are_one_step(tmp_path):
    config = {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 4}
    trial = fine_tuned(tmp_path, "start", config=config, peft_config=lora())
    assert problems(trial) == set()
    assert_each_update_is_a_step(trial)
    assert trial.facts(3, modes.TRAIN)["backward_passes"] == 2


def test_adapters_of_which_a_rate_that_warms_up_changes_nothing_at_first_are_healthy(tmp_path):
    trial = fine_tuned(tmp_path, "start", config={"warmup_steps": 6}, peft_config=lora())
    assert problems(trial) == set()


def test_an_evaluation_of_a_fused_head_has_its_loss(tmp_path):
    config = {"eval_strategy": "steps", "eval_steps": 4}
    data = tiny_language.texts(16).select_columns(["prompt", "completion"])
    trial = fine_tuned(tmp_path, "start", config=config, eval_dataset=data)
    assert problems(trial) == set()
    losses = trial.series("loss")
    assert list(losses.of(modes.TRAIN).steps) == list(range(STEPS))
    assert list(losses.of(modes.EVAL).steps) == [3, 7, 11]
    assert max(losses.of(modes.EVAL).values) < 4.3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("adapts", [True, False])
def test_preferences_are_healthy_whatever_gives_the_reference(tmp_path, way, adapts, saved):
    trial = preferring(tmp_path, way, saved, peft_config=lora() if adapts else None)
    assert problems(trial) == set()
    assert_each_update_is_a_step(trial)
    assert trial.facts(3, modes.TRAIN)["loss"]["terms"] == []  # no cross entropy of its labels
    if way == "callback":
        assert {"rewards/margins", "rewards/accuracies"} <= logged(trial)


@pytest.mark.parametrize(("way", "adapts"), [("callback", False), ("start", False), ("start", True)])
def test_a_policy_is_healthy_and_its_generation_is_no_step(tmp_path, way, adapts, saved):
    trial = rewarded(tmp_path, way, saved, low_words, peft_config=lora() if adapts else None)
    assert problems(trial) == set()
    assert_each_update_is_a_step(trial)
    if way == "callback":
        assert {"reward", "kl", "entropy", "completions/mean_length"} <= logged(trial)


def test_completions_that_serve_several_updates_are_steps_each(tmp_path, saved):
    config = {"num_iterations": 2, "steps_per_generation": 2}
    trial = rewarded(tmp_path, "start", saved, low_words, config=config)
    assert problems(trial) == set()
    assert_each_update_is_a_step(trial)


@pytest.mark.parametrize("way", WAYS)
def test_a_reward_model_is_healthy(tmp_path, way):
    config = {"made_by": RewardConfig, "max_length": 32}
    columns = ("chosen", "rejected")
    trial = trained(tmp_path, way, RewardTrainer, config, tiny_language.judge(), columns=columns)
    assert problems(trial) == set()
    assert_each_update_is_a_step(trial)


PLACES = {"task_type": "CAUSAL_LM", "target_modules": ["q_proj", "v_proj"]}
VARIANTS = {
    "DoRA": {"peft_config": lora(use_dora=True)},
    "a scale of its rank's root": {"peft_config": lora(use_rslora=True)},
    "a head that is trained, too": {"peft_config": lora(modules_to_save=["lm_head"])},
    "AdaLoRA": {
        "peft_config": AdaLoraConfig(**PLACES, init_r=4, target_r=2, tinit=2, tfinal=2, total_step=STEPS)
    },
    "IA3": {
        "peft_config": IA3Config(
            task_type="CAUSAL_LM",
            target_modules=["k_proj", "v_proj", "down_proj"],
            feedforward_modules=["down_proj"],
        ),
        "config": {"learning_rate": 1e-2},
    },
    "a prompt": {
        "peft_config": PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
        "config": {"learning_rate": 1e-2},
    },
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_else_peft_attaches_is_healthy(tmp_path, variant):
    trial = fine_tuned(tmp_path, "start", **VARIANTS[variant])
    assert problems(trial) == set()
    assert_each_update_is_a_step(trial)
    assert trial.facts(3, modes.TRAIN)["loss"]["tokens"]["equal"] == [0.0, 1.0, 0.0]


def test_adapters_that_take_turns_are_healthy(tmp_path):
    names = [f"adapter{number}" for number in range(4)]
    model = get_peft_model(tiny_language.language_model(), lora(), adapter_name=names[0])
    for name in names[1:]:
        model.add_adapter(name, lora())
    vocabulary, data = tiny_language.tokenizer(), tiny_language.texts(8 * STEPS)
    place = str(tmp_path / "run")
    with smdebug.start(place):
        optimizer = torch.optim.AdamW([p for name, p in model.named_parameters() if "lora" in name], 1e-3)
        for step in range(STEPS):
            model.set_adapter(names[step // 2 % 4])
            rows = [row["prompt"] + row["completion"] for row in data.select(range(8 * step, 8 * step + 8))]
            given = vocabulary(rows, padding=True, return_tensors="pt", return_token_type_ids=False)
            labels = given["input_ids"].masked_fill(given["attention_mask"] == 0, -100)
            optimizer.zero_grad()
            model(**given, labels=labels).loss.backward()
            optimizer.step()
    trial = create_trial(place)
    assert problems(trial) == set()
    assert_each_update_is_a_step(trial)


def test_an_optimizer_that_was_made_before_the_adapters_is_found(tmp_path):
    model = tiny_language.language_model()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    trial = fine_tuned(tmp_path, "callback", model=model, peft_config=lora(), optimizers=(optimizer, None))
    assert "Adapters belong to no optimizer" in problems(trial)


def test_adapters_whose_second_matrix_is_frozen_are_found(tmp_path):
    class Frozen(SFTTrainer):
        def create_optimizer(self, *arguments):
            for name, parameter in self.model.named_parameters():
                if "lora_B" in name:
                    parameter.requires_grad_(False)
            return super().create_optimizer(*arguments)

    config = {"made_by": SFTConfig, "max_length": 32}
    model, columns = tiny_language.language_model(), ("completion",)
    trial = trained(tmp_path, "start", Frozen, config, model, columns=columns, peft_config=lora())
    assert "Adapters stay zero" in problems(trial)


def test_labels_that_a_collator_masks_are_found(tmp_path):
    class Masking(DataCollatorForLanguageModeling):
        def torch_call(self, examples):
            batch = super().torch_call(examples)
            return {**batch, "labels": torch.full_like(batch["labels"], -100)}

    trial = fine_tuned(tmp_path, "start", data_collator=Masking(pad_token_id=0))
    assert "All labels are ignored" in problems(trial)


def test_preferences_that_the_loss_exchanges_are_found(tmp_path, saved):
    class Exchanging(DPOTrainer):
        def compute_loss(self, *arguments, **options):
            loss = super().compute_loss(*arguments, **options)
            return (-loss[0], *loss[1:]) if isinstance(loss, tuple) else -loss

    config = {"learning_rate": 5e-3, "steps": 20}
    trial = preferring(tmp_path, "callback", saved, kind=Exchanging, config=config)
    assert "The policy learns to prefer rejected completions" in problems(trial)


def test_rewards_that_are_all_equal_are_found(tmp_path, saved):
    def same(completions, **others):
        return [0.0] * len(completions)

    trial = rewarded(tmp_path, "callback", saved, same, config={"beta": 0.0})
    assert problems(trial) == {"no advantage"}


@pytest.mark.parametrize("way", WAYS)
def test_weights_are_the_same_as_of_a_training_that_is_not_watched(tmp_path, way):
    models = {each: tiny_language.language_model() for each in (way, "alone")}
    for each, model in models.items():
        fine_tuned(tmp_path / each, each, model=model, config={"steps": 3})
    watched, alone = (model.state_dict() for model in models.values())
    assert all(torch.equal(watched[name], alone[name]) for name in alone)
