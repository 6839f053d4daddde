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
# # Tensor analysis: why does it not learn?
#
# The distributions of activations, gradients and weights tell why a training comes to nothing: neurons
# that are saturated or dead, layers that do not learn, too many layers. This is the story of the notebook
# "Tensor analysis using Amazon SageMaker Debugger", on PyTorch and on this machine: a convolutional
# network is trained with badly chosen weights and a low rate, seven custom rules gather what it saves,
# and animations show it. Then it is compared with a network that began well.
#
# It needs `pip install "smdebug-serverless[torch,plots]"`. Run it in its folder: `python story.py`, or as
# `story.ipynb`. Runs go to `runs/`, pictures to `images/`.

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
# `mnist.py` knows nothing of a debugger. `smdebug run` puts a hook into it, which saves every tensor at
# every tenth step; on SageMaker the `DebuggerHookConfig` of an estimator did that. The weights are
# `Uniform(1)`, the learning rate is 0.001.

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
# A rule inherits from `Rule`, and is invoked at every step that was saved. These return `False` always:
# they do not judge, they gather tensors by layer and step, to be drawn afterwards. When the training has
# ended and there is nothing more to look at, `invoke_rule` says so by `NoMoreData`.


# %%
class Collecting(Rule):
    """Keeps the tensors that match `regex` and have no `without` in their names."""

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


def asked(rule):
    """The rule, after it was shown every step."""
    with suppress(NoMoreData):
        invoke_rule(rule)
    return rule


def animated(tensors, name):
    """A histogram for each tensor, a frame for each step."""
    place = plots.create_interactive_matplotlib_histogram(tensors, filename=f"images/{name}.gif")
    print(f"{len(tensors)} tensors: {place}")


# %% [markdown]
# ### Activation outputs
#
# The outputs of the ReLUs, as the mean over the batch. Where that is 0 at every step, a unit has died.


# %%
class ActivationOutputs(Collecting):
    regex, without = ".*relu_output", "gradient"

    def kept(self, value):
        return np.sum(value, axis=0) / value.shape[0]


rule = asked(ActivationOutputs(trial1))
animated(rule.tensors, "activation_outputs")

# %% tags=["active-ipynb"]
# from IPython.display import Image
#
# Image(url="images/activation_outputs.gif")

# %% [markdown]
# ### Activation inputs
#
# What goes into the ReLUs: whatever is below 0 there becomes 0.


# %%
class ActivationInputs(ActivationOutputs):
    regex = ".*relu_input"


rule = asked(ActivationInputs(trial1))
animated(rule.tensors, "activation_inputs")

# %% tags=["active-ipynb"]
# Image(url="images/activation_inputs.gif")

# %% [markdown]
# The ReLUs of the second convolutional layer soon receive negative inputs only, and give 0: nearly all of
# its units are dead, for every image. How many of each layer are, in percent:

# %%
dead = plots.dead_units(trial1, "relu_output")
dead.save("images/dead_units.png")

# %% tags=["active-ipynb"]
# dead

# %% [markdown]
# ### Gradients
#
# If their variance is tiny, the parameters are not updated, or the training has come to a minimum.


# %%
class GradientsLayer(Collecting):
    regex = ".*gradient"


rule = asked(GradientsLayer(trial1))
animated(rule.tensors, "gradients")

# %% tags=["active-ipynb"]
# Image(url="images/gradients.gif")

# %% [markdown]
# ### The variance across layers
#
# The smallest and the largest variance of all layers' gradients, step by step. Where they are far apart,
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


rule = asked(GradientsAcrossLayers(trial1))
for step in list(rule.tensors)[::4]:
    low, high = rule.tensors[step]
    print(f"Step {step:3} variance of gradients: {low:.2e} to {high:.2e}")

# %% [markdown]
# ### Weights
#
# If they do not change, the rate is too low or the gradients are too small.


# %%
class WeightRatio(Collecting):
    regex, without = ".*weight", "gradient"


rule = asked(WeightRatio(trial1))
animated(rule.tensors, "weights")

# %% tags=["active-ipynb"]
# Image(url="images/weights.gif")

# %% [markdown]
# ### Inputs and outputs of the layers
#
# Without those of the ReLUs, which were above.


# %%
class Inputs(Collecting):
    regex, without = ".*input", "relu"


class Outputs(Collecting):
    regex, without = ".*output", "relu"


animated(asked(Inputs(trial1)).tensors, "layer_inputs")
animated(asked(Outputs(trial1)).tensors, "layer_outputs")

# %% tags=["active-ipynb"]
# Image(url="images/layer_outputs.gif")

# %% [markdown]
# ## Comparison
#
# The same network with He's initialization, and a rate of 0.01.

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
# PyTorch calls a parameter by its module and path: what MXNet had as `conv0_weight` is `Net_conv0.weight`
# here. (With `mnist_mxnet.py`, the names are those of the original, letter by letter.)

# %%
dict_gradients = {}
for name, trial in runs.items():
    tensors = asked(GradientsLayer(trial)).tensors
    for layer in ("conv0", "conv1"):
        key = f"gradient/{layer}_weight_{name}_hyperparameters"
        dict_gradients[key] = tensors[f"gradient/Net_{layer}.weight"]
animated(dict_gradients, "gradients_comparison")

# %% tags=["active-ipynb"]
# Image("images/gradients_comparison.gif")

# %% [markdown]
# The first gradients of the badly initialized network are enormous: the variance of the first layer's is
# 900, in the good one 0.2. On one scale:

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
    tensors = asked(ActivationInputs(trial)).tensors
    for layer in ("conv0", "conv1"):
        key = f"{layer}_relu_input_0_{name}_hyperparameters"
        dict_activation_inputs[key] = tensors[f"{layer}_relu_input_0"]
animated(dict_activation_inputs, "activation_inputs_comparison")

# %% tags=["active-ipynb"]
# Image("images/activation_inputs_comparison.gif")

# %% [markdown]
# What goes into the first ReLUs has much the same form in both. With the second layer it differs
# drastically: in the bad network all of it moves below 0 within thirty steps. It is lost there, and so
# are the gradients that could bring it back.

# %% [markdown]
# ## What the built-in rules say
#
# Nobody has to look at pictures all night: a rule that comes with the library judges what the seven above
# have gathered.

# %%
for name, trial in runs.items():
    for verdict in evaluated(trial, ["DeadRelu"], jobs=1):
        print(f"{name:4} {verdict.sentence}")
