"""What a person reads of each case: its title, the numbers that convince, and what to try first.

It is long because it has the text of each case beside the others of its rule.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from smdebug.diagnosis import evidence_of, fold
from smdebug.diagnosis.wording import title_of
from smdebug_default_rules.catalog import CATALOG
from tests.smdebug_default_rules.test_words import SENTENCES
from tests.smdebug_default_rules.words.more_runs import RUNS

UNWRITTEN = (
    "Its address and version counter stayed, so PyTorch has not written to it. At 2 earlier steps, no bit "
    "had changed"
)
# rule: title, why, and the first words of what to try, of each of its runs
SAID: dict[str, list[tuple[str, tuple[str, ...], str]]] = {
    "LossInput": [
        (
            "Softmax is applied twice",
            ("With 10 classes this loss cannot fall below 1.461; guessing gives 2.303",),
            "Remove the softmax before the loss, often",
        ),
        (
            "Cross entropy over a single class",
            ("The 32 labels of this step have 1 class to choose from",),
            "Give the last layer one output for each class,",
        ),
        (
            "Outputs and targets have different shapes",
            ("The loss averages 1024 differences, and the batch has 32 rows",),
            "Give outputs and targets the same shape:",
        ),
        (
            "The loss needs probabilities",
            ("The outputs are -2.83 to 2.4; probabilities are 0 to 1",),
            "Set from_logits=True for raw outputs, or",
        ),
        (
            "Outputs and targets have different shapes",
            ("The loss averages 1024 differences, and the batch has 32 rows",),
            "Drop the last axis of the outputs, outputs.squeeze(1),",
        ),
        (
            "Outputs and targets have different shapes",
            ("The loss averages 1024 differences, and the batch has 32 rows",),
            "Drop the last axis of the targets, targets.squeeze(1),",
        ),
        (
            "Softmax is applied twice",
            ("With 10 classes this loss cannot fall below 1.461; guessing gives 2.303; it is 1.9 at step 0",),
            "Remove the softmax before the loss, often",
        ),
        (
            "The loss needs log-probabilities",
            ("The outputs are -2.83 to 2.4; log-probabilities are at most 0",),
            "Give NLLLoss the result of log_softmax, or",
        ),
        (
            "Sigmoid is applied twice",
            ("The loss of a label 0 cannot fall below 0.693, and that of a label 1 not below 0.313",),
            "Remove the sigmoid before the loss, often",
        ),
        (
            "The loss needs log-probabilities",
            ("The outputs are -2.83 to 2.4; log-probabilities are at most 0",),
            "Give kl_div logarithms first: F.kl_div(F.log_softmax(outputs,",
        ),
        (
            "Softmax over the batch",
            (
                "32 values share a sum of 1, where 10 classes should: guessing gives 3.466, not 2.303; "
                "the loss is 3.1 at step 0",
            ),
            "Take the softmax over the axis of the classes,",
        ),
        (
            "Softmax over the wrong axis",
            ("7 values share a sum of 1, where 10 classes should: guessing gives 1.946, not 2.303",),
            "Take the softmax over the axis of the classes,",
        ),
        (
            "The error is maximised",
            ("The loss is -2.3; cross entropy is 0 at best and rises from there",),
            "Give the optimizer the criterion itself, without",
        ),
        (
            "Targets are out of the model's reach",
            ("Targets have a mean of 0 and a spread of 1, and the model returns 0 and more",),
            "End the model with the last linear",
        ),
        (
            "Targets are out of the model's reach",
            ("Targets have a mean of 5.5 and a spread of 1, and the model returns 0 to 1",),
            "End the model with the last linear",
        ),
        (
            "The weights favour the frequent class",
            ("30 positive and 570 negative labels so far: 19 would make up for them, not 0.0526",),
            "Divide the other way round: pos_weight is",
        ),
        (
            "The weights favour the frequent class",
            ("400 labels of class 0 weigh 2 each, and 40 of class 2 0.2",),
            "Give rare classes the large weights, such",
        ),
        (
            "A class is left out of the loss",
            ("80 of 400 labels so far are left out; each other class has 80 to 80",),
            "Leave ignore_index out, or give it a number",
        ),
        (
            "The target of the loss learns, too",
            ("2 sides of the error have a gradient, at 3 saved steps in a row",),
            "Compute the target without a gradient: with",
        ),
        (
            "Dropout after the last layer",
            ("160 of 320 scores are 0",),
            "Put the dropout before the last linear layer,",
        ),
        (
            "ReLU before the loss",
            ("152 of 320 scores are 0", "No label can be given a probability below 0.5"),
            "Remove the ReLU before the loss,",
        ),
    ],
    "GradientsNotReset": [
        (
            "Gradients are not reset",
            ("Calls at step 0: 1 of backward(), 1 of step(), and no gradient was empty before",),
            "Call optimizer.zero_grad() once per optimizer",
        ),
        (
            "The optimizer steps twice",
            ("2 calls of step() for 1 of backward() at 3 saved steps in a row",),
            "Call step() once for each backward(): look",
        ),
    ],
    "LostUpdates": [
        (
            "1 of 6 parameters does not change",
            ("Net_2.weight: gradient 0.00971, update 0; the 5 other parameters change by 0.91% a step",),
            "Look for code that sets .grad to None, restores",
        ),
        (
            "A layer has stopped learning",
            ("A gradient at 5 saved steps in a row, and none at step 5, where 5 other parameters have one",),
            "Look for .detach(), torch.no_grad() or .grad",
        ),
        (
            "The optimizer has none of the model's parameters",
            ("The optimizer has 0 of the 6 parameters, and 6 have gradients",),
            "Check that the optimizer was given the parameters",
        ),
        (
            "No step changes a parameter",
            ("0 of 6 parameters changed at 3 saved steps in a row",),
            "Look for code that sets .grad to None, restores",
        ),
        (
            "No step changes a parameter",
            ("0 of 6 parameters changed at 3 saved steps in a row",),
            "Call zero_grad() before backward(), never",
        ),
        (
            "1 of 3 weights is set back after each step",
            ("Net_0.weight: update 0.001 at step 50, and no difference to step 0",),
            "Look for code in the loop that writes",
        ),
        (
            "Most updates are rounded away",
            (
                "100% of the sampled values have not changed in 50 steps",
                "A step changes a value by about 2e-05; at the size of Net_0.weight the numbers of float16 "
                "are 0.0001 apart",
            ),
            "Keep the weights in float32 and compute in",
        ),
    ],
    "UnreachedParameters": [
        (
            "The first layers are cut off from the loss",
            ("1 of 3 weights had no gradient at 2 saved steps",),
            "Look for .detach(), .item(), torch.no_grad()",
        ),
        (
            "A layer belongs to no optimizer",
            ("1 of 3 weights belong to no optimizer and have gradients",),
            "Give the optimizer model.parameters(), and",
        ),
        (
            "Layers in a plain list are not trained",
            ("4 parameters of Net.hidden at 2 saved steps in a row, of which the optimizer has 0",),
            "Make the list an nn.ModuleList (of parameters,",
        ),
        (
            "A plain tensor is not trained",
            ("1 parameter of Net.scale at 2 saved steps in a row, of which the optimizer has 0",),
            "Make the tensor an nn.Parameter before",
        ),
        (
            "An output of the model has no loss",
            ("1 of 4 weights had no gradient at 51 saved steps, and give an output of the model",),
            "Add the loss of this output to",
        ),
        (
            "The router gets no gradient",
            ("0 of 51 saved steps have a gradient of the router; 4 of 4 experts have one",),
            "Multiply what each expert returns by the",
        ),
        (
            "All tokens have the same position",
            ("1 of 20 positions is used at each of 51 saved steps",),
            "Give the positions torch.arange(length): look",
        ),
        (
            "Positions are never used",
            ("0 of 2 saved steps have a gradient of the table of positions",),
            "Add what the table of positions gives to",
        ),
        (
            "All gradients are zero",
            ("6 of 6 gradients are 0 at 51 saved steps in a row",),
            "Print what the loss is multiplied by",
        ),
        (
            "An optimizer never makes a step",
            ("2 of 3 weights belong to it, and had gradients at 10 saved steps in a row",),
            "Call step() of this optimizer, too, after",
        ),
        (
            "A copy of the model never follows it",
            ("Its weights are as they were at the start at 10 saved steps in a row",),
            "Update it in the loop, under torch.no_grad()",
        ),
        (
            "Frozen layers look untrained",
            ("2 of 3 weights are frozen, and the same at 10 saved steps in a row",),
            "Load the trained weights before the layers are frozen",
        ),
        (
            "The mean of the weights is the weights of now",
            ("It keeps 0.01 of what it was and takes 0.99 of the weights, at 5 saved steps in a row",),
            "Keep the large share of the mean:",
        ),
        (
            "The condition never reaches the model",
            ("1 of 6 rows is used at each of 51 saved steps, while Net_input_1 has numbers from 0 to 4",),
            "Check the share of rows whose condition is dropped",
        ),
        (
            "The model that is evaluated never changes",
            ("0 of its weights have changed in 100 steps, and 3 evaluations were of it",),
            "Update the copy after each step of the optimizer",
        ),
    ],
    "ModuleModes": [
        (
            "The model is trained in evaluation mode",
            ("1 of 7 modules depend on the mode: Dropout",),
            "Call model.train() before the training loop,",
        ),
        (
            "The model is evaluated in training mode",
            ("1 of 7 modules depend on the mode: Dropout",),
            "Call model.eval() before the evaluation,",
        ),
        (
            "A layer stays in training mode in evaluation",
            ("1 of 6 modules are in training mode",),
            "Look for a call of .train() on this layer",
        ),
        (
            "Dropout is active in evaluation",
            ("50% of the values are set to 0 in evaluation",),
            "Give F.dropout the argument training=self.training,",
        ),
    ],
    "RepeatedInput": [
        (
            "Every step trains on the same batch",
            ("1 batch of 32 rows at 2 saved steps",),
            "Draw a new batch at every step: look for",
        ),
        (
            "Batches contain the same rows several times",
            ("32 rows, 8 distinct: 25%, where chance leaves above 50%",),
            "Seed each worker of the data loader separately",
        ),
        (
            "Inputs are all the same value",
            ("Smallest and largest value are 0.5, at 3 saved steps in a row",),
            "Look at what prepares the inputs: a scaling,",
        ),
        (
            "All rows of a batch have the same noise",
            ("100% in common over 10 saved steps; rows with noise of their own have 3%",),
            "Draw a noise for each row: torch.randn_like(batch).",
        ),
        (
            "The noise is the same at every step",
            ("1 noise at 5 saved steps, from -3.2 to 3.4 at each",),
            "Draw the noise anew for each batch, inside",
        ),
        (
            "Both views of a row are the same",
            ("8 of 8 pairs of codes that were compared are equal, at 3 saved steps in a row",),
            "Augment each view by itself: call the",
        ),
        (
            "The time is the same at every step",
            ("1 value, 0.3, in all rows of 10 saved steps",),
            "Draw the time anew for each row",
        ),
        (
            "The sampler has a weight for each class, not for each row",
            ("10 weights for 400 rows, in batches of 32",),
            "Give WeightedRandomSampler a weight for each row",
        ),
    ],
    "InputScale": [
        (
            "Inputs are not scaled",
            ("Root mean square 150, where about 1 is usual",),
            "Standardise the inputs: subtract the mean",
        ),
        (
            "Inputs are not scaled",
            (
                "Column 3 reaches 5000, and the 7 others 1 at most",
                "Root mean square 1053, where about 1 is usual",
            ),
            "Standardise the inputs: subtract the mean",
        ),
    ],
    "InputPadding": [
        (
            "Inputs are mostly padding",
            ("Only 10% of the places hold other ids (at least 20% is usual)",),
            "Truncate or bucket the sequences by length,",
        ),
    ],
    "TokenLabels": [
        (
            "Labels are shifted twice",
            ("100% of the labels are the token two places ahead, 25% the next one",),
            "Shift labels once: models of transformers",
        ),
        (
            "Padding is learned",
            ("At most 5% of the labels that count should be padding",),
            "Ignore padding by the mask, not by its id:",
        ),
        (
            "Padding is learned",
            ("A model that knows padding alone is right about 60% of the labels",),
            "Give the loss ignore_index=0, the class of padding,",
        ),
        (
            "The end of text is never learned",
            ("0 of 8 ends of texts are learned, at 4 saved steps in a row",),
            "Ignore padding by the mask, not by its id:",
        ),
        (
            "All labels are ignored",
            ("0 of the labels count in a batch of 32 rows: the mean of nothing is NaN",),
            "Compare the labels with ignore_index: all",
        ),
        (
            "All labels are ignored",
            ("0 of the labels count in a batch of 32 rows: the mean of nothing is NaN",),
            "Look at what masks the labels: a template",
        ),
    ],
    "BatchShape": [
        (
            "Inputs and labels differ in number",
            ("The output has the shape [8, 10], for 8 rows of input",),
            "Compare the first axis of inputs, outputs",
        ),
        (
            "A recurrent layer mixes the rows of a batch",
            ("Its output is [32, 12, 16] and it keeps 12 hidden states, while the loss compares 32 rows",),
            "Give the layer batch_first=True, or transpose",
        ),
        (
            "A recurrent layer mixes the rows of a batch",
            ("Its output is [12, 32, 16] and it keeps 12 hidden states, while the loss compares 32 rows",),
            "Give the layer [rows, steps, features], as",
        ),
    ],
    "LearningRate": [
        ("The learning rate jumps", (), "Look for what sets the rate at step 20: a"),
        (
            "The learning rate falls to nearly nothing",
            ("The largest rate was 0.1, and 30 steps had 5e-06",),
            "Check the length of the schedule, such as",
        ),
        (
            "The learning rate is 0",
            ("0 at all 50 steps so far; a warm-up leaves 0 within 50",),
            "Look at the warm-up: an integer division",
        ),
        (
            "The learning rate is too low",
            ("An update is 1e-06 of the weights at a learning rate of 0.1; about 0.001 is usual",),
            "Raise the learning rate from 0.1 by a factor",
        ),
        (
            "The learning rate is too low",
            ("An update is 6e-05 of the weights at a learning rate of 0.1; about 0.001 is usual",),
            "Raise the learning rate from 0.1 by a factor",
        ),
        (
            "The learning rate is too high",
            ("An update is 0.2 of the weights at a learning rate of 0.1; about 0.001 is usual",),
            "Lower the learning rate from 0.1 by a factor",
        ),
        (
            "The learning rate is too high",
            ("An update is 0.6 of the weights at a learning rate of 0.1; about 0.001 is usual",),
            "Lower the learning rate from 0.1 by a factor",
        ),
        (
            "Gradients are clipped to nearly nothing",
            ("The norms of 10 saved steps differ by less than 0.1%; clipping at 1 is usual",),
            "Raise the limit of the clipping, such as",
        ),
        (
            "The learning rate is too low",
            ("An update is 1e-06 of the weights at a learning rate of 0.1; about 0.001 is usual",),
            "Raise the learning rate from 0.1 by a factor",
        ),
        (
            "The warm-up does not end",
            ("The rate is 0.4% of 0.1, and rises once in 20 steps",),
            "Call scheduler.step() after each optimizer.step() and",
        ),
        (
            "The optimizer begins anew after a resume",
            ("Its moments have seen 0 updates, and the weights 61 steps",),
            "Save optimizer.state_dict() with the weights, and load it",
        ),
        (
            "The schedule begins again after a resume",
            ("The learning rate was 0.05 before and is 0.1 now, as at the start",),
            "Save scheduler.state_dict() with the weights, and load it",
        ),
        (
            "The learning rate swings up and down",
            ("It came back to 0.1 3 times, every 20 steps",),
            "Give the schedule the length of the training",
        ),
    ],
    "ShrunkWeights": [
        (
            "Weight decay is too strong",
            ("Net_0.weight: root mean square 0.015, and 0.5 at first",),
            "Lower the weight decay: 1e-5 to 1e-3 for",
        ),
        (
            "Weight decay is too strong",
            ("Net_0.weight: root mean square 0.015, and 0.5 at first",),
            "Lower the weight decay of 0.5: 1e-5 to 1e-3",
        ),
        (
            "The weight decay cancels the gradients",
            (
                "Net_0.weight: root mean square 0.048 of the gradient, and 0.048 of the decay",
                "At 51 saved steps in a row",
            ),
            "Lower the weight decay of 0.5: 1e-5 to 1e-3",
        ),
    ],
    "AccumulationScale": [
        (
            "Accumulated losses are added up, not averaged",
            ("4 passes times 1 is 4; a mean would have 1",),
            "Divide the loss of each micro-batch by 4",
        ),
        (
            "Accumulated losses are divided twice",
            ("8 passes times 0.0156 is 0.125; a mean would have 1",),
            "Divide the loss by the number of",
        ),
        (
            "Gradients are reset while they accumulate",
            ("1 of 4 batches has an effect on the step",),
            "Call optimizer.zero_grad() once per step, after optimizer.step(),",
        ),
        (
            "The loss is divided, but nothing accumulates",
            ("1 divided by 8 is 0.125; a mean would have 1",),
            "Call optimizer.step() and optimizer.zero_grad() after every 8 batches only",
        ),
        (
            "Fewer losses accumulate than they are divided by",
            ("4 divided by 8 is 0.5; a mean would have 1",),
            "Call optimizer.step() and optimizer.zero_grad() after every 8 batches only",
        ),
    ],
    "ComputePrecision": [
        (
            "A layer computes in the wrong precision",
            ("1 of 3 layers give float32, 2 another type",),
            "Call the layer inside the autocast context,",
        ),
    ],
    "LossScale": [
        (
            "The loss scale collapses",
            ("Scale 1, 8 at first, where 1024 and more are usual",),
            "Look for the layer or the loss that overflows",
        ),
        (
            "Steps are skipped again and again",
            ("Scale 1000, 1000 at first, where 1024 and more are usual",),
            "Look for the layer or the loss that overflows",
        ),
        (
            "Gradients underflow in float16",
            ("Net_0.weight: 1e-06 at most, and 30% are 0; float16 loses digits below 6.1e-05",),
            "Scale the loss: scaler = torch.amp.GradScaler(), scaler.scale(loss).backward(),",
        ),
        (
            "Gradients are clipped before they are unscaled",
            ("Norm 1.5e-05 at 5 saved steps in a row; times 65536: 1",),
            "Call scaler.unscale_(optimizer) after",
        ),
    ],
    "LossSpike": [
        (
            "The loss jumps",
            ("50 at step 20, and 2 at most before",),
            "Look at the batch of this step for rows out",
        ),
        (
            "An input jumps",
            ("51 at step 5, and 1 at most before",),
            "Look at the batch of step 5 for rows out",
        ),
    ],
    "NonFiniteValues": [
        (
            "The loss is NaN",
            ("The loss was 2 before, and 2 at first",),
            "Look for the operation that first gave it:",
        ),
        (
            "The loss is infinite",
            ("The loss was 2 before, and 2 at first",),
            "Look for the operation that first gave it:",
        ),
        ("The loss diverges", ("300 at step 24, 2 at first",), "Clip the norm of the gradients, and lower"),
        (
            "The loss is NaN",
            ("0 losses before it were finite",),
            "Look at the rows of this batch that are not",
        ),
        (
            "The loss is NaN",
            ("The loss was 9 before, and 1 at first",),
            "Clip the norm of the gradients, and lower",
        ),
        (
            "Values are NaN or infinite",
            ("The loss was 2.3 before, and 2.3 at first",),
            "Look for the operation that first gave it:",
        ),
        (
            "Values grow from layer to layer",
            ("0_output_0: 101 times the rms of the input (limit 100)",),
            "Scale the first weights by the root of the",
        ),
        (
            "A step throws the weights away",
            (
                "Targets have a mean of 5000 and a spread of 10, and the root mean square of the "
                "outputs is 0.99",
            ),
            "Standardise the targets, (y - mean) / std",
        ),
    ],
    "GradientFlow": [
        (
            "Gradients vanish",
            ("Gradient over weights: 1e-06 in Net_0.weight, 1 in the last layer",),
            "Replace sigmoid and tanh by ReLU or GELU,",
        ),
        (
            "Gradients vanish",
            (
                "Gradient over weights: 1e-06 in Net_0.weight, 1 in the last layer",
                "25% of the values of the mask attention_mask are 1",
            ),
            "Check that the mask is not inverted: True",
        ),
    ],
    "DeadUnits": [
        (
            "A layer outputs only zeros",
            ("499 of 512 values are 0",),
            "Lower the learning rate, and start the biases",
        ),
        (
            "A layer outputs only zeros",
            (
                "512 of 512 values are 0",
                "Net_input_0 has a root mean square of 0.0011, where about 1 is usual",
            ),
            "Look at how the inputs are scaled: they are",
        ),
    ],
    "SaturatedUnits": [
        (
            "A layer is stuck at its limits",
            ("Only 10% of the values are where the slope is not nearly 0",),
            "Start with smaller weights (Xavier initialisation),",
        ),
        (
            "A layer is stuck at its limits",
            ("Only 0% of the values are where the slope is not nearly 0",),
            "Scale the inputs to about 1: Net_input_0",
        ),
    ],
    "ConstantOutput": [
        (
            "The output is the same for every input",
            ("32 different rows, and the spread of the output is 0 of its size",),
            "Look for the first layer whose output is",
        ),
        (
            "The output is the same for every input",
            ("32 different rows, and the spread of the output is 0 of its size",),
            "Do not put a softmax over a single unit:",
        ),
    ],
    "StuckLoss": [
        (
            "The model does not learn",
            ("In 150 steps the loss did not fall; from step to step it varies by 0.011",),
            "Check that inputs and labels belong together:",
        ),
        (
            "The model does not learn",
            (
                "Net_input_0 has a root mean square of 0.00098, where about 1 is usual",
                "In 150 steps the loss did not fall; from step to step it varies by 0.011",
            ),
            "Look at how the inputs are scaled: they are",
        ),
        (
            "The model does not learn",
            (
                "Net_input_0 has a mean of -0.42 and a spread of 0.005 only",
                "In 150 steps the loss did not fall; from step to step it varies by 0.011",
            ),
            "Look at how the inputs are scaled: their values",
        ),
        (
            "The model does not learn",
            (
                "Targets have a mean of 5000 and a spread of 10, and the root mean square of the "
                "outputs is 0.968",
                "In 150 steps the loss did not fall; from step to step it varies by 1.5e+03",
            ),
            "Standardise the targets, (y - mean) / std",
        ),
        (
            "The loss has risen to where it began",
            ("In 250 steps the loss did not fall; from step to step it varies by 0.011",),
            "Look at what changed where the loss rose:",
        ),
        (
            "The loss is zero from the first step",
            ("1e-09 at all 20 steps, of a Kullback-Leibler divergence",),
            "Look at where the targets come from:",
        ),
        (
            "The model does not learn",
            (
                "Each of 64 rows is to be told from the 63 others of its batch",
                "In 150 steps the loss fell by 0.8%; from step to step it varies by 0.00074",
            ),
            "Divide the similarities by a temperature of",
        ),
        (
            "The loss is the same at every step",
            (
                "0.69315 at each of 60 steps, with other batches and other weights",
                "0.69315 is ln 2: what a logistic loss gives for a difference of 0",
            ),
            "Print the parts of the loss: two sides may cancel",
        ),
    ],
    "Generalisation": [
        (
            "The model overfits",
            ("Validation 1.4, training 0.2 at the last of 6 validations",),
            "Stop at the best validation, or restore the",
        ),
        (
            "The model memorises",
            ("Validation 2.5, training 0.4 at the last of 4 validations",),
            "Check that the labels belong to the inputs,",
        ),
        (
            "Validation inputs are prepared differently",
            ("Validation 2.5, training 0.4 at the last of 4 validations",),
            "Prepare the inputs of the validation as those",
        ),
        (
            "Validation inputs are prepared differently",
            ("Validation 2.5, training 0.4 at the last of 4 validations",),
            "Prepare the inputs of the validation as those",
        ),
        (
            "The model memorises",
            ("Validation 2.5, training 0.4 at the last of 4 validations",),
            "Check that the labels belong to the inputs,",
        ),
    ],
    "LeakedLabel": [
        (
            "A feature reveals the label",
            ("95% of the gain is of 1 feature; 4 others share 5%",),
            "Find out when the value of this feature becomes",
        ),
    ],
    "BoostingProgress": [
        (
            "Each round makes the loss worse",
            ("0.8 after 20 rounds, 0.5 at best in round 0",),
            "Check the sign of gradients and hessians",
        ),
        (
            "The learning rate (eta) is too high",
            ("0.8 after 20 rounds, 0.5 at best in round 0",),
            "Set eta to 0.05-0.3, and choose the number",
        ),
        (
            "The learning rate (eta) is too low",
            ("The loss changed by 0.00% in 20 rounds",),
            "Set eta to 0.05-0.3, and choose the number",
        ),
        (
            "The trees have no splits",
            ("0 splits in 3 saved rounds",),
            "Lower min_child_weight, gamma and reg_alpha,",
        ),
    ],
    "BoostingBalance": [
        (
            "The labels are imbalanced",
            ("30 of 3000 rows are of the other class",),
            "Set scale_pos_weight to the number of negative",
        ),
        (
            "The class weight is the wrong way round",
            ("9 negative labels for each positive one",),
            "Set scale_pos_weight to 9, negative labels",
        ),
    ],
    "BoostingGeneralisation": [
        (
            "The model overfits",
            ("Round 9 was the best, 20 rounds were trained",),
            "Stop at the best round: early_stopping_rounds,",
        ),
        (
            "The model memorises",
            ("Predictions are 1 standard errors from chance; 3 are clear",),
            "Check that each label belongs to its row:",
        ),
    ],
    "InitialWeights": [
        (
            "All weights start at 0",
            ("0 of 3 weights have a value other than 0",),
            "Never start all weights of a layer at the",
        ),
        (
            "All weights of a layer start equal",
            ("256 weights, 1 value",),
            "Never start all weights of a layer at the",
        ),
        (
            "The first weights are too large",
            ("Gain 6.1, where Kaiming has 1.4 and Xavier 1",),
            "Leave the framework's own initialisation,",
        ),
        (
            "The first weights are too small",
            ("Gain 0.0009, where Kaiming has 1.4 and Xavier 1",),
            "Leave the framework's own initialisation,",
        ),
    ],
    "LabelBalance": [
        (
            "The labels are imbalanced",
            ("38 of 3840 labels are of another class: always guessing class 0 is right 99.0% of the time",),
            "Weight the classes in the loss, or sample",
        ),
        (
            "All labels are of one class",
            ("1024 labels, 1 class",),
            "Look for a filter, a comparison or a conversion",
        ),
        (
            "Each batch has a class of its own",
            ("1 of 10 classes in a batch of 32 rows, at 6 saved steps in a row",),
            "Shuffle the rows before they are put",
        ),
        (
            "Each batch has a range of targets of its own",
            (
                "All 32 targets of a batch are in order, at 6 saved steps in a row; batches differ by "
                "6.0 times their spread",
            ),
            "Shuffle the rows before they are put",
        ),
        (
            "The sampler favours the frequent class",
            (
                "67% of 960 labels are of the most frequent class, which has 50% of the rows; 1 / count as "
                "weight would draw 33%",
            ),
            "Weigh each row with 1 / count of its class",
        ),
    ],
    "RevealedTargets": [
        (
            "An input is the target",
            ("320 of 320 rows at 5 saved steps are equal",),
            "Leave that column out of the inputs, or take",
        ),
        (
            "The targets are tokens that the model is given",
            ("320 of 320 rows at 5 saved steps are equal",),
            "Shift the targets by one: inputs tokens[:,",
        ),
    ],
    "ElementCorruption": [
        (
            "A single value is corrupted",
            ("100 at step 10, and 0.0352 at most before",),
            "Resume from the last checkpoint before this",
        ),
    ],
    "UnusedExperts": [
        (
            "The router uses 1 of 4 experts",
            ("3 of 4 experts had no gradient at any of the last 12 saved steps",),
            "Add a balancing loss with a weight of",
        ),
    ],
    "CollapsedRepresentation": [
        (
            "The posterior collapses",
            ("0 of 8 latent dimensions say something; the divergence was 0.9 at most",),
            "Lower the weight of the divergence, or",
        ),
        (
            "All embeddings are alike",
            ("Mean cosine of two rows 0.9950 at step 90, and 0.20 before",),
            "Give the loss something that keeps inputs",
        ),
        (
            "All embeddings are alike",
            ("Variance over the rows 8e-06 at step 90, and 4 before",),
            "Give the loss something that keeps inputs",
        ),
    ],
    "Attention": [
        (
            "The model sees the tokens that it should predict",
            (
                "None of the 2 attention layers checked hides what follows, at 2 checked steps in a row; the "
                "loss is 3.47 at step 1",
            ),
            "Mask what follows each token: is_causal=True",
        ),
        (
            "The padding mask is inverted",
            ("0 tokens and all of the padding are seen in 32 rows of 16, at 2 checked steps in a row",),
            "Invert the mask: key_padding_mask of PyTorch",
        ),
        (
            "Attention mixes the rows of a batch",
            ("Weights of 32 x 32 for inputs of 32 rows and 16 tokens, at 2 checked steps in a row",),
            "Give nn.MultiheadAttention and nn.TransformerEncoderLayer batch_first=True,",
        ),
        (
            "Attention is normalised over the wrong axis",
            (
                "The softmax before 2 products with the values is over the last axis but one, at 2 checked "
                "steps in a row",
            ),
            "Take the softmax of the scores [..., queries, keys]",
        ),
        (
            "The scores of attention are not divided",
            (
                "A token looks at 19% of the 16 tokens in effect, at 2 checked steps in a row; divided by "
                "the root of 64, it would look at 94%",
            ),
            "Divide the scores before the softmax by the root of the width of a head:",
        ),
    ],
    "Adapters": [
        (
            "Adapters belong to no optimizer",
            ("2 of 2 adapters, at every saved step from step 0 on",),
            "Attach the adapters before the optimizer",
        ),
        (
            "Adapters start where they cannot learn",
            ("1 of 2 adapters, at every saved step from step 0 on",),
            "Start lora_A at random and only lora_B at",
        ),
        (
            "Adapters stay zero",
            ("2 of 2 adapters, at every saved step from step 0 on",),
            "Look for what keeps lora_B at zero: requires_grad",
        ),
        (
            "Adapters are not used",
            ("1 of 2 adapters, at every saved step from step 0 on",),
            "Compare target_modules with the names in",
        ),
        (
            "The model is trained beside its adapters",
            ("2 of 2 adapters, at every saved step from step 0 on",),
            "Freeze the model before the adapters are",
        ),
        (
            "The new head is frozen",
            (
                "Net_head.weight is spread as new weights are, by 0.113, and was frozen at 10 saved steps in "
                "a row",
                "2 of the 2 other frozen weights look trained",
            ),
            "Train the head with the adapters: name",
        ),
    ],
    "PolicyLearning": [
        (
            "No completion is better than the others",
            ("reward_std is 0, and the reward was 0 at first",),
            "Call the reward function on some completions:",
        ),
        (
            "Completions come from another policy",
            ("The gap is above 0.05 at 5 logged steps in a row; the same weights differ by 0.01",),
            "Give the sampler the new weights before",
        ),
        (
            "Completions come from another policy",
            ("0.5 to 0.5 at 5 logged steps in a row; 0.8 to 1.25 is usual",),
            "Compute old log probabilities with the temperature,",
        ),
        (
            "The policy collapses",
            ("2% of the entropy is left after 10 logged steps",),
            "Check the sign of the entropy bonus, lower",
        ),
        (
            "The policy leaves its reference",
            ("The reward was 0.1 at first, and is 0.1 now",),
            "Lower the learning rate or raise beta, the",
        ),
        (
            "The entropy of the policy is punished",
            ("At 5 of 5 saved steps the loss grows with the entropy",),
            "Subtract the entropy from the loss: loss =",
        ),
        (
            "All actions have the same advantage",
            ("The largest and the smallest advantage are 0 at 21 saved steps in a row",),
            "Print rewards and advantages of one batch:",
        ),
    ],
    "Preferences": [
        (
            "The policy learns to prefer rejected completions",
            ("The margin fell from -0.05 to -0.09; guessing prefers 50% of the chosen ones",),
            "Read a pair of the data: which completion",
        ),
        (
            "The reference moves with the policy",
            ("rewards/margins is 0 at 5 logged steps in a row; it is 0 before the first update alone",),
            "Give the reference a copy of the weights",
        ),
    ],
    "RanksAlike": [
        (
            "Ranks see the same data",
            ("1 input for 2 ranks, at 2 saved steps in a row",),
            "Give the data loader a DistributedSampler,",
        ),
    ],
    "MissingRank": [
        (
            "Rank worker_1 takes no part in a step",
            ("1 of 2 ranks saved step 10",),
            "Look at the log of this rank: it may have",
        ),
    ],
    "ComputedTwice": [
        (
            "A computation on worker_0 went wrong once",
            (
                "The output of fc1: 5 further computations have given the same value, and it is another one",
                "At 2 earlier steps, all bits were the same twice",
            ),
            "Resume from the last checkpoint before this",
        ),
        (
            "The same numbers give other results on worker_0",
            (
                "The gradient of Net_fc1.weight: 5 further computations have given 3 values, 2 times the "
                "first",
                "At 2 earlier steps, all bits were the same twice",
            ),
            "Move the training to another device, from",
        ),
        (
            "Weights on worker_0 changed in memory",
            ("Net_fc1.weight: one bit of 2,048 values flipped, and 0.5 became 2", UNWRITTEN),
            "Resume from the last checkpoint before this step, on another",
        ),
        (
            "Gradients on worker_0 changed in memory",
            (
                "Net_fc1.weight: 600 of 2,048 values changed, side by side from within one row to another",
                UNWRITTEN,
            ),
            "Resume from the last checkpoint before this step, on another",
        ),
        (
            "Optimizer state on worker_0 changed in memory",
            ("exp_avg of Net_fc1.weight: one bit of 2,048 values flipped, and 0.5 became 2", UNWRITTEN),
            "Resume from the last checkpoint before this step, on another",
        ),
    ],
    "SlowRank": [
        (
            "Rank worker_3 delays the others",
            (
                "What it takes longest for, beside the others: the forward pass (100 ms more)",
                "They have waited since step 20, for 30 s of training",
            ),
            "Look for what is different on its machine",
        ),
    ],
    "ReplicasDiffer": [
        (
            "Ranks have different weights",
            ("Ranks that differ: 1 of 3, where 0 should after a step",),
            "Wrap the model in DistributedDataParallel",
        ),
    ],
}


def _cases():
    met: Counter[str] = Counter()
    for rule, run, *_ in [*SENTENCES, *RUNS]:
        yield pytest.param(rule, run, SAID[rule][met[rule]], id=f"{rule}-{met[rule]}")
        met[rule] += 1


CASES = list(_cases())


def _issue(rule, run):
    """The problem that the rule's first finding in the run is."""
    (step, finding), *_ = run().evaluate(rule)
    made = CATALOG[rule].load()
    steps = [(step, [finding.to_dict()])]
    (issue,) = fold(evidence_of(rule, steps, advice=made.advice, cause=made.cause))
    return issue


@pytest.mark.parametrize(("rule", "run", "said"), CASES)
def test_a_case_has_a_title_two_numbers_and_its_own_advice(rule, run, said):
    issue = _issue(rule, run)
    title, why, first = said
    assert (title_of(issue), issue.why) == (title, why)
    assert issue.advice[0].startswith(first)
    assert len(_numbers(f"{issue.what} {' '.join(issue.why)}")) >= 2


def test_every_rule_and_every_text_has_a_run():
    assert set(SAID) == set(CATALOG)
    assert len(CASES) == sum(map(len, SAID.values()))


def _numbers(text):
    """The numbers of a text, without those in names of tensors and layers."""
    return re.findall(r"(?<![\w./])-?\d[\d.,]*(?:e[-+]?\d+)?%?(?![\w])", text)
