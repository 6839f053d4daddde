"""What each rule says of its fault: a person reads these sentences, and the numbers that convince.

It is long because each sentence is beside the run that it is about.
"""

from __future__ import annotations

import numpy as np
import pytest

from smdebug_default_rules.catalog import CATALOG
from tests.smdebug_default_rules import test_guards as guards
from tests.smdebug_default_rules import test_limits as limits
from tests.smdebug_default_rules import test_limits_of_layers as layers
from tests.smdebug_default_rules import test_limits_of_training as training
from tests.smdebug_default_rules import test_limits_of_trees_and_ranks as trees
from tests.smdebug_default_rules.inputs.test_token_labels import written as labels_of_tokens
from tests.smdebug_default_rules.made_runs import PARAMETERS
from tests.smdebug_default_rules.made_steps import Steps
from tests.smdebug_default_rules.values.test_computed_twice import ONCE, SAME, twice
from tests.smdebug_default_rules.words import more_runs

NAN = pytest.approx(np.nan, nan_ok=True)


def made(name, arrays):
    steps = Steps()
    for array in arrays:
        steps.kinds["outputs"][name] = array
        steps.write()
    return steps


# rule, run, value, limit, since, message
def logging(**numbers):
    """Six steps that log the same numbers."""
    steps = Steps()
    for _ in range(6):
        for name, value in numbers.items():
            steps.carry(name, value)
        steps.write()
    return steps


