"""Generate docs/rules.md, the page about the built-in rules, from the catalog."""

# ruff: noqa: E501 - prose

from __future__ import annotations

from collections.abc import Iterator
from inspect import getdoc

from smdebug_default_rules.reference import default_set
from smdebug_rules.catalog import CATALOG, Parameter, RuleEntry

_HEAD = """\
# The built-in rules

<!-- This page is generated from the catalog: change rules/smdebug_rules or rules/smdebug_default_rules, then run `make rules-page`. -->

A rule checks one condition at every saved step of a run. Two sets come with the library: [the default
set](#the-default-set), which evaluates a run when no rules are named, and the rules of the old library, by name.
[Write a rule](writing-a-rule.md) shows how to add your own.

```python
import smdebug
from smdebug.exceptions import NoMoreData
from smdebug.rules import invoke_rule
from smdebug.rules.generic import AllZero, ExplodingTensor, VanishingGradient
from smdebug.trials import create_trial

every_step = smdebug.SaveConfig(save_interval=1)
with smdebug.Hook("my-run", include_collections=["weights"], save_config=every_step) as hook:
    for step in range(4):
        with hook.step():
            hook.record_all({"loss": 1.0, "dense_weight": [2.0]})

trial = create_trial("my-run")
for rule in (
    VanishingGradient(trial, threshold=1e-7),
    ExplodingTensor(trial, only_nan="True"),
    AllZero(trial, collection_names=["weights"], tensor_regex=["input*"]),
):
    try:
        invoke_rule(rule)
    except NoMoreData:
        print(rule.rule_name, "has seen all of the run")
```

```text output
VanishingGradient has seen all of the run
ExplodingTensor has seen all of the run
AllZero has seen all of the run
```

From a terminal, rule names are accepted in any case, and every parameter is an option:

```sh
python -m smdebug.rules.rule_invoker --trial-dir my-run --rule-name UnchangedTensor --tensor_regex '.*' --num_steps 10
python -m smdebug.rules.rule_invoker --list
python -m smdebug.rules.rule_invoker --describe LossNotDecreasing
```

{default set}
## What all rules of the old library have in common

- **Parameters** may be text, as in JSON: numbers, `True` or `false`, and lists, either comma-separated or as JSON:
  `'["a", "b"]'`. A comma within the brackets or braces of a pattern (`a{1,2}`) belongs to the pattern; write a list as
  JSON if a pattern contains any other comma. A pattern matches anywhere in a name, and one match of a list is enough.
  Invalid values are refused when the rule is created.
- **Selection** is the union of `collection_names` and `tensor_regex`.
- **Workers** are checked separately, unless the rule says that it adds them up.
- **Reductions** are used where only those were saved, as far as they are conclusive.
- **Missing data** is skipped: text, empty tensors, missing steps and tensors. `rule.skipped` and the last lines of
  the command list it. A rule that never had anything to check logs a warning with the names of the saved tensors.
- **Evidence** is in `rule.findings`, worst first: the tensor, the worker, the statistic, its value, the limit; and
  in `details`, `found_since` and `last_good_step` if known.
- **16-bit types** are computed in float32 and float64. NaN is reported by ExplodingTensor; other rules ignore it
  unless their description says otherwise.
- **State** is plain data: a rule restored in another process continues where `save_state` left off.

## All rules of the old library in one table

"""

