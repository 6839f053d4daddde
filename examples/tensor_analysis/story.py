# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Tensor analysis: why does the network not learn?
#
# The distributions of activations, gradients and weights show why a training fails: saturated or dead
# neurons, layers that do not learn, too many layers. This is the notebook "Tensor analysis using Amazon
# SageMaker Debugger", on PyTorch and on this machine. A convolutional network is trained with badly chosen
# weights and a low rate, seven custom rules collect the saved tensors, and animations show them. Then the
# network is compared with one that was initialized well.
#
# Install `pip install "smdebug-serverless[torch,plots]"`. Run `python story.py` in its folder, or open
# `story.ipynb`. Runs are saved in `runs/`, pictures in `images/`.

# %%
import collections
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from smdebug import plots
from smdebug.exceptions import NoMoreData
from smdebug.reports import evaluated
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import invoke_rule
from smdebug.trials import create_trial

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "error")

# %% [markdown]
# ## The training
#
# `mnist.py` does not use the debugger. `smdebug run` adds a hook, which saves every tensor at every tenth
# step; on SageMaker, the `DebuggerHookConfig` of an estimator did that. The weights are `Uniform(1)`, and
# the learning rate is 0.001.

# %%
HERE = Path(globals().get("__file__", "story.ipynb")).resolve().parent
entry_point_script = str(HERE / "mnist.py")
bad_hyperparameters = {"initializer": "uniform", "lr": 0.001}


def train(out_dir, hyperparameters):
    watched = [sys.executable, "-m", "smdebug", "run", "--out-dir", out_dir]
    options = [f"--{name}={value}" for name, value in hyperparameters.items()]
    command = [*watched, "--save-all", "--save-interval", "10", entry_point_script, *options]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    return out_dir


path = train("runs/bad", bad_hyperparameters)

# %%
trial1 = create_trial(path)
print("steps", trial1.steps())

# %% [markdown]
# ## Custom rules
#
# A rule inherits from `Rule` and is invoked at every saved step. These rules always return `False`: they
# collect tensors by layer and step, to plot them later. When the training has ended and every step has been
# evaluated, `invoke_rule` raises `NoMoreData`.


# %%
class Collecting(Rule):
    """Collect the tensors whose names match `regex` and do not contain `without`."""

    regex = ".*"
    without = None

    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.tensors = collections.OrderedDict()

    def invoke_at_step(self, step):
        for tname in self.base_trial.tensor_names(step=step, regex=self.regex):
            if self.without is None or self.without not in tname:
                value = self.base_trial.tensor(tname).value(step)
                self.tensors.setdefault(tname, {})[step] = self.kept(value)
        return False

    def kept(self, value):
        return value


def collected(rule):
    """Invoke the rule at every step; return it."""
    with suppress(NoMoreData):
        invoke_rule(rule)
    return rule


def animated(tensors, name):
    """Save an animation with a histogram for each tensor and a frame for each step."""
    place = plots.create_interactive_matplotlib_histogram(tensors, filename=f"images/{name}.gif")
    print(f"{len(tensors)} tensors: {place}")


# %% [markdown]
# ### Activation outputs
#
# The outputs of the ReLUs, averaged over the batch. A unit whose mean is 0 at every step is dead.


# %%
class ActivationOutputs(Collecting):
    regex, without = ".*relu_output", "gradient"

    def kept(self, value):
        return np.sum(value, axis=0) / value.shape[0]


rule = collected(ActivationOutputs(trial1))
animated(rule.tensors, "activation_outputs")

# %% tags=["active-ipynb"]
# from IPython.display import Image
#
# Image(url="images/activation_outputs.gif")

# %% [markdown]
# ### Activation inputs
#
# The inputs of the ReLUs: values below 0 become 0.


# %%
class ActivationInputs(ActivationOutputs):
    regex = ".*relu_input"


rule = collected(ActivationInputs(trial1))
animated(rule.tensors, "activation_inputs")

# %% tags=["active-ipynb"]
# Image(url="images/activation_inputs.gif")

# %% [markdown]
# The ReLUs of the second convolutional layer soon receive only negative inputs and return 0: nearly all of
# its units are dead for every image. The share of dead units per layer, in percent:

# %%
dead = plots.dead_units(trial1, "relu_output")
dead.save("images/dead_units.png")

# %% tags=["active-ipynb"]
# dead

# %% [markdown]
# ### Gradients
#
# If the variance of the gradients is tiny, the parameters are barely updated, or the training has reached a
# minimum.


