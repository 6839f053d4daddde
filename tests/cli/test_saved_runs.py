"""inspect, tensor, verify, evaluate, rules, compare, export: over folders and buckets."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import numpy as np
import pytest

import smdebug
from smdebug.files.names import END_MARKER, event_key, index_key
from smdebug.trials import create_trial
from tests.cli.conftest import ill_run
from tests.rules.made_runs import made_run

GOLDEN = Path(__file__).parents[1] / "golden" / "runs"
CUSTOM = """
from smdebug.rules import Finding, Rule

class LargeLoss(Rule):
    def __init__(self, base_trial, limit="1.5"):
        super().__init__(base_trial)
        self.limit = float(limit)

    def invoke_at_step(self, step):
        loss = self.base_trial.tensor("loss").reduction_value(step, "mean")
        if loss > self.limit:
            self.findings.append(Finding("loss", "mean", loss, self.limit))
        return bool(self.findings)

class Broken(LargeLoss):
    def invoke_at_step(self, step):
        raise KeyError("it has no such thing")
"""


def test_a_run_is_told_at_a_glance(ask, ill):
    said = ask("inspect", ill)
    assert said.code == 0
    assert "ended, 1 worker, 10 steps, 3 tensors" in said.out
    assert "TRAIN" in said.out
    assert "█▇" in said.out  # the course of the loss
    told = ask("inspect", ill, "--json").json
    assert told["steps"] == [{"mode": "TRAIN", "count": 10, "first": 0, "last": 90, "interval": 10}]
    (weight,) = [one for one in told["tensors"] if one["name"] == "fc.weight"]
    assert (weight["steps"], weight["last_step"], weight["latest"]["shape"]) == (10, 90, [2, 3])
    assert weight["latest"]["maximum"] == pytest.approx(91.0)
    assert told["collections"]["gradients"] == 1
    assert told["bytes"] == sum(
        (ill / event_key(step, "worker_0")).stat().st_size for step in range(0, 100, 10)
    )


def test_a_run_in_a_bucket_is_told_as_one_in_a_folder(ask, ill, bucket, tmp_path):
    ill_run(f"s3://{bucket}/runs/ill")
    far, near = (
        ask("inspect", f"s3://{bucket}/runs/ill", "--json").json,
        ask("inspect", ill, "--json").json,
    )
    for changing in ("path", "first_saved", "last_saved", "seconds_per_step"):
        far.pop(changing), near.pop(changing)
    assert far == near
    assert ask("verify", f"s3://{bucket}/runs/ill").code == 0
    page = tmp_path / "page.html"
    assert ask("report", f"s3://{bucket}/runs/ill", "--no-rules", "-o", page).code == 0
    assert f"s3://{bucket}/runs/ill" in page.read_text(encoding="utf-8")
    assert (
        ask("evaluate", f"s3://{bucket}/runs/ill", "--rule", "VanishingGradient", "-j", "1").code
        == 1
    )


@pytest.mark.parametrize("run", sorted(one.name for one in GOLDEN.iterdir() if one.is_dir()))
def test_runs_of_the_old_library_are_read_and_sound(ask, run):
    told = ask("inspect", GOLDEN / run, "--json").json
    trial = create_trial(str(GOLDEN / run))
    assert [one["name"] for one in told["tensors"]] == trial.tensor_names()
    assert sum(one["count"] for one in told["steps"]) == len(trial.steps())
    said = ask("verify", GOLDEN / run)
    assert said.code == 0
    assert "the old library wrote no checksum" in said.out


def test_a_folder_is_no_place_for_a_file_and_a_name_need_not_be_text(ask, ill, tmp_path):
    for words in (("report", ill), ("export", "npz", ill)):
        said = ask(*words, "-o", tmp_path)
        assert (said.code, f"{tmp_path}: Is a directory" in said.err) == (3, True)
        assert "add its name" in said.err
    assert sorted(one.name for one in tmp_path.iterdir()) == ["ill"]
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        shutil.copytree(ill, odd)
    except OSError:
        return  # a file system whose names are text
    assert ask("report", odd, "-o", tmp_path / "page.html").code == 1


def test_a_file_is_said_to_be_one(ask, ill):
    file = ill / index_key(20, "worker_0")
    for words in (("inspect",), ("verify",), ("tensor", "loss"), ("evaluate", "--rule", "all")):
        said = ask(words[0], file, *words[1:])
        assert (said.code, "that is a file." in said.err) == (3, True)
        assert "A run is the folder" in said.err


def test_a_place_without_a_run_says_what_is_there(ask, ill, tmp_path):
    said = ask("inspect", tmp_path)
    assert said.code == 3
    assert "but below it there are ill" in said.err
    assert said.err.count("\n") == 2  # an error, a hint, and no trace
    assert ask("inspect", tmp_path / "nothing").code == 3
    told = json.loads(ask("inspect", tmp_path / "nothing", "--json").err)
    assert (told["exit_code"], "does not exist" in told["error"]) == (3, True)


def test_a_tensor_is_told_over_its_steps_and_at_one(ask, ill):
    told = ask("tensor", ill, "gradient/fc", "--json").json
    assert [one["step"] for one in told["steps"]] == list(range(0, 100, 10))
    assert told["steps"][-1]["abs_mean"] == pytest.approx(1e-9)
    value = ask("tensor", ill, "fc.weight", "--step", 10, "--mode", "train", "--json").json["value"]
    assert np.allclose(value, np.linspace(-1, 1, 6).reshape(2, 3) + 10)
    assert len(ask("tensor", ill, "loss", "--last", 3, "--json").json["steps"]) == 3
    wrong = ask("tensor", ill, "gradient/fd")
    assert (wrong.code, "Did you mean gradient/fc?" in wrong.err) == (2, True)
    assert ask("tensor", ill, "loss", "--step", 11).code == 2


def test_what_is_not_finite_is_counted_and_told_as_json(ask, tmp_path):
    made_run({0: {"w": [1.0, np.nan, np.inf]}}, tmp_path / "run")
    (told,) = ask("inspect", tmp_path / "run", "--json").json["tensors"]
    assert (told["latest"]["nan"], told["latest"]["infinite"], told["latest"]["mean"]) == (
        1,
        1,
        1.0,
    )
    assert ask("tensor", tmp_path / "run", "w", "--step", 0, "--json").json["value"] == [
        1.0,
        "NaN",
        "Infinity",
    ]


def test_a_flipped_bit_is_found_by_verify_and_by_nothing_quicker(ask, ill):
    file = ill / event_key(20, "worker_0")
    data = bytearray(file.read_bytes())
    at = data.index(np.float32(1.8).tobytes())
    data[at] ^= 1
    file.write_bytes(data)
    said = ask("verify", ill, "--json")
    assert said.code == 1
    (problem,) = said.json["problems"]
    assert (problem["tensor"], problem["step"]) == ("loss", 20)
    assert ask("verify", ill, "--quick").code == 0
    file.write_bytes(data[:-9])
    assert ask("verify", ill, "--quick").code == 1


def test_every_kind_of_damage_is_told(ask, ill):
    (ill / event_key(30, "worker_0")).unlink()
    (ill / index_key(40, "worker_0")).write_text('{"meta": {}}')
    shutil.copy(ill / index_key(50, "worker_0"), ill / index_key(55, "worker_0"))
    (ill / index_key(60, "worker_0")).unlink()
    found = ask("verify", ill, "--json").json
    assert {one["step"] for one in found["problems"]} == {30, 40, 55, 60}
    assert "000000000060_worker_0.json is missing" in found["problems"][-1]["problem"]
    assert ask("inspect", ill).out.count("damaged: ") == 2


def test_a_run_without_all_its_collections_files_is_not_sound(ask, tmp_path):
    run = ill_run(tmp_path / "two", workers=2, steps=2)
    next(iter((tmp_path / "two" / "collections").rglob("worker_1*"))).unlink()
    said = ask("verify", run.storage.location)
    assert (said.code, "files of 1 workers, and the run has 2" in said.out) == (1, True)


def test_rules_tell_what_they_find_and_the_exit_code_does_too(ask, ill):
    said = ask("evaluate", ill, "--rule", "vanishinggradient")
    assert said.code == 1
    assert "found something at 6 of 10 steps, from step 40 to step 90" in said.out
    assert "step 40: gradient/fc: the mean of |gradient| is 1e-09, below 1e-07" in said.out
    well = ask("evaluate", ill, "--rule", "VanishingGradient", "--set", "threshold=1e-12")
    assert (well.code, "✓" in well.out) == (0, True)
    (result,) = ask("evaluate", ill, "--rule", "VanishingGradient", "--end-step", 60, "--json").json
    assert (result["status"], result["steps_found"]) == ("IssuesFound", [40, 50])


def test_several_processes_find_what_one_finds(ill):
    """LossNotDecreasing remembers steps, VanishingGradient does not: both come out the same."""
    from smdebug.runs.evaluating import evaluate

    rules = ["VanishingGradient", "LossNotDecreasing"]
    alone = evaluate(ill, rules, jobs=1)
    together = evaluate(ill, rules, jobs=2, worth_a_process=4)
    assert [one.processes for one in together] == [2, 1]
    for one, other in zip(alone, together, strict=True):
        assert one.to_dict() | {"seconds": 0, "processes": 0} == other.to_dict() | {
            "seconds": 0,
            "processes": 0,
        }


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_rule_is_asked_about_the_end_of_a_run_however_many_looked_at_it(ask, tmp_path, jobs):
    from smdebug.mode_keys import ModeKeys
    from tests.rules.made_runs import MadeRun

    run = MadeRun(tmp_path / "run")
    for step in range(40):
        mode = ModeKeys.TRAIN if step < 38 else ModeKeys.EVAL
        run.save(step, {"loss": np.float32(1 if step < 38 else 5)}, mode=mode)
    asked = ("evaluate", tmp_path / "run", "--rule", "Overfit", "-j", jobs)
    assert ask(*asked).code == 0  # it may go on
    run.end()
    said = ask(*asked)
    assert said.code == 1
    assert "found something at step 39, of 40 steps" in said.out
    assert "step 39: the validation loss, 5, is 400.0% above the training loss" in said.out
    assert ask(*asked, "--end-step", 39).code == 0


def test_a_rule_that_begins_to_remember_late_is_asked_in_order(ask, ill, tmp_path):
    """It is found out after processes have begun, and what they said of later steps does not count."""
    from smdebug.runs.evaluating import evaluate

    source = """