# Choices that the published documents leave open.
#: What a chapter adds to the docstring of its rule.
_NOTES: dict[str, str] = {
    "VanishingGradient": "One gradient is enough. Without `abs_mean`, a saved maximum or norm can prove it.",
    "ExplodingTensor": "Without a selector, it checks all tensors except those of the collection trees.",
    "SimilarAcrossRuns": "Despite its name, it fires on *differences*. A tensor that the other run lacks is skipped "
    "unless `strict` is set, and so is a missing step. Several other runs are allowed.",
    "WeightUpdateRatio": "The ratio is mean(|W - W before|) / (mean(|W before|) + epsilon). If there are TRAIN "
    "steps, only those are compared. A change of shape is skipped; weights that become NaN are found.",
    "AllZero": "By default, all values must be zero.",
    "UnchangedTensor": "This step is compared with each of the others; a different shape is a change.",
    "LossNotDecreasing": "By default, a loss that stays the same is found. With `increase_threshold_percent`, an "
    "increase up to that is tolerated, but a decrease must still reach `min_difference`. A loss that is not finite is "
    "found. Metrics of the collections for which larger is better, such as `validation-auc`, are skipped.",
    "PoorWeightInitialization": "One sign is enough. A layer without variance is found. A gradient with a single "
    "value, such as that of the bias of one output, has no range and is skipped.",
    "SaturatedActivation": "Units are evaluated over the samples of one step, not of several. The hook for PyTorch "
    'finds the layers by their class: `include_collections=["tanh_input", "sigmoid_input"]`.',
    "DeadRelu": "Units are evaluated over the samples of one step, not of several. The hook for "
    'PyTorch finds ReLU layers by their class: `include_collections=["relu_output"]`.',
    "TensorVariance": "At least one limit is required.",
    "Overfit": "Losses and workers are averaged. Losses that are not finite, and training losses of 0, are not "
    "compared. Metrics for which larger is better, such as AUC, are ignored.",
    "Overtraining": "Both losses must stop improving, unless `combine` is or. Losses are averaged.",
    "StalledTrainingRule": "Deployed, it is evaluated when the silence has lasted that long, from the first step on; "
    "its finding belongs to the last step. There, `stop_training_on_fire` is the action `stoptraining`, which stops the "
    "run's own job and requests its hook to stop: a rule has no permissions of its own.",
    "ClassImbalance": "The classes are those in the labels. Predictions between 0 and 1 are rounded. All steps "
    "and workers are added up.",
    "Confusion": "Both limits are shares of the predictions of one class, a column of the confusion matrix. Each "
    "step is evaluated separately, all workers together; of scores, the highest is the prediction.",
    "CheckInputImages": "The mean is over all images so far. For PyTorch or NHWC, set `regex` and `channel`.",
    "NLPSequenceRatio": "Give one percentage for all tokens, or one for each.",
    "TreeDepth": "Without the children, the depth is the logarithm of the largest number, rounded down.",
    "FeatureImportanceOverweight": "Each kind of importance is first scaled to a sum of 1.",
    "CreateXgboostReport": "The page is written beside the run: `rule-output/CreateXgboostReport/"
    "xgboost_report.html`.",
}


def reference() -> str:
    """Return the page."""
    rows = [
        f"| [{name}](#{name.lower()}) | {entry.sentence} | {', '.join(entry.collections) or '-'} |"
        for name, entry in CATALOG.items()
    ]
    table = ["| rule | finds | collections |", "|---|---|---|", *rows]
    chapters = [line for entry in CATALOG.values() for line in _chapter(entry)]
    head = _HEAD.replace("{default set}", default_set())
    return head + "\n".join([*table, *chapters]) + "\n"


def _chapter(entry: RuleEntry) -> Iterator[str]:
    yield f"\n## {entry.name}\n"
    yield entry.sentence
    yield ""
    yield (getdoc(entry.load()) or "").strip()
    if entry.name in _NOTES:
        yield f"\n{_NOTES[entry.name]}"
    if entry.aliases:
        yield f"\nAlso called {', '.join(entry.aliases)}."
    if not entry.parameters:
        yield "\nIt takes no parameters."
        return
    yield "\n| parameter | type | default | |"
    yield "|---|---|---|---|"
    for parameter in entry.parameters:
        sentence = parameter.sentence.replace("|", "\\|")
        yield f"| {_names(parameter)} | {parameter.type} | {_default(parameter)} | {sentence} |"


def _names(parameter: Parameter) -> str:
    also = f" (also {', '.join(f'`{name}`' for name in parameter.aliases)})"
    return f"`{parameter.name}`{also if parameter.aliases else ''}"


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "required"
    return "`" + str(parameter.default).replace("|", "\\|") + "`"


if __name__ == "__main__":
    print(reference(), end="")
