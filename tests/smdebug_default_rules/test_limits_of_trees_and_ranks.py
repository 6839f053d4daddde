"""The limits of the rules for boosted trees and for ranks, and what the rules share: a case at each.

It is long because each limit of each rule has its case in a table.
"""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest

from smdebug import modes
from smdebug_default_rules import loss_history
from smdebug_default_rules.boosting import is_loss, parts_of
from smdebug_default_rules.catalog import CATALOG
from smdebug_default_rules.peaks import Peaks
from smdebug_default_rules.rates import newest_rates
from smdebug_default_rules.tensors import Modules, Parameters, usual_sizes
from tests.smdebug_default_rules.made_runs import FACTS
from tests.smdebug_default_rules.made_steps import Steps
from tests.smdebug_default_rules.test_boosting import FACTS as TREES

OF_RANKS = ("ReplicasDiffer", "RanksAlike", "MissingRank", "SlowRank", "ComputedTwice")


def trees(training=(), validation=(), *, rate=None, rounds=None, metric="logloss", labels=(), **facts):
    steps = Steps()
    steps.lasting, steps.loss, steps.rate = {}, None, rate
    steps.facts = copy.deepcopy(TREES) | facts
    if steps.facts["data"] is not None:
        steps.facts["data"]["labels"] |= dict(labels)
    for at in range(rounds or max(len(training), len(validation))):
        for name, losses in (("a", training), ("b", validation)):
            if at < len(losses):
                steps.carry(f"{name}-{metric}", losses[at])
        steps.write()
    return steps


def found(steps, rule):
    return [(step, finding.cause, finding.since) for step, finding in steps.evaluate(rule)]


def first_and_last(steps, rule):
    each = found(steps, rule)
    return (each[0], each[-1]) if each else ()


def top(share=0.95, explained=0.99, features=5):
    data = copy.deepcopy(TREES["data"]) | {"shapes": [[3000, features]]}
    return {"top_feature": {"name": "f3", "share": share, "explained": explained}, "data": data}


@pytest.mark.parametrize(
    ("facts", "is_found"),
    [
        (top(), True),
        (top(share=0.9, explained=0.98), True),
        (top(share=0.89), False),
        (top(explained=0.979), False),
        (top(features=3), True),
        (top(features=2), False),
    ],
)
def test_a_feature_reveals_the_label_if_it_is_nearly_all_that_counts(facts, is_found):
    steps = trees(rounds=2, **facts)
    assert found(steps, "LeakedLabel") == ([(at, "leaked label", 0) for at in range(2)] if is_found else [])


@pytest.mark.parametrize("rule", ["LeakedLabel", "BoostingBalance"])
def test_training_data_that_is_not_known_can_be_given(rule):
    ((_, findings, why),) = trees(rounds=1, data=None).evaluations(rule)
    assert findings == []
    assert "give the hook `train_data`" in why


def test_labels_are_imbalanced_since_the_first_saved_round():
    steps = weighted(0.1)
    steps.seen, steps.step = [], 5
    ((_, finding),) = steps.write().evaluate("BoostingBalance")
    assert finding.since == 5


def test_trees_need_splits_for_three_rounds_in_a_row():
    without = {"top_features": {}}
    assert found(trees(rounds=4, **without), "BoostingProgress") == [
        (2, "not learning", 0),
        (3, "not learning", 0),
    ]
    linear = {"arguments": {"objective": "reg:linear", "booster": "gblinear"}}
    assert found(trees(rounds=4, **without, **linear), "BoostingProgress") == []
    one_class = copy.deepcopy(TREES["data"])
    one_class["labels"]["classes_seen"] = 1
    assert found(trees(rounds=4, **without, data=one_class), "BoostingProgress") == []
    steps = trees(rounds=2, **without)
    steps.facts["top_features"] = {"total_gain": [["f0", 1.0]]}
    steps.write()
    steps.facts["top_features"] = {}
    assert found(steps.write(steps=3), "BoostingProgress") == [(5, "not learning", 3)]