from smdebug.rules import Rule

class Counts(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.seen = 0

    def invoke_at_step(self, step):
        if step >= 50:
            self.seen += 1
        return self.seen >= 3
"""
    (tmp_path / "counts.py").write_text(source)
    (found,) = evaluate(ill, ["Counts"], file=tmp_path / "counts.py", jobs=2, worth_a_process=4)
    assert (found.processes, found.steps_found) == (2, (70, 80, 90))


def test_rules_come_from_a_file_of_their_own(ask, ill, tmp_path):
    (tmp_path / "own.py").write_text(CUSTOM)
    found = ask(
        "evaluate", ill, "--rule-file", tmp_path / "own.py", "--rule", "LargeLoss", "--json"
    )
    assert (found.code, found.json[0]["steps_found"]) == (1, [0, 10, 20, 30, 40])
    broken = ask("evaluate", ill, "--rule-file", tmp_path / "own.py", "--rule", "Broken")
    assert (broken.code, "Broken failed: KeyError at step 0" in broken.out) == (3, True)
    missing = ask("evaluate", ill, "--rule-file", tmp_path / "none.py")
    assert (missing.code, "There is no file" in missing.err) == (2, True)


def test_rules_come_from_a_rules_json(ask, ill, tmp_path):
    told = [
        {"RuleConfigurationName": "fc", "RuleParameters": {"rule_to_invoke": "VanishingGradient"}}
    ]
    (tmp_path / "rules.json").write_text(json.dumps({"DebugRuleConfigurations": told}))
    (named,) = ask("evaluate", ill, "--rules", tmp_path / "rules.json", "--json").json
    assert (named["name"], named["status"]) == ("fc", "IssuesFound")
    without = ask("evaluate", ill)
    assert (without.code, "has no rules.json" in without.err) == (2, True)
    shutil.copy(tmp_path / "rules.json", ill / "rules.json")
    assert ask("evaluate", ill).code == 1


def test_all_means_every_rule_that_needs_nothing(ask, ill):
    results = ask("evaluate", ill, "--rule", "all", "--json").json
    names = {one["rule"] for one in results}
    assert {"VanishingGradient", "LossNotDecreasing"} <= names
    assert "SimilarAcrossRuns" not in names


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rule", "VanishingGradients"], "Did you mean VanishingGradient?"),
        (["--rule", "VanishingGradient", "--set", "treshold=1"], "Did you mean threshold?"),
        (["--rule", "VanishingGradient", "--set", "threshold"], "takes NAME=VALUE"),
        (
            ["--rule", "VanishingGradient", "--rule", "AllZero", "--set", "threshold=1"],
            "Of which rule",
        ),
        (["--set", "threshold=1"], "which rule is meant"),
        (["--rule", "SimilarAcrossRuns"], "compares with another run"),
        (["--rule", "VanishingGradient", "--end-step", "x"], "not a valid"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_a_sentence(ask, ill, options, said):
    answer = ask("evaluate", ill, *options)
    assert answer.code == 2
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_a_rule_can_be_told_another_run(ask, ill, tmp_path):
    ill_run(tmp_path / "again")
    options = [
        "--rule",
        "SimilarAcrossRuns",
        "--set",
        "include=.*",
        "--other-run",
        tmp_path / "again",
    ]
    assert ask("evaluate", ill, *options).code == 0


def test_rules_are_listed_and_described(ask):
    names = [one["name"] for one in ask("rules", "--json").json]
    assert names[:1] == ["VanishingGradient"]
    said = ask("rules", "lossnotdecreasing")
    assert (said.code, "increase_threshold_percent" in said.out) == (0, True)
    assert "smdebug evaluate ./my-run --rule LossNotDecreasing" in said.out
    assert ask("rules", "Nope").code == 2


def test_two_runs_part_at_the_first_difference(ask, ill, tmp_path):
    shutil.copytree(ill, tmp_path / "same")
    assert ask("compare", ill, tmp_path / "same").code == 0
    made = {10 * at: {"loss": [2.0 - at / 10], "gradient/fc": [1.0]} for at in range(4)}
    made[20]["loss"] = [2.5]
    made_run(made, tmp_path / "other")
    made[20]["loss"] = [1.8]
    made_run({**made, 50: made[30]}, tmp_path / "longer")
    said = ask("compare", tmp_path / "other", tmp_path / "longer", "--json")
    assert said.code == 1
    told = said.json
    assert (told["first"]["step"], told["first"]["tensor"]) == (20, "loss")
    assert told["first"]["largest"] == pytest.approx(0.7)
    assert told["only_in_other"] == [50]
    assert told["collections"]["losses"]["different"] == 1
    assert (
        "they part at step 20, loss" in ask("compare", tmp_path / "other", tmp_path / "longer").out
    )
    loose = ask("compare", tmp_path / "other", tmp_path / "longer", "--rtol", 1, "--json").json
    assert loose["number_different"] == 0


def test_runs_of_several_workers_are_compared_worker_by_worker(ask, tmp_path):
    ill_run(tmp_path / "one", workers=2, steps=3)
    ill_run(tmp_path / "two", workers=2, steps=3)
    told = ask("compare", tmp_path / "one", tmp_path / "two", "--json").json
    assert (told["is_same"], told["compared"]) == (True, 3 * 3 * 2)


def test_exports_hold_the_values_of_the_run(ask, ill, tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    from safetensors.numpy import load_file

    trial = create_trial(str(ill))
    weight = trial.tensor("fc.weight").value(90)
    ask("export", "npz", ill, "--collection", "weights", "-o", tmp_path / "w.npz")
    assert np.array_equal(np.load(tmp_path / "w.npz")["fc.weight@90"], weight)
    ask("export", "safetensors", ill, "--step", 90, "-o", tmp_path / "w.safetensors")
    assert np.array_equal(load_file(tmp_path / "w.safetensors")["fc.weight"], weight)
    said = ask("export", "parquet", ill, "--values", "-o", tmp_path / "w.parquet", "--json")
    assert said.json["values"] == 30
    lines = pyarrow.read_table(tmp_path / "w.parquet").to_pylist()
    (line,) = [one for one in lines if one["tensor"] == "fc.weight" and one["step"] == 90]
    assert np.allclose(line["values"], weight.reshape(-1))
    assert line["maximum"] == pytest.approx(91)
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "ill",
        "w.npz",
        "w.parquet",
        "w.safetensors",
    ]


def test_tensorboard_itself_reads_what_is_exported(ask, ill, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert ask("export", "tensorboard", ill, "-o", tmp_path / "board").code == 0
    board = EventAccumulator(str(tmp_path / "board" / "TRAIN"))
    board.Reload()
    assert [(one.step, round(one.value, 3)) for one in board.Scalars("loss")][:2] == [
        (0, 2.0),
        (10, 1.9),
    ]
    assert {"fc.weight", "gradient/fc"} <= set(board.Tags()["histograms"])
    assert [one.name for one in (tmp_path / "board" / "TRAIN").iterdir()] == ["export.tfevents"]


def test_a_running_tensorboard_shows_what_is_exported(ask, ill, tmp_path):
    assert ask("export", "tensorboard", ill, "-o", tmp_path / "board").code == 0
    command = ["-W", "ignore", "-m", "tensorboard.main", "--logdir", str(tmp_path / "board")]
    with subprocess.Popen(
        [sys.executable, *command, "--port", "0", "--load_fast", "false"],
        stderr=subprocess.PIPE,
        text=True,
    ) as board:
        try:
            said = iter(board.stderr or ())
            address = next(found[0] for line in said if (found := re.search(r"http://\S+/", line)))

            def shown(query: str) -> Any:
                with direct.open(f"{address}data/plugin/{query}") as answer:
                    return json.load(answer)

            direct = build_opener(ProxyHandler({}))  # whatever proxy this machine has
            while not shown("scalars/tags"):
                time.sleep(0.1)
            points = shown("scalars/scalars?run=TRAIN&tag=loss")
            assert [(step, round(value, 3)) for _, step, value in points] == [
                (step, round(2 - step / 100, 3)) for step in range(0, 100, 10)
            ]
            assert {"fc.weight", "gradient/fc"} <= set(shown("histograms/tags")["TRAIN"])
            assert len(shown("histograms/histograms?run=TRAIN&tag=fc.weight")) == 10
        finally:
            board.kill()


def test_an_export_without_a_tensor_leaves_no_file(ask, ill, tmp_path):
    said = ask("export", "npz", ill, "--tensors", "nope", "-o", tmp_path / "none.npz")
    assert (said.code, "nothing to export" in said.err) == (2, True)
    assert not (tmp_path / "none.npz").exists()
    assert ask("export", "npz", ill, "--step", 11, "-o", tmp_path / "none.npz").code == 2
    assert [one.name for one in tmp_path.iterdir()] == ["ill"]


def test_a_process_that_dies_is_told_and_not_waited_for(ask, ill, tmp_path):
    source = """
import os
import smdebug
from smdebug.rules import Rule

class Kills(Rule):
    def invoke_at_step(self, step):
        if step >= 60:
            os._exit(9)
        return False
"""
    (tmp_path / "kills.py").write_text(source)
    from smdebug.exceptions import SMDebugRuntimeError
    from smdebug.runs.evaluating import evaluate

    with pytest.raises(SMDebugRuntimeError, match="has died; there may be too little memory"):
        evaluate(ill, ["Kills"], file=tmp_path / "kills.py", jobs=2, worth_a_process=2)


def _flip_a_bit(ill: Path) -> None:
    """In the loss of step 20."""
    file = ill / event_key(20, "worker_0")
    data = bytearray(file.read_bytes())
    data[data.index(np.float32(1.8).tobytes())] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("form", ["npz", "safetensors", "parquet", "tensorboard"])
def test_an_export_of_what_is_damaged_is_not_silently_smaller(ask, ill, tmp_path, form):
    _flip_a_bit(ill)
    said = ask("export", form, ill, "-o", tmp_path / "out")
    assert (said.code, "is damaged" in said.err, "smdebug verify" in said.err) == (3, True, True)
    assert not [one for one in tmp_path.glob("out/**/*") if one.is_file()]
    assert not (tmp_path / "out").is_file()
    assert ask("export", form, ill, "--step", 30, "-o", tmp_path / "out").code == 0


def test_what_is_damaged_is_not_the_same_as_what_is_not(ask, ill, tmp_path):
    shutil.copytree(ill, tmp_path / "whole")
    _flip_a_bit(ill)
    for pair in ((ill, tmp_path / "whole"), (tmp_path / "whole", ill)):
        said = ask("compare", *pair)
        assert (said.code, "Tensor loss in events" in said.err) == (3, True)


def test_a_value_and_a_reduction_are_not_called_the_same(ask, tmp_path):
    reduced = smdebug.ReductionConfig(reductions=["mean"])
    shapes = smdebug.ReductionConfig(save_shape=True)
    for name, reduction in (("whole", None), ("reduced", reduced), ("shapes", shapes)):
        options = {"include_collections": ["gradients"], "reduction_config": reduction}
        with smdebug.Hook(str(tmp_path / name), **options) as hook, hook.step():
            hook.record("gradient/fc", np.ones(3))
    said = ask("compare", tmp_path / "whole", tmp_path / "reduced")
    assert (said.code, "neither its value nor a reduction" in said.out) == (1, True)
    shapes_alone = ask("compare", tmp_path / "shapes", tmp_path / "shapes", "--json").json
    assert (shapes_alone["is_same"], shapes_alone["compared"]) == (True, 0)


def test_steps_that_are_left_out_since_they_cannot_be_read_are_told(ask, ill):
    (ill / index_key(40, "worker_0")).write_text("")
    said = ask("evaluate", ill, "--rule", "ExplodingTensor", "--json")
    assert (said.code, said.json[0]["looked"]) == (3, 9)
    (left_out,) = said.json[0]["left_out"]
    assert (left_out["file"], left_out["step"]) == (index_key(40, "worker_0"), 40)
    assert "1 index file cannot be read" in said.err
    assert f"smdebug verify {ill}" in said.err
    assert ask("inspect", ill).err == ""


GONE = event_key(30, "worker_0")
MISSING = f"1 event file is missing, and what belongs to it is left out: {GONE} (step 30, worker_0)"


@pytest.fixture
def with_a_gap(ill: Path, tmp_path: Path) -> Path:
    """The run without the event file of step 30; `whole` beside it has that."""
    shutil.copytree(ill, tmp_path / "whole")
    (ill / GONE).unlink()
    return ill


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("compare", "{}/ill", "{}/ill"), 3),
        (("compare", "{}/ill", "{}/whole"), 1),
        (("compare", "{}/whole", "{}/ill"), 1),
        (("export", "npz", "{}/ill", "-o", "{}/out"), 3),
        (("export", "safetensors", "{}/ill", "-o", "{}/out"), 3),
        (("export", "parquet", "{}/ill", "-o", "{}/out"), 3),
        (("export", "tensorboard", "{}/ill", "-o", "{}/out"), 3),
        (("evaluate", "{}/ill", "--rule", "ExplodingTensor"), 3),
        (("evaluate", "{}/ill", "--rule", "VanishingGradient"), 1),
        (("evaluate", "{}/whole", "--rule", "SimilarAcrossRuns", "--other-run", "{}/ill"), 3),
        (("report", "{}/ill", "--no-rules", "-o", "{}/out"), 3),
        (("report", "{}/whole", "--no-rules", "--compare", "{}/ill", "-o", "{}/out"), 3),
        (("plot", "{}/ill", "--tensor", "loss", "-o", "{}/out.png"), 3),
        (("tensor", "{}/ill", "loss"), 0),
    ],
)
def test_an_event_file_that_is_gone_is_told_and_all_is_not_well(
    ask, with_a_gap, tmp_path, words, code
):
    said = ask(*(word.format(tmp_path) for word in words), "--json")
    assert (said.code, MISSING in said.err) == (code, True)
    assert f"smdebug verify {with_a_gap}" in said.err
    told = said.json[0] if words[0] == "evaluate" else said.json
    gap = told["left_out"][0]
    assert (gap["run"], gap["file"]) == (str(with_a_gap), GONE)
    assert (gap["step"], gap["worker"]) == (30, "worker_0")


def test_an_event_file_that_is_gone_is_told_in_the_place_of_its_values(ask, with_a_gap, tmp_path):
    first, other = with_a_gap, tmp_path / "whole"
    assert "the event file of the first run is missing" in ask("compare", first, other).out
    assert "the event file of the second run is missing" in ask("compare", other, first).out
    assert ask("tensor", first, "loss").out.count("its event file is missing") == 1
    said = ask("tensor", first, "loss", "--step", 30)
    assert (said.code, GONE in said.err, "all files were copied" in said.err) == (3, True, True)
    assert f"damaged: {GONE}" in ask("inspect", first).out
    assert GONE in ask("inspect", first, "--json").json["damaged"]
    page = tmp_path / "page.html"
    ask("report", first, "--no-rules", "-o", page)
    assert GONE in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ("export", "npz", "{}/ill", "--step", "40", "-o", "{}/out"),
        ("evaluate", "{}/ill", "--rule", "ExplodingTensor", "--start-step", "40"),
        ("evaluate", "{}/ill", "--rule", "ExplodingTensor", "--end-step", "30"),
        ("tensor", "{}/two", "loss", "--worker", "worker_1"),
    ],
)
def test_an_event_file_that_was_not_asked_for_may_be_gone(ask, with_a_gap, tmp_path, words):
    ill_run(tmp_path / "two", workers=2)
    (tmp_path / "two" / GONE).unlink()
    said = ask(*(word.format(tmp_path) for word in words))
    assert (said.code, said.err) == (0, "")


def test_reductions_whose_event_file_is_gone_are_told_as_that(ask, tmp_path):
    reduced = smdebug.ReductionConfig(reductions=["mean"])
    options = {"include_collections": ["gradients"], "reduction_config": reduced}
    every = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(str(tmp_path / "run"), save_config=every, **options) as hook:
        for _ in range(2):
            with hook.step():
                hook.record("gradient/fc", np.ones(3))
    (tmp_path / "run" / event_key(1, "worker_0")).unlink()
    shutil.copytree(tmp_path / "run", tmp_path / "same")
    assert ask("inspect", tmp_path / "run").out.count("damaged: ") == 1
    assert "its event file is missing" in ask("tensor", tmp_path / "run", "gradient/fc").out
    said = ask("compare", tmp_path / "run", tmp_path / "same", "--json")
    assert (said.code, said.json["compared"], len(said.json["left_out"])) == (3, 1, 2)


def test_a_tensor_that_is_damaged_is_told_as_that(ask, ill):
    _flip_a_bit(ill)
    said = ask("tensor", ill, "loss")
    assert (said.code, said.out.count("damaged")) == (0, 1)
    steps = ask("tensor", ill, "loss", "--json").json["steps"]
    assert [one["step"] for one in steps if "problem" in one] == [20]
    assert ask("tensor", ill, "loss", "--step", 20).code == 3
    for index in (ill / "index").rglob("*.json"):
        if int(index.name[:12]) > 20:
            index.unlink()
    assert "damaged: " in ask("inspect", ill).out


def test_a_worker_that_is_not_there_is_told_with_those_that_are(ask, ill, tmp_path):
    said = ask("tensor", ill, "loss", "--worker", "worker_7")
    assert (said.code, "worker_0" in said.err) == (2, True)
    said = ask("export", "npz", ill, "--worker", "worker_7", "-o", tmp_path / "out.npz")
    assert (said.code, (tmp_path / "out.npz").exists()) == (2, False)


@pytest.mark.parametrize("form", ["npz", "safetensors", "parquet", "tensorboard"])
def test_an_export_of_reductions_alone_is_refused_by_every_form(ask, tmp_path, form):
    reduced = smdebug.ReductionConfig(reductions=["mean"])
    options = {"include_collections": ["gradients"], "reduction_config": reduced}
    with smdebug.Hook(str(tmp_path / "run"), **options) as hook, hook.step():
        hook.record("gradient/fc", np.ones(3))
    said = ask("export", form, tmp_path / "run", "-o", tmp_path / "out")
    assert (said.code, "has a value" in said.err, (tmp_path / "out").exists()) == (2, True, False)


def test_an_export_of_a_run_that_saved_nothing_says_so(ask, tmp_path):
    with smdebug.Hook(str(tmp_path / "run")):
        pass
    said = ask("export", "npz", tmp_path / "run", "-o", tmp_path / "out.npz")
    assert (said.code, "has saved no tensor: there is nothing to export" in said.err) == (2, True)


def test_a_rule_that_exits_has_failed_and_a_file_that_does_cannot_be_loaded(ask, ill, tmp_path):
    (tmp_path / "exits.py").write_text(
        "import sys\nfrom smdebug.rules import Rule\n"
        "class Exits(Rule):\n    def invoke_at_step(self, step):\n        sys.exit(0)\n"
    )
    said = ask("evaluate", ill, "--rule-file", tmp_path / "exits.py")
    assert (said.code, "Exits failed: SystemExit at step 0" in said.out) == (3, True)
    (tmp_path / "gone.py").write_text("import sys\nsys.exit(0)\n")
    said = ask("evaluate", ill, "--rule-file", tmp_path / "gone.py")
    assert (said.code, "gone.py cannot be loaded: SystemExit" in said.err) == (2, True)


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_rule_prints_is_not_in_the_document(ill, tmp_path, jobs):
    (tmp_path / "prints.py").write_text(
        "from smdebug.rules import Rule\nprint('loaded')\n"
        "class Prints(Rule):\n    def invoke_at_step(self, step):\n        print('at', step)\n"
    )
    script = (
        "import sys\nfrom smdebug.runs import evaluating\n"
        "if __name__ == '__main__':\n"
        "    evaluating.evaluate.__kwdefaults__['worth_a_process'] = 2\n"
        "    from smdebug.cli.main import main\n"
        f"    sys.exit(main(['evaluate', {str(ill)!r}, '--rule-file', "
        f"{str(tmp_path / 'prints.py')!r}, '--json', '-j', '{jobs}']))\n"
    )
    (tmp_path / "asks.py").write_text(script)
    said = subprocess.run(
        [sys.executable, tmp_path / "asks.py"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    (result,) = json.loads(said.stdout)
    assert (result["looked"], result["processes"]) == (10, jobs)
    assert {"loaded", "at 0", "at 90"} <= set(said.stderr.splitlines())


def test_the_last_step_of_a_worker_that_died_is_no_damage_and_a_lost_index_file_is(ask, tmp_path):
    run = ill_run(tmp_path / "two", workers=2, steps=3)
    (tmp_path / "two" / index_key(20, "worker_1")).unlink()
    found = ask("verify", run.storage.location, "--json")
    assert found.code == 0
    assert any("its worker stopped" in one["problem"] for one in found.json["notes"])
    (tmp_path / "two" / index_key(10, "worker_0")).unlink()
    (problem,) = ask("verify", run.storage.location, "--json").json["problems"]
    assert (problem["step"], "worker_0.json is missing" in problem["problem"]) == (10, True)


def attempt(place: Path, steps: int, *, first: int = 0, crashes: bool = False) -> None:
    """A training that saves each of these steps, and at the last one dies before the index file is there."""
    every = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(str(place), save_config=every) as hook:
        for step in range(first + steps):
            with hook.step():
                if step >= first:
                    hook.record("loss", 1.0)
    if crashes:
        (place / index_key(first + steps - 1, "worker_0")).unlink()
        (place / END_MARKER).unlink()


def test_a_step_that_was_never_committed_is_no_damage(ask, tmp_path):
    attempt(tmp_path / "run", 3, crashes=True)
    assert ask("verify", tmp_path / "run").code == 0
    attempt(tmp_path / "run", 3, first=3)
    found = ask("verify", tmp_path / "run", "--json")
    assert (found.code, found.json["is_sound"]) == (0, True)
    (note,) = found.json["notes"]
    assert (note["step"], note["harmless"]) == (2, True)
    assert "the training was interrupted there and went on at step 3, or" in note["problem"]


def test_a_step_that_a_process_went_on_without_is_no_damage(ask, tmp_path):
    attempt(tmp_path / "run", 2)
    (tmp_path / "run" / END_MARKER).unlink()
    attempt(tmp_path / "run", 2, first=5)
    uncommitted = tmp_path / "run" / event_key(1, "worker_0")
    for step in (3, 7):  # the second after all that was committed
        place = tmp_path / "run" / event_key(step, "worker_0")
        place.parent.mkdir()
        shutil.copy(uncommitted, place)
    index = tmp_path / "run" / index_key(6, "worker_0")
    told = json.loads(index.read_text())
    told["meta"]["previous_step"] = 1
    (tmp_path / "run" / index_key(5, "worker_0")).unlink()
    index.write_text(json.dumps(told))
    found = ask("verify", tmp_path / "run", "--json").json
    notes = {one["step"]: one["problem"] for one in found["notes"]}
    assert all("never committed" in notes[step] for step in (3, 5))
    assert "step 6 followed step 1" in notes[3]
    assert [one["step"] for one in found["problems"]] == [7]


def test_an_index_file_that_was_there_and_is_not_is_damage(ask, tmp_path):
    attempt(tmp_path / "run", 6)
    for step in (2, 3, 5):
        (tmp_path / "run" / index_key(step, "worker_0")).unlink()
    found = ask("verify", tmp_path / "run", "--json")
    assert (found.code, [one["step"] for one in found.json["problems"]]) == (1, [2, 3, 5])


def test_the_last_step_of_a_training_that_went_on_and_saved_nothing_is_no_damage(ask, tmp_path):
    attempt(tmp_path / "run", 3, crashes=True)
    attempt(tmp_path / "run", 0, first=3)
    found = ask("verify", tmp_path / "run", "--json")
    assert (found.code, "its worker stopped" in found.json["notes"][0]["problem"]) == (0, True)


def test_a_training_that_dies_in_its_first_step_is_no_damage_and_a_lost_folder_is(ask, tmp_path):
    attempt(tmp_path / "run", 1, crashes=True)
    assert ask("verify", tmp_path / "run").code == 0
    attempt(tmp_path / "other", 2, crashes=True)
    shutil.rmtree(tmp_path / "other" / "index")
    said = ask("verify", tmp_path / "other")
    assert (said.code, "no index files at all" in said.out) == (1, True)


@pytest.mark.parametrize(
    "chosen", [("--collection", "nope"), ("--tensors", "nope"), ("--rtol", "nan"), ("--atol", "-1")]
)
def test_nothing_compared_is_not_the_same(ask, ill, chosen):
    said = ask("compare", ill, ill, *chosen)
    assert (said.code, said.out) == (2, "")


def test_a_report_without_rules_that_names_one_is_refused(ask, ill, tmp_path):
    said = ask("report", ill, "--no-rules", "--rule", "AllZero", "-o", tmp_path / "page.html")
    assert (said.code, "--no-rules" in said.err) == (2, True)


def test_a_report_hears_that_the_other_run_is_none_before_rules_look(
    ask, ill, tmp_path, monkeypatch
):
    from smdebug.reports import writing

    monkeypatch.setattr(writing, "evaluated", lambda *_, **__: pytest.fail("too early"))
    said = ask("report", ill, "--compare", tmp_path / "none", "-o", tmp_path / "page.html")
    assert (said.code, "There is no run" in said.err) == (3, True)


@pytest.fixture
def mere_owner():
    """Root writes everywhere, and reads everything; without these rights it is one user among others."""
    if os.geteuid() != 0:
        return lambda *words: words
    drop = shutil.which("setpriv")
    if drop is None:
        pytest.skip("root may read and write everything")
    rights = "-dac_override,-dac_read_search"
    return lambda *words: (drop, "--bounding-set", rights, "--inh-caps", rights, *words)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("report", "{}/ill", "-o"), "page.html"),
        (("export", "npz", "{}/ill", "-o"), "x.npz"),
        (("export", "safetensors", "{}/ill", "-o"), "x.safetensors"),
        (("export", "parquet", "{}/ill", "-o"), "x.parquet"),
        (("export", "tensorboard", "{}/ill", "-o"), "board"),
        (("plot", "{}/ill", "--tensor", "loss", "-o"), "x.png"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_told_as_it_was_named(
    ill, tmp_path, mere_owner, words, place
):
    sealed = tmp_path / "sealed"
    sealed.mkdir(mode=0o555)
    named = [word.format(tmp_path) for word in words]
    command = (sys.executable, "-m", "smdebug", *named, str(sealed / place))
    said = subprocess.run(
        mere_owner(*command),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert said.returncode == 3
    assert said.stderr.startswith(f"error: {sealed / place}")
    assert ".tmp" not in said.stderr
