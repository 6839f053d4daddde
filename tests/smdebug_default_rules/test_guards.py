"""Each guard of a rule has a healthy run that needs it, beside the failing run that it must not let pass.

It is long because each limit of each rule has its case in a table.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from smdebug import modes
from smdebug.trials.observations.worker_parts import Part, WorkerParts
from smdebug_default_rules.catalog import CATALOG
from tests.smdebug_default_rules.made_runs import PARAMETERS, TERM
from tests.smdebug_default_rules.made_steps import Steps

WEIGHTS = [name for name in PARAMETERS if name.endswith("weight")]


def fires(steps, rule):
    """At which steps the rule fires."""
    return sorted({step for step, _ in steps.evaluate(rule)})


def with_rates(*rates, steps_of_optimizer=True):
    steps = Steps()
    steps.facts["optimizer_steps"] = steps_of_optimizer
    for at, rate in enumerate(rates):
        steps.loss, steps.rate = 2.3 * 0.99**at, rate
        steps.write()
    return steps


@pytest.mark.parametrize(
    ("rates", "fired"),
    [
        ([0.1] * 20 + [6.0], [20]),
        ([0.1] * 19 + [6.0], []),  # a warm-up in large steps
        ([0.1] * 20 + [0.35], []),  # 3.5 times is what some schedules do
        ([0.1] * 20 + [0.36], [20]),
        ([0.1] * 20 + [0.36, 0.36, 0.36], [20, 21, 22]),  # it stays
        ([0.1] * 20 + [0.36, 0.1, 0.1], [20]),
        ([0.1] * 20 + [0.36, 0.3, 0.29, 0.29], [20, 21, 22, 23]),
        ([0.1] * 20 + [0.36, 0.101, 0.2], [20]),
        ([0.1] * 5 + [0.01] * 30 + [0.1], []),  # back to where it was
        ([0.1] * 5 + [0.01] * 30 + [0.36], [35]),
        ([0.0] * 30 + [0.1], []),  # it leaves a warm-up at zero
        ([0.1] * 5 + [0.0] * 25 + [0.4], [30]),  # infinitely often
        ([np.nan] * 30 + [0.1], []),
        ([0.1] * 20 + [np.nan, np.inf, 0.1], []),
        ([0.001, 0.004, 0.016, 0.064, 0.1], []),
        ([0.1] * 20 + [0.3] * 20 + [0.9] * 20, []),  # by three, twice
        ([0.1] * 20 + [0.3] * 20 + [1.1], [40]),
    ],
)
def test_a_rate_jumps_if_it_was_steady_and_never_as_high(rates, fired):
    assert fires(with_rates(*rates), "LearningRate") == fired


@pytest.mark.parametrize(
    ("rates", "fired"),
    [
        ([0.1] + [0.9e-5] * 32, [31, 32]),
        ([0.1] + [1e-5] * 40, []),  # a ten-thousandth is a usual end
        ([0.1] + [0.9e-5] * 29 + [0.1], []),
        ([0.1] * 100 + [0.9e-5] * 49, []),  # the end of a schedule
        ([0.1] * 100 + [0.9e-5] * 52, [150, 151]),
        ([0.1] + [0.0] * 32, [31, 32]),
        ([0.1] + [0.9e-5] * 20 + [0.8e-5] * 12, [31, 32]),  # since it was low, not since it last changed
        ([0.1] + [0.9e-5] * 20 + [0.1] + [0.9e-5] * 29, []),
    ],
)
def test_a_rate_has_vanished_after_thirty_steps_or_half_of_those_before(rates, fired):
    assert fires(with_rates(*rates), "LearningRate") == fired


def test_a_rate_has_vanished_beside_the_steps_that_it_was_followed():
    steps = Steps()
    steps.skip(*[2.3] * 200)
    for rate in [0.1] * 10 + [0.5e-5] * 32:
        steps.rate = rate
        steps.write()
    assert fires(steps, "LearningRate") == [240, 241]


def test_a_rate_of_zero_is_found_after_fifty_steps_if_the_optimizer_steps():
    assert fires(with_rates(*[0.0] * 52), "LearningRate") == [50, 51]
    assert fires(with_rates(*[0.0] * 52, steps_of_optimizer=False), "LearningRate") == []
    assert fires(with_rates(*[1e-3] * 2, *[0.0] * 20, *[1e-3] * 40), "LearningRate") == []
    two_groups = Steps()
    two_groups.rate, two_groups.rates = 0.0, {"0/1": 0.1}  # a part of the model is frozen by its rate
    assert fires(two_groups.write(steps=60), "LearningRate") == []


def proportion(ratio, losses, *, rate=0.1, weight=0.5, bias_ratio=None, frozen=(), facts=(), rates=None):
    """A run whose updates are this share of its weights."""
    steps = Steps()
    steps.facts |= dict(facts)
    steps.lasting["frozen"] = list(frozen)
    for at, loss in enumerate(losses):
        for name in PARAMETERS:
            share = ratio[at] if isinstance(ratio, list) else ratio
            share = share if bias_ratio is None or name in WEIGHTS else bias_ratio
            steps.kinds["parameters"][name][:] = weight
            steps.kinds["updates"][f"update/{name}"][:] = weight * share
        steps.loss, steps.rate = loss, rates[at] if rates else rate
        steps.write()
    return steps


FLAT = [2.3] * 14
RISING = [1.0] * 6 + [9.0] * 10
WARM_UP = [0.001 * at for at in range(1, 20)]


def test_the_largest_ratio_of_a_step_counts():
    steps = Steps()
    for _ in range(14):
        for place, name in enumerate(PARAMETERS):
            steps.kinds["parameters"][name][:] = 0.5
            steps.kinds["updates"][f"update/{name}"][:] = 0.5 * (1e-3 if place == 0 else 1e-6)
        steps.write()
    assert fires(steps, "LearningRate") == []


@pytest.mark.parametrize(
    ("steps", "fired"),
    [
        (lambda: proportion(1e-6, FLAT), range(9, 14)),
        (lambda: proportion(1.1e-5, FLAT), ()),
        (lambda: proportion(0.0, FLAT), ()),  # another rule says that nothing moves
        (lambda: proportion(1e-6, np.linspace(2.3, 1.5, 14)), ()),  # it learns
        (lambda: proportion(1e-6, FLAT, rates=WARM_UP), ()),
        (lambda: proportion(0.2, [1e-8, -3e-8, 2e-8, -0.1] * 2 + [4e-8] * 6), ()),  # a policy's, around 0
        (lambda: proportion(1e-6, [2e-8, -3e-8] * 7), ()),
        (lambda: proportion(1e-6, FLAT, facts={"optimizer_steps": False}), ()),
        (lambda: proportion([1e-6] * 13 + [1e-2], FLAT), range(9, 13)),
        (lambda: proportion(1e-6, FLAT, bias_ratio=0.01), range(9, 14)),  # biases move far
        (lambda: proportion(1e-6, FLAT, frozen=PARAMETERS), ()),
        (lambda: proportion(0.2, RISING), range(10, 16)),
        (lambda: proportion(0.09, RISING), ()),
        (lambda: proportion(0.2, [1.0] * 6 + [2.0] * 10), ()),  # twice is noise
        (lambda: proportion(0.2, [1.0] * 6 + [0.5] * 12 + [9.0] * 10), ()),  # it had learnt
        (lambda: proportion(0.2, FLAT), ()),
        (lambda: proportion(0.6, FLAT), range(9, 14)),  # the first weights are lost
        (lambda: proportion(0.5, FLAT), ()),
        (lambda: proportion(0.6, [2.5] + [2.2] * 13), ()),  # beside the very first loss
        (lambda: proportion(0.6, np.linspace(2.3, 1.2, 14)), ()),
        (lambda: proportion([0.01] * 10 + [0.6] * 4, FLAT), ()),  # later weights may change more
        (lambda: proportion(0.6, FLAT, weight=1e-3), ()),  # weights that begin near zero
        (lambda: proportion(6e-5, [2.3] * 152), range(149, 152)),
        (lambda: proportion(7e-5, [2.3] * 152), ()),
        (lambda: proportion(6e-5, np.linspace(2.4, 2.1, 152)), ()),
        (lambda: proportion(6e-5, [1.8] * 152), ()),  # below four fifths of guessing, it has learnt
        (lambda: proportion(6e-5, [2.3] * 152, facts={"loss": {"terms": [TERM, TERM]}}), ()),
    ],
)
def test_updates_are_out_of_proportion_if_the_loss_shows_it(steps, fired):
    assert fires(steps(), "LearningRate") == list(fired)


def with_losses(*losses, saved=None):
    steps = Steps()
    for at, loss in enumerate(losses):
        if saved is not None and at not in saved:
            steps.skip(loss)
            continue
        steps.loss = loss
        steps.write()
    return steps


@pytest.mark.parametrize(
    ("losses", "fired"),
    [
        ([2.0] * 20 + [21.0, 2.0], [20]),
        ([2.0] * 19 + [21.0, 2.0], []),  # there is too little to compare with
        ([2.0] * 20 + [20.0, 2.0], []),
        ([2.0] * 10 + [0.1] * 70 + [5.0], []),  # the level of the start is not a spike
        ([2.0] * 10 + [0.1] * 70 + [21.0], [80]),
        ([0.5] * 20 + [-8.0], [20]),
        ([-2.0] * 20 + [-15.0], []),
        ([2.0] * 20 + [np.nan, np.inf, 2.0], [21]),
        ([2.0] * 20 + [30.0, 30.0, 2.0], [20, 21]),  # a spike is no level to compare with
        ([2.0] * 19 + [np.nan, 21.0], []),  # NaN is none of the twenty
        ([0.0] * 20 + [0.1], []),  # nothing to compare with, as of a hinge that is met
    ],
)
def test_a_loss_spikes_beyond_all_losses_of_the_start_and_the_last_steps(losses, fired):
    assert fires(with_losses(*losses), "LossSpike") == fired


def test_a_spike_between_saved_steps_is_found_at_the_next_with_its_own_step():
    steps = with_losses(*[2.0] * 24, 50.0, 60.0, *[2.0] * 4, saved=range(0, 30, 10))
    steps.loss = 2.0
    ((step, finding),) = steps.write().evaluate("LossSpike")
    assert (step, finding.since, finding.value) == (30, 24, 25.0)


@pytest.mark.parametrize(
    ("scales", "fired"),
    [
        ([1.0] * 5 + [51.0, 1.0], [5]),
        ([1.0] * 4 + [51.0, 1.0], []),
        ([1.0] * 5 + [50.0], []),
        ([1.0, 2.0, 1.0, 1.0, 1.0, 51.0], []),  # beside the largest, not the last
        ([1.0] * 5 + [51.0, 51.0], [5, 6]),
        ([1.0] * 5 + [np.inf, np.nan], []),  # another rule's
        ([0.0] * 5 + [1.0], []),  # nothing to compare with
        ([60.0] + [1.0] * 16 + [51.0], [17]),  # the last sixteen count
        ([60.0] + [1.0] * 15 + [51.0], []),
    ],
)
def test_an_input_spikes_beyond_fifty_times_its_largest_scale(scales, fired):
    steps = Steps()
    for scale in scales:
        steps.kinds["inputs"]["Net_input_0"][:] = scale
        steps.write()
    assert fires(steps, "LossSpike") == fired
    whole = Steps()
    for scale in scales:  # token ids may be of any size
        ids = np.full((32, 8), 0 if not np.isfinite(scale) else int(scale))
        whole.kinds["inputs"] = {"Net_input_0": ids}
        whole.write()
    assert fires(whole, "LossSpike") == []


def changed(steps=3, at=1, rule="NonFiniteValues", loss=2.3, **how):
    """Fire the rule on a run that is changed from one step on."""
    run = Steps()
    run.loss = loss
    for step in range(steps):
        if step >= at:
            for change in how.values():
                change(run)
        run.write()
    return fires(run, rule)


def put(kind, name, value, place=0):
    def change(run):
        run.kinds[kind][name].reshape(-1)[place] = value

    return change


def fact(name, value):
    return lambda run: run.facts.update({name: value})


GRADIENT = put("gradients", "gradient/Net_2.weight", np.inf)
OUTPUT = put("outputs", "3_output_0", -np.inf)
INPUT = put("inputs", "Net_input_0", np.nan)
PARAMETER = put("parameters", "Net_2.weight", np.nan)


@pytest.mark.parametrize(
    ("changes", "fired"),
    [
        ({"a": PARAMETER}, [1, 2]),
        ({"a": GRADIENT}, [1, 2]),
        ({"a": OUTPUT}, []),  # a mask
        ({"a": INPUT}, []),  # missing values that the model knows of
        ({"a": OUTPUT, "b": GRADIENT}, [1, 2]),
        ({"a": PARAMETER, "b": lambda run: run.kinds.pop("outputs")}, [1, 2]),
        ({"a": GRADIENT, "b": fact("loss_scale", 65536.0)}, []),  # the scaler skips the step
        ({"a": PARAMETER, "b": fact("loss_scale", 65536.0)}, [1, 2]),
        ({"a": lambda run: setattr(run, "loss", np.nan)}, [1, 2]),
        ({"a": lambda run: setattr(run, "loss", -np.inf)}, [1, 2]),
    ],
)
def test_what_is_not_finite_is_found_where_it_is_not_meant(changes, fired):
    assert changed(**changes) == fired


def sized(name, weight, gradient, update):
    def change(run):
        run.kinds["parameters"][name][:] = weight
        run.kinds["gradients"][f"gradient/{name}"][:] = gradient
        run.kinds["updates"][f"update/{name}"][:] = update

    return change


@pytest.mark.parametrize(
    ("changes", "fired"),
    [
        ({"a": sized("Net_2.weight", 0.5, 26, 1.1)}, [1, 2]),
        ({"a": sized("Net_2.weight", 0.5, 25, 1.1)}, []),
        ({"a": sized("Net_2.weight", 0.5, 26, 1.0)}, []),
        ({"a": sized("Net_2.bias", 0.5, 26, 1.1)}, []),  # biases begin at zero
        ({"a": sized("Net_2.weight", 0.02, 26, 1.1)}, []),  # as some weights do
        ({"a": sized("Net_2.weight", 0.5, 26, 1.1), "b": fact("optimizer_steps", False)}, []),
        (
            {
                "a": sized("Net_2.weight", 0.5, 26, 1.1),
                "b": lambda run: run.lasting.update(optimizers=[{"class": "LBFGS"}]),
            },
            [],
        ),
    ],
)
def test_weights_are_thrown_away_by_a_gradient_and_an_update_far_larger(changes, fired):
    assert changed(**changes) == fired


def scaled(output=1.0, inputs=1.0, whole=False):
    def change(run):
        for array in run.kinds["outputs"].values():
            array[:] = output
        run.kinds["inputs"]["Net_input_0"][:] = inputs
        if whole:
            run.kinds["inputs"] = {"Net_input_0": np.ones((32, 8), np.int64)}

    return change


@pytest.mark.parametrize(
    ("change", "at", "fired"),
    [
        (scaled(101), 0, [0, 1, 2]),
        (scaled(100), 0, []),
        (scaled(101), 1, []),  # trained models may have to
        (scaled(101, 2.0), 0, []),
        (scaled(0.101, 1e-9), 0, [0, 1, 2]),
        (scaled(0.1, 1e-9), 0, []),  # inputs of nearly nothing
        (scaled(101, whole=True), 0, []),  # an embedding has any scale
    ],
)
def test_outputs_explode_beside_their_input_from_the_first_step_on(change, at, fired):
    assert changed(at=at, a=change) == fired


def test_outputs_of_a_run_that_was_not_seen_from_its_start_may_be_large():
    run = Steps()
    run.skip(2.3)
    for _ in range(3):
        scaled(500)(run)
        run.write()
    assert fires(run, "NonFiniteValues") == []


def risen(times, losses, first=0.5):
    run = Steps()
    for at, loss in enumerate(losses):
        run.kinds["parameters"]["Net_2.weight"][:] = first * (times if at else 1)
        run.loss = loss
        run.write()
    return fires(run, "NonFiniteValues")


def test_weights_have_risen_if_the_loss_is_no_better_for_it():
    assert risen(101, [2.3] * 3) == [1, 2]
    assert risen(100, [2.3] * 3) == []
    assert risen(101, [2.3] * 25) == list(range(1, 21))  # enough losses to see that it did not rise
    assert risen(101, [2.3] * 20 + [2.5] * 40) == [*range(1, 21), *range(41, 60)]
    assert risen(2000, [2.3] * 3, first=0.02) == []  # such as a scale that begins near zero


@pytest.mark.parametrize(
    ("losses", "fired"),
    [
        ([1.0] * 5 + [101.0] * 5, [9]),
        ([1.0] * 5 + [101.0] * 4 + [1.0], []),
        ([1.0] * 5 + [100.0] * 8, []),
        ([1.0] * 4 + [101.0] * 4, []),  # no level to compare with
        ([1.0] * 5 + [101.0] * 3 + [1.0] + [101.0] * 4, []),
        ([1.0] * 5 + [-101.0] * 5, [9]),
        ([0.0] * 5 + [101.0] * 8, []),
        ([1.0] * 20 + [101.0] * 6 + [1.0], [24, 25]),
    ],
)
def test_a_loss_has_diverged_after_five_steps_at_a_hundred_times_its_level(losses, fired):
    assert fires(with_losses(*losses), "NonFiniteValues") == fired


def squared(losses, spreads, *, criterion="mean squared error", largest=2.0):
    """A run of these losses, whose targets have a mean of 0 and these spreads."""
    run = Steps()
    for loss, spread in zip(losses, spreads, strict=True):
        term = {"criterion": criterion, "means": [0.0], "variances": [spread**2]}
        run.facts["loss"] = {"terms": [{**term, "lowest": 0.0, "highest": largest * spread}]}
        run.loss = loss
        run.write()
    return run


@pytest.mark.parametrize(
    ("first", "later", "fired", "more"),
    [
        (0.1, 6.0, [], {}),  # targets of another task
        (0.1, 4.9, [9], {}),  # a loss that is far above them
        (2.0, 6.0, [9], {}),  # targets of the size that they had
        (0.1, 6.0, [9], {"largest": 3.0}),  # a few rows out of range
        (0.1, 6.0, [9], {"criterion": "absolute error"}),
    ],
)
def test_a_loss_that_larger_targets_explain_has_not_diverged(first, later, fired, more):
    run = squared([1.0] * 5 + [101.0] * 5, [first] * 5 + [later] * 5, **more)
    assert fires(run, "NonFiniteValues") == fired


@pytest.mark.parametrize(
    ("spreads", "fired"),
    [
        ([0.1, 1.0] * 10 + [2.0], []),  # tasks, the last of which is the largest
        ([1.0] * 20 + [2.0], [20]),
        ([0.1, 1.0] * 10 + [1.0], [20]),  # a loss that is far above all of them
    ],
)
def test_a_loss_has_not_jumped_where_targets_of_many_scales_explain_it(spreads, fired):
    assert fires(squared([1.0] * 20 + [11.0], spreads), "LossSpike") == fired


def test_a_loss_has_diverged_since_its_first_step_however_long_ago():
    steps = with_losses(*[1.0] * 20)
    steps.skip(*[500.0] * 1200)
    steps.loss = 500.0
    ((step, finding),) = steps.write().evaluate("NonFiniteValues")
    assert (step, finding.since) == (1220, 20)


# Ranks


def replicas(*steps, names=("body", "norm"), varied=True, parts=()):
    """At which steps ReplicasDiffer fires; each step names what each rank's parameters contain.

    Of `parts`, too: what each rank, the first of a mesh of its own, holds of `body` at each step.
    """
    rule_steps = Steps()
    fired = []
    now, held = {}, {}
    observations = SimpleNamespace(
        exist=True,
        roots=lambda step: {worker: {"parameters": "".join(of)} for worker, of in now.items()},
        differing=lambda step: differing(now, names),
        parts=lambda step: held,
    )
    made = CATALOG["ReplicasDiffer"].load()(SimpleNamespace(observations=observations))
    for step in steps:
        values = np.arange(4.0) if varied else np.ones(4)
        rule_steps.kinds["parameters"] = {name: values.astype(np.float32) for name in names}
        rule_steps.write()
        seen = rule_steps.seen[-1]
        now = {f"worker_{rank}": of for rank, of in enumerate(step)}
        held = {
            f"worker_{rank}": WorkerParts({"body": Part(rank, (("tp", 0),), (ord(of), 1))})
            for rank, of in enumerate(parts[len(rule_steps.seen) - 1] if parts else "")
        }
        made._begin_evidence()
        made.observed = lambda _, seen=seen: seen
        if made.invoke_at_step(seen.step):
            fired.append((seen.step, [finding.tensor for finding in made.findings]))
    return fired


def differing(now, names):
    found = []
    for place, name in enumerate(names):
        contents = [of[place] for of in now.values()]
        most = max(contents, key=contents.count)
        workers = tuple(worker for worker, of in now.items() if of[place] != most)
        others = tuple(worker for worker in now if worker not in workers)
        if workers:
            found.append(SimpleNamespace(name=name, workers=workers, others=others))
    return found


@pytest.mark.parametrize(
    ("steps", "fired"),
    [
        ([("aa", "aa"), ("aa", "ab")], [(1, ["norm"])]),  # all were equal before
        ([("aa", "ab"), ("aa", "ab")], []),  # shards, from the start
        ([("aa", "ab"), ("ba", "ab")], [(1, ["body"])]),  # a replica beside shards
        ([("aa", "ab"), ("ab", "aa"), ("ba", "ab")], [(2, ["body"])]),
        ([("aa", "ab", "ab")], [(0, ["norm"])]),  # one of three differs
        ([("aa", "ab")], []),  # nobody knows which is right
        ([("aa", "ab", "ac")], []),  # each has its own
        ([("aa", "aa", "ab", "ab")], []),  # two groups, such as pipelines
        ([("aa",), ("ab",)], []),
        ([("aa", "aa"), ("ab", "aa"), ("aa", "aa"), ("ab", "aa")], [(1, ["norm"]), (3, ["norm"])]),
    ],
)
def test_replicas_differ_if_they_were_equal_or_most_are(steps, fired):
    assert replicas(*steps) == fired


def test_zeros_that_are_equal_beside_shards_are_no_replicas():
    assert replicas(("aa", "ab"), ("ba", "ab"), varied=False) == []


@pytest.mark.parametrize(
    ("parts", "varied", "fired"),
    [
        (["aa", "bb", "bb"], True, []),
        (["aa", "ab", "ab"], True, [(1, ["body"]), (2, ["body"])]),
        (["ab", "cd", "cd"], True, []),  # such as stages of a pipeline, whose layers have the same names
        (["aa", "ab", "ab"], False, []),  # ones are equal without being copies
    ],
)
def test_parts_on_meshes_of_their_own_are_copies_if_they_once_were(parts, varied, fired):
    assert replicas(("aa", "aa"), ("bb", "bb"), ("cc", "cc"), parts=parts, varied=varied) == fired


def test_replicas_differ_since_the_step_at_which_they_parted():
    both = [("aa", "aa"), ("aa", "ab"), ("aa", "ab")]
    assert replicas(*both) == [(1, ["norm"]), (2, ["norm"])]


def test_an_evaluation_has_no_gradients_to_judge():
    for rule in ("GradientFlow", "LostUpdates", "GradientsNotReset"):
        run = Steps()
        run.kinds["updates"]["update/Net_2.weight"][:] = 0
        run.facts["gradients_were_reset"] = False
        run.write(modes.EVAL)
        assert fires(run, rule) == []