# %%
class GradientsLayer(Collecting):
    regex = ".*gradient"


rule = collected(GradientsLayer(trial1))
animated(rule.tensors, "gradients")

# %% tags=["active-ipynb"]
# Image(url="images/gradients.gif")

# %% [markdown]
# ### The variance across layers
#
# The smallest and the largest variance of the gradients of all layers, step by step. If they are far apart,
# some layers learn much more slowly than others.


# %%
class GradientsAcrossLayers(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.tensors = collections.OrderedDict()

    def invoke_at_step(self, step):
        trial = self.base_trial
        names = trial.tensor_names(step=step, regex=".*gradient")
        variances = [float(np.var(trial.tensor(name).value(step))) for name in names]
        self.tensors[step] = [min(variances), max(variances)]
        return False


rule = collected(GradientsAcrossLayers(trial1))
for step in list(rule.tensors)[::4]:
    low, high = rule.tensors[step]
    print(f"Step {step:3} variance of gradients: {low:.2e} to {high:.2e}")

# %% [markdown]
# ### Weights
#
# If the weights do not change, the rate is too low or the gradients are too small.


# %%
class WeightRatio(Collecting):
    regex, without = ".*weight", "gradient"


rule = collected(WeightRatio(trial1))
animated(rule.tensors, "weights")

# %% tags=["active-ipynb"]
# Image(url="images/weights.gif")

# %% [markdown]
# ### Inputs and outputs of the layers
#
# All layers except the ReLUs, which are shown above.


# %%
class Inputs(Collecting):
    regex, without = ".*input", "relu"


class Outputs(Collecting):
    regex, without = ".*output", "relu"


animated(collected(Inputs(trial1)).tensors, "layer_inputs")
animated(collected(Outputs(trial1)).tensors, "layer_outputs")

# %% tags=["active-ipynb"]
# Image(url="images/layer_outputs.gif")

# %% [markdown]
# ## Comparison
#
# The same network with He initialization and a rate of 0.01.

# %%
trial2 = create_trial(train("runs/good", {"initializer": "he", "lr": 0.01}))
runs = {"bad": trial1, "good": trial2}
loss = plots.line(runs, "CrossEntropyLoss_output")
loss.save("images/loss.png")

# %% tags=["active-ipynb"]
# loss

# %% [markdown]
# ### Gradients
#
# On PyTorch, the name of a parameter has its module and path: `conv0_weight` on MXNet is `Net_conv0.weight`
# here. (With `mnist_mxnet.py`, the names are exactly those of the original.)

# %%
dict_gradients = {}
for name, trial in runs.items():
    tensors = collected(GradientsLayer(trial)).tensors
    for layer in ("conv0", "conv1"):
        key = f"gradient/{layer}_weight_{name}_hyperparameters"
        dict_gradients[key] = tensors[f"gradient/Net_{layer}.weight"]
animated(dict_gradients, "gradients_comparison")

# %% tags=["active-ipynb"]
# Image("images/gradients_comparison.gif")

# %% [markdown]
# The first gradients of the badly initialized network are enormous: their variance in the first layer is
# 900, and 0.2 in the good network. On the same scale:

# %%
variance = plots.variance_across_layers(runs, "gradient/.*weight")
variance.save("images/variance.png")

# %% tags=["active-ipynb"]
# variance

# %% [markdown]
# ### Activation inputs

# %%
dict_activation_inputs = {}
for name, trial in runs.items():
    tensors = collected(ActivationInputs(trial)).tensors
    for layer in ("conv0", "conv1"):
        key = f"{layer}_relu_input_0_{name}_hyperparameters"
        dict_activation_inputs[key] = tensors[f"{layer}_relu_input_0"]
animated(dict_activation_inputs, "activation_inputs_comparison")

# %% tags=["active-ipynb"]
# Image("images/activation_inputs_comparison.gif")

# %% [markdown]
# The inputs of the first ReLUs are distributed much the same in both networks. Those of the second differ
# drastically: in the bad network they all move below 0 within thirty steps. The ReLUs then return 0, and no
# gradient flows back to recover them.

# %% [markdown]
# ## Built-in rules
#
# A built-in rule detects the same problem without any pictures:

# %%
for name, trial in runs.items():
    for verdict in evaluated(trial, ["DeadRelu"], jobs=1):
        print(f"{name:4} {verdict.sentence}")