@pytest.mark.parametrize(
    ("steps", "causes"),
    [
        (lambda: trees([0.69] * 20, rate=4.9e-4), {"learning rate"}),
        (lambda: trees([0.69] * 19, rate=4.9e-4), set()),
        (lambda: trees([0.69] * 20, rate=5e-4), set()),
        (lambda: trees([0.69] * 20, rate=0.0), set()),
        (lambda: trees([0.69] + [0.67] * 19, rate=4.9e-4), set()),
        (lambda: trees([0.69] + [0.68] * 19, rate=4.9e-4), {"learning rate"}),
        (lambda: trees([0.5] + [0.76] * 19, rate=0.3), {"exploding"}),
        (lambda: trees([0.5] + [0.75] * 19, rate=0.3), set()),
        (lambda: trees([0.5] + [0.76] * 19, rate=1.0), {"exploding"}),
        (lambda: trees([0.5] + [0.76] * 19, rate=1.1), {"learning rate"}),
        (lambda: trees([0.5] + [0.76] * 18 + [0.5], rate=0.3), set()),  # it has come down again
        (lambda: trees([-0.5] + [0.76] * 19, rate=0.3), set()),
        (lambda: trees([], [0.5] + [0.76] * 19, rate=0.3), set()),  # a validation may rise
        (lambda: trees([0.5] + [0.76] * 19, rate=0.3, metric="auc"), set()),
    ],
)
def test_a_training_loss_of_trees_falls_unless_the_rate_is_wrong(steps, causes):
    assert {cause for _, cause, _ in found(steps(), "BoostingProgress")} == causes


GUESSED = [0.056] * 20
RARE = {"largest_share": 0.99}


def weighted(weight, share=0.9, largest=0):
    arguments = {**TREES["arguments"], "scale_pos_weight": weight}
    return trees(rounds=1, arguments=arguments, labels={"largest_share": share, "largest_class": largest})


@pytest.mark.parametrize(
    ("steps", "is_found"),
    [
        (lambda: trees(GUESSED, labels=RARE), True),
        (lambda: trees([], GUESSED, labels=RARE), True),
        (lambda: trees(GUESSED[:19], labels=RARE), False),
        (lambda: trees([0.14] * 20, labels={"largest_share": 0.97}), True),
        (lambda: trees([0.14] * 20, labels={"largest_share": 0.969}), False),
        (lambda: trees(GUESSED, labels={**RARE, "targets": 1000}), True),
        (lambda: trees(GUESSED, labels={**RARE, "targets": 999}), False),
        (lambda: trees(GUESSED, labels={**RARE, "classes_seen": 3}), False),
        (lambda: trees([0.0393] * 20, labels=RARE), True),
        (lambda: trees([0.0391] * 20, labels=RARE), False),  # better than guessing
        (lambda: trees([0.06] * 10 + [0.0583] * 10, labels=RARE), True),
        (lambda: trees([0.06] * 10 + [0.0581] * 10, labels=RARE), False),  # it still falls
        (lambda: trees(GUESSED, labels=RARE, metric="rmse"), False),
        (lambda: weighted(0.19), True),
        (lambda: weighted(0.21), False),
        (lambda: weighted(0.19, share=0.83), False),
        (lambda: weighted(0.19, share=0.84), True),
        (lambda: weighted(9.0), False),
        (lambda: weighted(5.1, largest=1), True),
        (lambda: weighted(4.9, largest=1), False),
    ],
)
def test_labels_of_trees_are_imbalanced_if_they_guess_or_weigh_the_wrong_way(steps, is_found):
    assert {cause for _, cause, _ in found(steps(), "BoostingBalance")} == (
        {"imbalance"} if is_found else set()
    )


DOWN = [0.7 * 0.9**at for at in range(30)]


def worse(times, rounds=30, best_at=9):
    return [0.9 - 0.01 * at for at in range(best_at)] + [0.4] + [0.4 * times] * (rounds - best_at - 1)


def predicted(score):
    return {"predicted": {"of": "validation", "rows": 500, "constant": False, "skill": 0.7, "score": score}}


