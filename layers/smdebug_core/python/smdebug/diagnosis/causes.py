"""The causes that a finding can name, with a title and a sentence for each.

A custom rule may name causes of its own; these are those of the built-in rules.
"""

from __future__ import annotations

from collections.abc import Mapping

CAUSES: Mapping[str, str] = {
    "lost update": "a parameter with a gradient does not change",
    "gradients not reset": "gradients of earlier steps are added to those of later ones",
    "no gradient": "a part of the model that should learn gets no gradient",
    "vanishing gradient": "gradients shrink from layer to layer",
    "exploding": "values or gradients grow without bound",
    "dead activation": "a layer returns zeros for nearly every input",
    "saturated activation": "a layer returns its extreme values for nearly every input",
    "bad initialisation": "weights are far too large or small, or equal, at the start",
    "learning rate": "the learning rate is far too large or small, jumped, or vanished",
    "weight decay": "the regularisation shrinks the weights to nearly nothing",
    "not learning": "the loss does not fall",
    "overfitting": "validation gets worse while training gets better",
    "memorising": "training succeeds and validation stays at chance",
    "imbalance": "nearly all labels are of one class",
    "mode mismatch": "modules are in training mode in evaluation, or the other way round",
    "repeated input": "the same rows are repeated within a batch, or step after step",
    "unscaled input": "inputs are not scaled",
    "padding": "nearly all of the input is padding",
    "loss input": "the loss gets the wrong kind of input",
    "constant output": "the model returns the same output for every input",
    "accumulation scale": "the loss of micro-batches is added up, not averaged",
    "corruption": "single values changed in a way that no computation explains",
    "spike": "the loss or an update jumps at one step",
    "scaler": "the loss scale collapses, or updates are skipped",
    "precision": "a layer does not compute in the declared precision",
    "batch shape": "inputs and labels differ in number",
    "replicas differ": "parameters that should be equal differ between ranks",
    "ranks alike": "inputs or noise that should differ are equal on all ranks",
    "missing rank": "a rank does not take part in a step",
    "leaked label": "one feature reveals the label",
    "adapter": "adapters have no optimizer, get no gradient or stay zero, or their layers are trained, too",
    "token labels": "the labels of tokens are shifted or masked wrongly",
}

TITLES: Mapping[str, str] = {
    "lost update": "Parameters are not updated",
    "gradients not reset": "Gradients are not reset",
    "no gradient": "Part of the model gets no gradient",
    "vanishing gradient": "Gradients vanish",
    "exploding": "Values explode",
    "dead activation": "A layer is dead",
    "saturated activation": "A layer is saturated",
    "bad initialisation": "Weights are badly initialised",
    "learning rate": "The learning rate is wrong",
    "weight decay": "Weight decay is too strong",
    "not learning": "The model does not learn",
    "overfitting": "The model overfits",
    "memorising": "The model memorises",
    "imbalance": "The labels are imbalanced",
    "mode mismatch": "Modules are in the wrong mode",
    "repeated input": "The same inputs are repeated",
    "unscaled input": "Inputs are not scaled",
    "padding": "Inputs are mostly padding",
    "loss input": "The loss gets the wrong input",
    "constant output": "The output is constant",
    "accumulation scale": "Accumulated losses are not averaged",
    "corruption": "Values are corrupted",
    "spike": "A value spikes",
    "scaler": "Loss scaling fails",
    "precision": "A layer computes in the wrong precision",
    "batch shape": "Inputs and labels differ in number",
    "replicas differ": "Replicas differ",
    "ranks alike": "Ranks see the same data",
    "missing rank": "A rank is missing",
    "leaked label": "A feature leaks the label",
    "adapter": "Adapters are set up wrong",
    "token labels": "The labels of tokens are wrong",
}
"""The headline of a problem with that cause. Findings and JSON have the cause itself."""