SENTENCES = [
    (
        "LossInput",
        lambda: limits.criterion({"given": "softmax"}),
        "softmax before cross entropy",
        None,
        0,
        "Cross entropy applies softmax itself, but got a softmax",
    ),
    (
        "LossInput",
        lambda: limits.criterion({"classes": 1}),
        "one class",
        None,
        0,
        "Cross entropy over a single class is always 0",
    ),
    (
        "LossInput",
        lambda: limits.criterion({}, broadcast=[32, 32]),
        "broadcast",
        None,
        0,
        ("Outputs and targets were broadcast to 32 x 32: each output is compared with all targets"),
    ),
    (
        "LossInput",
        lambda: limits.criterion({"expects": "probabilities", "given": "logits"}),
        "logits before cross entropy",
        None,
        0,
        ("Cross entropy takes probabilities here, but got the raw outputs of the last layer"),
    ),
    (
        "GradientsNotReset",
        lambda: limits.story({"gradients_were_reset": False}),
        False,
        True,
        0,
        (
            "The gradients were not reset between two steps of the optimizer (SGD): each backward"
            " pass adds to those of earlier steps"
        ),
    ),
    (
        "LostUpdates",
        lambda: training.parameters(1, a=training.still("Net_2.weight")),
        0.0,
        "> 0",
        0,
        (
            "Net_2.weight is bit-equal before and after the optimizer's step, with a gradient of "
            "rms 0.00971 in layer 2 (Linear)"
        ),
    ),
    (
        "LostUpdates",
        lambda: training.parameters(6, at=5, a=training.gone("Net_2.weight")),
        5,
        5,
        5,
        (
            "Net_2.weight no longer has a gradient, and does not change, although layer 2 "
            "(Linear) is still used: it had one at the 5 saved steps before"
        ),
    ),
    (
        "LostUpdates",
        lambda: training.parameters(1, a=training.owned("other.weight")),
        0,
        "> 0",
        0,
        (
            "The optimizer owns none of the model's 6 parameters: Net_0.weight and the others "
            "have gradients and never change"
        ),
    ),
    (
        "LostUpdates",
        lambda: training.parameters(3, a=training.still(*PARAMETERS)),
        0,
        "> 0",
        0,
        (
            "No step of the optimizer changes a parameter: Net_0.weight and 5 others have "
            "gradients and are bit-equal before and after each step"
        ),
    ),
    (
        "LostUpdates",
        lambda: training.parameters(3, a=training.gone(*PARAMETERS)),
        0,
        "> 0",
        0,
        (
            "No step of the optimizer changes a parameter: Net_0.weight and 5 others have no "
            "gradient when the optimizer steps, although a backward pass came before: they were "
            "cleared between the two"
        ),
    ),
    (
        "UnreachedParameters",
        lambda: training.parameters(2, a=training.without_gradient("Net_0.weight")),
        2,
        None,
        0,
        (
            "Net_0.weight had no gradient at any of 2 saved steps, as nothing before it in the "
            "model, while later layers learn: layer 0 (Linear) is cut off from the loss"
        ),
    ),
    (
        "UnreachedParameters",
        lambda: training.parameters(2, a=training.owned(*PARAMETERS[:4])),
        2,
        None,
        0,
        ("Net_4.weight has a gradient and belongs to no optimizer: layer 4 (Linear) never changes"),
    ),
    (
        "ModuleModes",
        lambda: limits.story({"modules": limits.DROPOUT, "training": False}),
        False,
        True,
        0,
        (
            "The optimizer steps while the model is in evaluation mode: layer Drop (Dropout) "
            "behaves as in evaluation"
        ),
    ),
    (
        "ModuleModes",
        lambda: limits.story(
            {"modules": limits.DROPOUT, "gradients": False, "optimizer_steps": False, "loss": None}
        ),
        True,
        False,
        0,
        (
            "A loss was computed without gradients while the model was in training mode: layer "
            "Drop (Dropout) behaves as in training, so that the evaluation is wrong"
        ),
    ),
    (
        "ModuleModes",
        lambda: limits.story({**limits.IN_EVALUATION, "other_mode": ["1"]}),
        False,
        True,
        0,
        "The model is in evaluation mode, but layer 1 (ReLU) is in training mode",
    ),
    (
        "ModuleModes",
        lambda: limits.story({**limits.IN_EVALUATION, "dropout_in_evaluation": 0.5}),
        False,
        True,
        0,
        (
            "Dropout of 0.5 was applied although the model is in evaluation mode: a function such"
            " as F.dropout was called without training=self.training, in Net"
        ),
    ),
    (
        "RepeatedInput",
        lambda: limits.inputs(*[limits.drawn()] * 2),
        "equal",
        None,
        1,
        ("Net_input_0 is bit-equal at all saved steps so far: the training gets the same 32 rows each time"),
    ),
    (
        "RepeatedInput",
        lambda: limits.inputs(*limits.batches(3), distinct=8),
        0.25,
        0.5,
        0,
        "Only 8 of the 32 rows of Net_input_0 are distinct",
    ),
    (
        "RepeatedInput",
        lambda: limits.inputs(*[np.full((32, 8), 0.5, np.float32)] * 3),
        0.0,
        "> 0",
        0,
        "All 256 values of Net_input_0 are 0.5: the inputs carry no information",
    ),
    (
        "InputScale",
        lambda: limits.inputs(np.full((32, 8), 150.0, np.float32), outputs=limits.first_layer(200.0)),
        150.0,
        100.0,
        0,
        (
            "Net_input_0 has a root mean square of 150 (mean 150, largest 150), and nothing "
            "scales it before the first layer"
        ),
    ),
    (
        "InputPadding",
        lambda: limits.inputs(limits.tokens(0.9)),
        0.9,
        0.8,
        0,
        "90% of the 1000 values of Net_input_0 are 0",
    ),
    (
        "TokenLabels",
        lambda: labels_of_tokens(*[{"equal": [0.1, 0.25, 1.0], "counted": 200}] * 3),
        0.25,
        1.0,
        0,
        (
            "Each label is the token two places after its input: labels are shifted twice. "
            "Only 25% are the next token"
        ),
    ),
    (
        "PolicyLearning",
        lambda: logging(reward=0.0, reward_std=0.0),
        1.0,
        0.95,
        0,
        (
            "The rewards of each group are equal at 5 logged steps in a row, at 0: every advantage is zero, "
            "and so is the gradient"
        ),
    ),
    (
        "BatchShape",
        lambda: limits.compared(8, 1, (8, 10)),
        1,
        8,
        0,
        "8 rows go into the model, and the loss compares 1",
    ),
    (
        "LearningRate",
        lambda: guards.with_rates(*[0.1] * 20, 6.0),
        60.0,
        3.5,
        20,
        "The learning rate of group 0 rose from 0.1 to 6 at step 20: 60 times",
    ),
    (
        "LearningRate",
        lambda: guards.with_rates(0.1, *[0.5e-5] * 31),
        5e-05,
        0.0001,
        1,
        (
            "The learning rate of group 0 has been 5e-06 or so since step 1, 5e-05 of its largest"
            " value: the training can no longer learn"
        ),
    ),
    (
        "LearningRate",
        lambda: guards.with_rates(*[0.0] * 51),
        0.0,
        "> 0",
        0,
        ("The learning rate has been 0 for 50 steps, since the training began: nothing can change"),
    ),
    (
        "LearningRate",
        lambda: guards.proportion(1e-6, [2.3] * 10),
        1e-06,
        1e-05,
        0,
        (
            "The root mean square of an update over that of its weights is at most 1e-06: at this"
            " learning rate the weights hardly change, and the loss stays at 2.3"
        ),
    ),
    (
        "LearningRate",
        lambda: guards.proportion(6e-5, [2.3] * 150),
        6e-05,
        6.66667e-05,
        0,
        (
            "The root mean square of an update over that of its weights is at most 6e-05: all 150"
            " steps together have moved the weights by 0.9% at most, and the loss stays at 2.3"
        ),
    ),
    (
        "LearningRate",
        lambda: guards.proportion(0.2, [1.0] * 6 + [9.0] * 5),
        0.2,
        0.1,
        0,
        (
            "The root mean square of an update over that of its weights is 0.2: at this learning "
            "rate the loss rose from 1 to 5"
        ),
    ),
    (
        "LearningRate",
        lambda: guards.proportion(0.6, [2.3] * 10),
        0.6,
        0.5,
        0,
        (
            "The root mean square of an update over that of its weights reached 0.6 in the first "
            "steps: at this learning rate they destroy the initial weights, and the loss, 2.3 at "
            "the start, is 2.3"
        ),
    ),
    (
        "ShrunkWeights",
        lambda: training.shrunk(0.03, [2.3] * 4),
        0.03,
        0.05,
        0,
        (
            "The weights of Net_0.weight have shrunk to 0.03 of their size at the first saved "
            "step, as have 2 of 3 layers, and the loss, 2.3 at first, is 2.3"
        ),
    ),
    (
        "AccumulationScale",
        lambda: limits.passes(limits.FOUR, limits.FOUR),
        4.0,
        1.0,
        0,
        (
            "4 backward passes make one step of the optimizer, and the loss is multiplied by 1: "
            "the gradient is the sum of the micro-batches, not their mean"
        ),
    ),
    (
        "ComputePrecision",
        lambda: limits.precision("float16", _0="f"),
        "float32",
        "float16",
        0,
        "layer 2 (Linear) gives float32, while autocast declares float16",
    ),
    ("LossScale", lambda: limits.scaler(8.0, 1.0), 1.0, 2.0, 1, "The loss scale fell from 8 to 1"),
    (
        "LossScale",
        lambda: limits.scaler(*[1000.0] * 6, skipped=range(6)),
        1000.0,
        1024.0,
        5,
        "The loss scale is 1000, and the last 6 saved steps were skipped",
    ),
    (
        "LossSpike",
        lambda: guards.with_losses(*[2.0] * 20, 50.0),
        25.0,
        10.0,
        20,
        "The loss jumped to 50 at step 20: 25 times the largest of the steps before",
    ),
    ("NonFiniteValues", lambda: guards.with_losses(2.0, np.nan), NAN, None, 1, "The loss is NaN at step 1"),
    (
        "NonFiniteValues",
        lambda: guards.with_losses(2.0, np.inf),
        np.inf,
        None,
        1,
        "The loss is infinite at step 1",
    ),
    (
        "NonFiniteValues",
        lambda: guards.with_losses(*[2.0] * 20, *[300.0] * 5),
        150.0,
        100.0,
        20,
        "The loss has been more than 100 times its first level since step 20",
    ),
    (
        "GradientFlow",
        lambda: training.flow(1e-6, 0.1, 1.0, count=3),
        1e-06,
        1e-05,
        0,
        (
            "The gradient vanishes before it reaches layer 0 (Linear): relative to its weights, "
            "that of Net_0.weight is 1e-06 of the last layer's"
        ),
    ),
    (
        "DeadUnits",
        lambda: made("1_output_0", [layers.zeros(0.975)] * 3),
        0.974609,
        0.95,
        0,
        "97% of the outputs of layer 1 (ReLU) are zero",
    ),
    (
        "SaturatedUnits",
        lambda: made("3_output_0", [layers.bounded(0.9)] * 3),
        0.9,
        0.85,
        0,
        "90% of the outputs of layer 3 (Tanh) are at -1 or 1",
    ),
    (
        "ConstantOutput",
        lambda: made("Net_output_0", [layers.columns()] * 3),
        0.0,
        1e-05,
        0,
        "Net_output_0 is the same for all 32 rows of the batch",
    ),
    (
        "StuckLoss",
        lambda: training.with_losses(training.noisy(2.3, 150)),
        2.30225,
        2.18746,
        0,
        (
            "The loss is 2.302 after 150 steps, and was 2.298 at the start: guessing among 10 "
            "classes gives 2.303"
        ),
    ),
    (
        "Generalisation",
        lambda: training.validated(training.FALLING, [1.9, 1.2, 1.0, 1.2, 1.3, 1.4]),
        1.4,
        1.15,
        23,
        (
            "The validation loss is 1.4, 1.4 times its best (1 at step 17), and was above it at "
            "the last 3 validations, while the training loss fell to 0.2"
        ),
    ),
    (
        "Generalisation",
        lambda: training.validated(training.FALLING, [2.0, 2.3, 2.4, 2.5, 2.6, 2.7]),
        1.25,
        1.15,
        0,
        (
            "The training loss fell from 2 to 0.4, and the validation loss never got better than "
            "2: it is 2.5 now"
        ),
    ),
    (
        "LeakedLabel",
        lambda: trees.trees(rounds=1, **trees.top()),
        0.99,
        0.98,
        0,
        (
            "f3 has 95% of the gain among 5 features, and the label explains 99.0% of its "
            "variance: it reveals the label"
        ),
    ),
    (
        "BoostingProgress",
        lambda: trees.trees([0.5] + [0.8] * 19, rate=0.3),
        1.6,
        1.5,
        1,
        "a-logloss rose from 0.5 to 0.8: each round makes it worse",
    ),
    (
        "BoostingProgress",
        lambda: trees.trees([0.5] + [0.8] * 19, rate=3.0),
        1.6,
        1.5,
        1,
        "a-logloss rose from 0.5 to 0.8 with an eta of 3",
    ),
    (
        "BoostingProgress",
        lambda: trees.trees([0.69] * 20, rate=1e-4),
        0.0001,
        0.0005,
        0,
        "eta is 0.0001: after 20 rounds a-logloss is 0.69, and was 0.69 after the first",
    ),
    (
        "BoostingProgress",
        lambda: trees.trees(rounds=3, top_features={}),
        3,
        3,
        0,
        "No tree has a split after 3 rounds: every row gets the same prediction",
    ),
    (
        "BoostingBalance",
        lambda: trees.trees(trees.GUESSED, labels=trees.RARE),
        0.99,
        0.97,
        0,
        (
            "99.0% of 3000 labels are of one class, and a-logloss is 0.056, no better than always"
            " guessing it (0.056)"
        ),
    ),
    (
        "BoostingBalance",
        lambda: trees.weighted(0.1),
        0.1,
        9.0,
        0,
        ("scale_pos_weight is 0.1, which makes the rarer class lighter still: for balance it is 9"),
    ),
    (
        "BoostingGeneralisation",
        lambda: trees.trees(trees.DOWN[:20], trees.worse(1.2)[:20]),
        1.2,
        1.15,
        10,
        ("b-logloss is 0.48, 1.2 times its best (0.4 in round 9), while the training's loss falls"),
    ),
    (
        "BoostingGeneralisation",
        lambda: trees.trees(trees.DOWN[:20], [0.6] * 20, **trees.predicted(1.0)),
        1.0,
        1.15,
        0,
        (
            "The training's logloss fell from 0.7 to 0.09456, and b-logloss never got better than"
            " 0.6: it is 0.6 now"
        ),
    ),
    (
        "Attention",
        lambda: more_runs.all_steps(2, more_runs.attending({"future": 1.0})),
        1.0,
        0.5,
        0,
        "Each label is the next token, and 100% of the tokens with one see later tokens",
    ),
    (
        "UnusedExperts",
        lambda: more_runs.routed(14),
        3,
        4,
        10,
        "Net_experts.0 and 2 others have had no gradient since step 10: the router sends the inputs to 1 of "
        "4 experts",
    ),
    (
        "CollapsedRepresentation",
        lambda: more_runs.coded(12, latent={"divergence": 0.9}, then={"divergence": 0.002}),
        0.002,
        0.005,
        20,
        "The divergence of the latent code from its prior is 0.002 nats over 8 dimensions since step 20: "
        "the decoder gets noise",
    ),
    (
        "ComputedTwice",
        lambda: more_runs.OfRanks(twice(_1=SAME, _2=SAME, _3=ONCE), range(4)),
        0,
        5,
        3,
        "Computed again, the output of fc1 at step 3 is not what the training used",
    ),
]


@pytest.mark.parametrize(("rule", "steps", "value", "limit", "since", "message"), SENTENCES)
def test_a_finding_says_what_is_wrong_and_by_how_much(rule, steps, value, limit, since, message):
    (_, finding), *_ = steps().evaluate(rule)
    assert finding.message == message
    assert finding.value == (pytest.approx(value, rel=1e-5) if type(value) is float else value)
    is_close = pytest.approx(limit, rel=1e-5) if type(limit) is float else limit
    assert (finding.threshold, finding.since) == (is_close, since)


def test_most_rules_have_a_sentence_here():
    assert len({rule for rule, *_ in SENTENCES}) > 0.75 * len(CATALOG)