@pytest.mark.parametrize(
    ("steps", "causes"),
    [
        (lambda: trees(DOWN, worse(1.16)), {"overfitting"}),
        (lambda: trees(DOWN, worse(1.15)), set()),
        (lambda: trees(DOWN, worse(1.08), metric="rmse"), {"overfitting"}),
        (lambda: trees(DOWN, worse(1.07), metric="rmse"), set()),
        (lambda: trees(DOWN, worse(1.2)[:19]), set()),
        (lambda: trees(DOWN, worse(1.2, best_at=20)), set()),  # nine are no trend
        (lambda: trees(DOWN, worse(1.2, best_at=19)), {"overfitting"}),
        (lambda: trees(DOWN, worse(1.2), stops_early=True), set()),
        (lambda: trees(DOWN[::-1], worse(1.2)), set()),
        (lambda: trees([], worse(1.2)), {"overfitting"}),
        (lambda: trees(DOWN, [value - 0.4 for value in worse(1.2)]), set()),  # below zero
        (lambda: trees(DOWN, [0.6 + 0.01 * at for at in range(30)], **predicted(2.9)), {"memorising"}),
        (lambda: trees(DOWN, [0.6 + 0.01 * at for at in range(30)], **predicted(3.0)), {"overfitting"}),
        (lambda: trees(DOWN, [0.6] * 30, **predicted(1.0)), {"memorising"}),
        (lambda: trees(DOWN, [0.6] + [0.57] * 29, **predicted(1.0)), set()),
        (lambda: trees(DOWN, [0.6] + [0.571] * 29, **predicted(1.0)), {"memorising"}),
        (lambda: trees([0.7] + [0.43] * 29, [0.6] * 30, **predicted(1.0)), set()),
        (lambda: trees([0.7] + [0.41] * 29, [0.6] * 30, **predicted(1.0)), {"memorising"}),
    ],
)
def test_trees_overfit_if_the_validation_is_clearly_above_its_best(steps, causes):
    last = [cause for step, cause, _ in found(steps(), "BoostingGeneralisation") if step == 29]
    assert set(last) == causes


def test_a_training_that_does_not_say_whether_it_stops_early_does_not():
    steps = trees(DOWN[:20], worse(1.2)[:20])
    unsaid = Steps()
    unsaid.seen = steps.seen
    for seen in unsaid.seen:
        seen._observations._facts[seen.step].pop("stops_early")
    assert found(unsaid, "BoostingGeneralisation")


def test_a_series_is_known_by_its_name_where_the_facts_do_not_know_it():
    names = {"train-mae": "training", "FIT-mae": "training", "refit-mae": None, "holdout-mae": "validation"}
    assert {name: (parts_of(name, {}) or (None,))[0] for name in names} == names
    metrics = ("logloss", "mlogloss", "poisson-nloglik", "rmse", "mae", "auc", "error", "xrmse", "rmsex")
    assert [metric for metric in metrics if is_loss(metric)] == list(metrics[:5])


# Ranks


class Ranks:
    """A run of several ranks, as far as rules ask for the others; each step names what each rank saved."""

    def __init__(self, expected, **steps):
        self.has_facts, self.are_beside = True, False
        self.expected_workers = expected
        self._steps = {int(step.strip("_")): of for step, of in steps.items()}

    def roots(self, step):
        kinds = ("inputs", "parameters")
        return {
            f"worker_{rank}": dict(zip(kinds, of, strict=False))
            for rank, of in enumerate(self._steps.get(step, ()))
            if of is not None
        }

    def parts(self, step):
        return {}

    def absent_workers(self, step, *, least_present):
        present = self.roots(step)
        names = [f"worker_{rank}" for rank in range(self.expected_workers)]
        return [name for name in names if name not in present] if len(present) >= least_present else []


def of_ranks(rule, ranks, steps, end=None):
    trial = SimpleNamespace(observations=ranks, mode_modestep=lambda step: (modes.TRAIN, step))
    made = CATALOG[rule].load()(trial)
    run, results = Steps(), []
    for step in steps:
        run.step = step
        run.write()
        seen = run.seen[-1]
        made._begin_evidence()
        made.observed = lambda _, seen=seen: seen
        made.invoke_at_step(step)
        results += [(step, each.worker, each.since) for each in made.findings]
    if end is not None and made.invoke_at_end(end):
        results += [("end", each.worker, each.since) for each in made.findings]
    return results


