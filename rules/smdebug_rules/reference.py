"""The page about the built-in rules, docs/rules.md, from the catalog."""

# ruff: noqa: E501 - prose

from __future__ import annotations

from collections.abc import Iterator
from inspect import getdoc

from smdebug_rules.catalog import CATALOG, Parameter, RuleEntry

_HEAD = """\
# The built-in rules

<!-- This page is made from the catalog: change rules/smdebug_rules, then run `make rules-page`. -->

A rule asks one question of every saved step of a run. These come with the library; [Writing a
rule](writing-a-rule.md) tells how to add your own.

The block on this page runs as it stands, given `run_path`, the path of a run.

```python
from smdebug.exceptions import NoMoreData
from smdebug.rules import invoke_rule
from smdebug.rules.generic import AllZero, ExplodingTensor, VanishingGradient
from smdebug.trials import create_trial

trial = create_trial(run_path)
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

From a terminal, names are in any case, and any parameter is an option:

```sh
python -m smdebug.rules.rule_invoker --trial-dir PATH --rule-name UnchangedTensor --tensor_regex '.*' --num_steps 10
python -m smdebug.rules.rule_invoker --list
python -m smdebug.rules.rule_invoker --describe LossNotDecreasing
```

## What all of them do

- **Parameters** may be text, as they are in JSON: numbers, `True` or `false`, and lists with commas between
  the parts, or in JSON: `'["a", "b"]'`. A comma within the brackets or braces of a pattern (`a{1,2}`) is its own; a
  pattern with any other comma goes into a JSON list. A pattern matches
  anywhere in a name, and any one of a list suffices. What makes no sense is refused when the rule is made.
- **Selection** is the union of `collection_names` and `tensor_regex`.
- **Every worker** that saved a tensor is looked at by itself, unless the rule says that it adds them up.
- **Reductions** are used where only those were saved, as far as they prove something.
- **What was not seen** is not found: text, empty tensors, missing steps and tensors are passed over, and
  said to be (`rule.skipped`, and the last lines of the command). A rule that never had anything to look at is
  warned of, with the names of what was saved.
- **Evidence** is in `rule.findings`, the worst first: the tensor, the worker, the statistic, its value, the
  limit; in `details`, `found_since` and `last_good_step`, where there are such.
- **16-bit types** are computed in float32 and float64; NaN is the business of ExplodingTensor, and says
  nothing to the others unless they say so.
- **State** is plain data: a rule goes on from `save_state` in another process, and finds the same.

## All in one table

"""

# What the published documents leave open, and how it is here. An option that decides it is in the table.
_CHOICES: dict[str, str] = {
    "VanishingGradient": "Any gradient is enough. Without `abs_mean`, a saved maximum or norm can prove it.",
    "ExplodingTensor": "With neither selector, all tensors but those of the collection trees are looked at.",
    "SimilarAcrossRuns": "It fires on what is *different*, whatever its name says. A tensor that the other run "
    "lacks is passed over, unless `strict`; so is a step that it has not. Several other runs are allowed.",
    "WeightUpdateRatio": "The ratio is mean(|W - W before|) / (mean(|W before|) + epsilon). Where there are TRAIN "
    "steps, only those are compared. A change of shape is passed over; weights that become NaN are found.",
    "AllZero": "Without `threshold`, all values have to be zero.",
    "UnchangedTensor": "This step is compared with each of the others; another shape is a change.",
    "LossNotDecreasing": "At the default, a loss that stays the same is found. With `increase_threshold_percent`, "
    "a rise up to that is tolerated, and a fall still must be `min_difference`. A loss that is not finite is found. "
    "Of the collections, metrics such as `validation-auc`, which are the better the larger, are passed over.",
    "PoorWeightInitialization": "Any one sign is enough. A layer without any variance is found. A gradient "
    "of a single value, as of the bias of one output, has no range, and is passed over.",
    "SaturatedActivation": "Units are judged by the samples of one step, not of several.",
    "DeadRelu": "Units are judged by the samples of one step, not of several. PyTorch names may need the pattern "
    "`.*relu_output|.*ReLU_output`.",
    "TensorVariance": "At least one limit is needed.",
    "Overfit": "All losses and workers count as their mean. Losses that are not finite are compared with nothing; "
    "a training loss of 0, neither. Metrics such as AUC, which are the better the larger, are not looked at.",
    "Overtraining": "Both losses have to be stuck, unless `combine` is or. All losses count as their mean.",
    "StalledTrainingRule": "Deployed, it is asked when the silence has lasted so long, once there is a first step; what "
    "it finds belongs to the last one. There `stop_training_on_fire` is the action `stoptraining`, which stops the run's own "
    "job and asks its hook to stop: a rule has no rights of its own.",
    "ClassImbalance": "Classes are those seen in the labels. Predictions between 0 and 1 are rounded. All steps and "
    "workers are added up.",
    "Confusion": "Both limits are parts of a column: of what is predicted as that class. Each step is judged by "
    "itself, all workers together; scores stand for the largest of them.",
    "CheckInputImages": "The mean is that of all images so far. PyTorch and NHWC need their own `regex`, `channel`.",
    "NLPSequenceRatio": "One percentage serves all tokens; else there is one for each.",
    "TreeDepth": "Without the branches, the depth is the logarithm of the largest number, rounded down.",
    "FeatureImportanceOverweight": "Importances are made to sum up to 1 first, each kind by itself.",
    "CreateXgboostReport": "The page is written beside the run: `rule-output/CreateXgboostReport/"
    "xgboost_report.html`.",
}


def reference() -> str:
    """The whole page."""
    rows = [
        f"| [{name}](#{name.lower()}) | {entry.sentence} | {', '.join(entry.collections) or '-'} |"
        for name, entry in CATALOG.items()
    ]
    table = ["| rule | finds | collections |", "|---|---|---|", *rows]
    chapters = [line for entry in CATALOG.values() for line in _chapter(entry)]
    return _HEAD + "\n".join([*table, *chapters]) + "\n"


def _chapter(entry: RuleEntry) -> Iterator[str]:
    yield f"\n## {entry.name}\n"
    yield entry.sentence
    yield ""
    yield (getdoc(entry.load()) or "").strip()
    yield ""
    yield _CHOICES[entry.name]
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
    told = str(parameter.default)
    return "`" + told.replace("|", "\\|") + "`"


if __name__ == "__main__":
    print(reference(), end="")