def test_ranks_are_alike_if_their_inputs_are_and_their_parameters_too():
    same, other = ("xp", "xp"), ("xp", "yp")
    assert of_ranks("RanksAlike", Ranks(2, _0=same, _1=same, _2=same), range(3)) == [
        (1, "worker_1", 0),
        (2, "worker_1", 0),
    ]
    assert of_ranks("RanksAlike", Ranks(2, _0=same, _1=other, _2=same), range(3)) == []
    sharded = ("xp", "xq")
    assert of_ranks("RanksAlike", Ranks(2, _0=sharded, _1=sharded, _2=sharded), range(3)) == []
    alone = ("xp", None)
    assert of_ranks("RanksAlike", Ranks(2, _0=alone, _1=alone), range(2)) == []
    assert of_ranks("RanksAlike", Ranks(2, _0=("x", "x"), _1=("x", "x")), range(2)) == [(1, "worker_1", 0)]


def test_a_rank_is_missing_once_a_later_step_of_all_ranks_came():
    both, alone = ("xp", "xp"), ("xp", None)
    due = (0, 5, 10, 110)
    assert of_ranks("MissingRank", Ranks(2, _0=both, _10=alone, _110=both), due) == [(110, "worker_1", 10)]
    assert of_ranks("MissingRank", Ranks(2, _0=both, _10=both, _110=both), due, end=200) == []
    assert of_ranks("MissingRank", Ranks(1, _0=alone, _10=alone), due, end=200) == []
    assert of_ranks("MissingRank", Ranks(2, _0=alone, _10=alone), due, end=200) == []  # one saves alone
    assert of_ranks("MissingRank", Ranks(2, _0=both, _10=alone), (0, 10), end=1000) == [
        ("end", "worker_1", 10)
    ]
    assert of_ranks("MissingRank", Ranks(2, _0=both, _10=alone), (0, 10), end=10) == []
    late = Ranks(3, _0=("x", "x", "x"), _10=("x", "x", None), _110=("x", None, None), _210=("x",) * 3)
    assert of_ranks("MissingRank", late, (0, 10, 110, 210)) == [
        (110, "worker_2", 10),
        (210, "worker_1", 110),
        (210, "worker_2", 10),
    ]


# What the rules share


def test_losses_are_kept_from_the_start_and_from_the_end():
    kept = loss_history.empty()
    loss_history.extend(kept, np.array([]), np.array([]))
    assert kept == loss_history.empty()
    for step in range(3, 103):
        loss_history.extend(kept, np.array([step]), np.array([float(step)]))
    at_once = loss_history.empty()
    loss_history.extend(at_once, np.arange(3, 103), np.arange(3.0, 103.0))
    assert kept == at_once
    assert kept["first"] == list(np.arange(3.0, 23.0))
    assert kept["last"] == list(np.arange(39.0, 103.0))
    assert (kept["count"], kept["since"], kept["step"]) == (100, 3, 102)


@pytest.mark.parametrize(
    ("values", "median"),
    [([], None), ([3.0], 3.0), ([4.0, 1.0], 2.5), ([9.0, 1.0, 2.0], 2.0), ([4, 1, 3, 2], 2.5)],
)
def test_a_level_is_a_median(values, median):
    found = loss_history.level(values)
    assert (None if np.isnan(found) else found) == median


def test_losses_of_the_modes_are_apart_and_those_that_are_not_finite_are_left_out():
    steps = Steps()
    steps.skip(2.0, np.nan).skip(9.0, mode=modes.EVAL).skip(1.23456789)
    (seen,) = steps.write().seen
    numbers, values = loss_history.new_losses(seen)
    assert numbers.tolist() == [0, 1, 3, 4]
    assert values.tolist()[2:] == [1.2346, 2.3]
    assert [array.tolist() for array in loss_history.finite_losses(seen)] == [[0, 3, 4], [2.0, 1.2346, 2.3]]


def test_the_newest_rate_of_an_optimizer_is_the_largest_of_its_groups():
    steps = Steps()
    steps.rates = {"0/1": 0.3, "0/2": 0.2, "1/0": 0.01, "x/0": 5.0}
    steps.carry("learning_rate/0/0", 7.0)
    (seen,) = steps.write().seen
    assert newest_rates(seen) == {0: 0.3, 1: 0.01}


def test_a_peak_counts_to_sixteen_and_then_every_second_time():
    kept = {}
    counts = []
    for _ in range(20):
        Peaks(kept, ["a", "b"], 2).add([[1.0, np.nan], [0.0, 2.0]])
        counts.append(Peaks(kept, ["a", "b"], 2).count().tolist())
    assert [count[0][0] for count in counts] == [*range(1, 18), 16, 17, 16]
    assert {tuple(count[0][1:]) for count in counts} == {(0,)}
    largest = Peaks(kept, ["a", "b"], 2).largest()
    assert np.isnan(largest[0, 1])
    assert largest[1, 0] == pytest.approx(2.0**-40, rel=0.13)  # zero is the least
    assert kept["names"] == ["a", "b"]
    assert len(kept["rows"]) == 2 * 2 * 2 * 2


@pytest.mark.parametrize("value", [2.0**-41, 2.0**-40, 0.99, 1.0, 1.24, 1.26, 2.0**22, 2.0**23 - 1, 2.0**24])
def test_a_peak_is_the_middle_of_its_quarter(value):
    kept = {}
    Peaks(kept, ["a"], 1).add([[value]])
    (found,) = Peaks(kept, ["a"], 1).largest()[0]
    if value >= 2.0**23:
        assert found == np.inf
        return
    value = max(value, 2.0**-40)
    power = 2.0 ** np.floor(np.log2(value))
    assert found == power * (1 + (np.floor(4 * (value / power - 1)) + 0.5) / 4)


def test_a_parameter_is_found_in_its_layer_of_any_framework():
    modules = Modules("Net", {"Net": "Net", "fc1": "Linear", "block.fc": "Linear", "dense": "Dense"}, {})
    names = {
        "Net_fc1.weight": "fc1",
        "fc1.weight": "fc1",
        "Net_block.fc.bias": "block.fc",
        "Net_unknown.weight": "Net_unknown",
        "scale": "Net",
        "dense/weights/dense/kernel:0": "dense",
        "outer/weights/inner/kernel:0": "outer",
        "dense/kernel": "dense",
    }
    assert {name: modules.layer_of(name) for name in names} == names
    outputs = {"fc1_output_0": "fc1", "dense/outputs": "dense", "dense/outputs_1": "dense", "output/x": "x"}
    assert {name: modules.layer_of_output(name) for name in outputs} == outputs
    assert (modules.input, modules.output) == ("Net_input_0", "Net_output_0")
    keras = Modules("", {"dense": "Dense"}, {})
    assert (keras.input, keras.output) == ("inputs", "predictions")
    assert Modules("", {"Dense": "Dense"}, {}).described("Dense") == "layer Dense"


def table_of(change=None, **lasting):
    steps = Steps()
    steps.lasting |= lasting
    if change is not None:
        change(steps)
    (seen,) = steps.write().seen
    return Parameters.of(seen)


def test_a_table_has_each_parameter_with_its_own_gradient_and_update():
    def change(steps):
        steps.kinds["parameters"]["Net_0.weight"] = np.full((4, 8), 0.5, np.float16)
        steps.kinds["parameters"]["counter"] = np.array([3])
        gradients = dict(reversed(steps.kinds["gradients"].items()))
        del gradients["gradient/Net_2.bias"]
        gradients["gradient/Net_0.weight"][:] = 7
        gradients["gradient/Net_4.bias"][:] = 0
        gradients["gradient/Net_4.weight"][:] = 0
        gradients["gradient/Net_4.weight"][3, 3] = np.nan
        steps.kinds["gradients"] = gradients

    table = table_of(change, frozen=["Net_2.weight"])
    at = {name: place for place, name in enumerate(table.names)}
    assert table.gradient("rms")[at["Net_0.weight"]] == 7
    assert np.isnan(table.gradient("rms")[[at["Net_2.bias"], at["counter"]]]).all()
    has = {name for name, place in at.items() if table.has_gradient[place]}
    assert has == {"Net_0.weight", "Net_0.bias", "Net_2.weight", "Net_4.weight"}
    assert {name for name, place in at.items() if table.is_frozen[place]} == {"Net_2.weight", "counter"}
    assert {name for name, place in at.items() if table.owners[place] < 0} == {"counter"}
    assert table.resolutions[at["Net_0.weight"]] == 2.0**-10
    assert table.resolutions[at["Net_2.weight"]] == 2.0**-23
    assert (table.sizes[at["Net_0.weight"]], table.units[at["Net_0.weight"]]) == (32, 4)
    assert table.is_weight.tolist() == [name.endswith("weight") for name in table.names]
    assert usual_sizes(table)[at["Net_0.weight"]] == pytest.approx(0.1 * (4 / 32) ** 0.5)
    assert table.layers[at["Net_0.weight"]] == "0"
    assert table.classes[at["Net_0.weight"]] == "Linear"


@pytest.mark.parametrize(
    ("name", "shape", "units"),
    [
        ("a.weight", (4, 8), 4),
        ("dense/kernel", (4, 8), 8),
        ("dense/kernel:0", (4, 8), 8),
        ("dense/recurrent_kernel", (4, 8), 8),
        ("dense/w", (4, 8), 8),
        ("dense/bias", (8,), 8),
        ("scale", (), 1),
        ("dense/kernels", (4, 8), 4),
    ],
)
def test_the_units_of_a_weight_are_its_first_axis_or_the_last_of_a_kernel(name, shape, units):
    def change(steps):
        steps.kinds["parameters"] = {name: np.ones(shape, np.float32)}

    assert table_of(change).units.tolist() == [units]


@pytest.mark.parametrize("rule", [name for name in CATALOG if name not in OF_RANKS])
def test_a_rule_does_not_judge_what_was_not_saved(rule):
    steps = Steps()
    steps.kinds, steps.facts, steps.lasting, steps.loss, steps.rate = {}, {"training": True}, {}, None, None
    steps.write()
    steps.kinds, steps.facts = {}, copy.deepcopy(dict(FACTS))
    steps.write()
    (_, findings, why), (_, findings_of_facts, _) = steps.evaluations(rule)
    assert findings == findings_of_facts == []
    needs = CATALOG[rule].load().needs
    assert why == needs or (rule == "ModuleModes" and why.startswith("no module")) or (not needs and why)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("RepeatedInput", "XGBoost trains on the same rows"),
        ("DeadUnits", "no output of a layer with ReLU"),
        ("ModuleModes", "no module, such as dropout"),
        ("LeakedLabel", "the training data has fewer than 3 features"),
    ],
)
def test_of_boosted_trees_a_rule_that_cannot_find_anything_has_not_passed(rule, why):
    steps = trees([0.6, 0.5], **top(features=2))
    steps.facts["training"] = True
    steps.kinds = {"inputs": {"labels": np.ones(8, np.float32)}, "outputs": {"predictions": np.ones(8)}}
    steps.write()
    _, findings, reason = steps.evaluations(rule)[-1]
    assert findings == []
    assert reason.startswith(why)


@pytest.mark.parametrize("kind", ["parameters", "gradients", "updates", "outputs", "inputs"])
def test_a_step_that_lacks_one_kind_of_tensors_is_no_fault(kind):
    steps = Steps()
    for at in range(30):
        steps.loss = 2.3 * 0.95**at
        if at % 3:
            del steps.kinds[kind]
        steps.write()
    found = {rule: steps.evaluate(rule) for rule in CATALOG if rule not in OF_RANKS}
    assert {rule for rule, findings in found.items() if findings} == set()


def test_a_rule_is_begun_anew_for_another_optimizer():
    steps = Steps()
    steps.lasting["optimizers"][0]["number"] = 1
    steps.write(steps=30)
    steps.lasting["optimizers"][0]["number"] = 2
    steps.rate = 6.0
    steps.write(steps=3)
    assert steps.evaluate("LearningRate") == []
    same = Steps()
    same.lasting["optimizers"][0]["number"] = 1
    same.write(steps=30)
    same.rate = 6.0
    assert same.write(steps=3).evaluate("LearningRate")
