"""The part of docs/rules.md about the default rules, written from their catalog."""

# ruff: noqa: E501 - prose

from __future__ import annotations

from collections.abc import Iterator
from inspect import getdoc

from smdebug_default_rules.catalog import CATALOG, TAKES_THE_PLACE_OF
from smdebug_rules.catalog import RuleEntry

_HEAD = """\
## The default set

These rules evaluate a run when no rules are named: `smdebug evaluate RUN`, `smdebug report RUN`, the notebook, the laptop and the
deployed debugger. They read what the [default plan](frameworks.md#one-line) saves: statistics of all tensors, facts about the step,
and the loss of every step. Of a run whose tensors somebody chose, as of every run of the old library, they read [what follows from its
tensors](#runs-of-chosen-tensors).

They take no parameters. They compare with a tensor's own past and with its peers, wait until they have seen enough, and name the
cause, the place, and the step since when it was visible. The rules of the old library, further below, have absolute limits, and are
evaluated if they are named, with their documented meaning. The last column says which of them a default rule takes the place of.

| rule | finds | cause | in place of |
|---|---|---|---|
"""

_CHOSEN = """
### Runs of chosen tensors

If you choose what PyTorch's hook saves, it observes the training beside: at those of your steps that the default plan would save, and
the loss at every step. These observations are no tensors of the run, and the old library does not see them. They lie in the files that
the step has anyway, and the default rules judge such a run almost as one of the default plan. What they miss are faults between the
steps that you chose. Of several processes, those other than the first save digests at some of your steps, in small files of their own, so
that copies of the model are compared; with `include_workers="one"` they save nothing.

A run of the old library, or of another framework's hook with collections of your choice, holds tensors and no observations. The
default rules are given what follows from its tensors, computed as they are read and not kept:

| saved | what rules see of it |
|---|---|
| weights, biases | statistics of parameters; with gradients also what changed since the saved step before |
| gradients | statistics of gradients, and which parameters have one |
| losses, metrics, scalars | one value for each saved step; of several losses the likely one of the training, the same at all steps |
| inputs and outputs of layers | statistics and samples of outputs, the shape of the batch, and activations as collections and names tell them |

What no tensor shows stays unknown: the optimizer and its learning rate, whether gradients were reset, the modes of modules, and the
losses between two saved steps. A rule that needs these is *not checked*, and `smdebug evaluate RUN --reasons` says what it lacks. Values
that are not finite count in the loss, the weights and the outputs: in gradients alone they may be those that a scaler of mixed
precision skips. Tensors of which only reductions were saved are left out. To let all rules look, give the hook only a path, as
`smdebug.start(path)` does.
"""


def default_set() -> str:
    """Return the chapter about the default rules."""
    rows = [_row(name, entry) for name, entry in CATALOG.items()]
    sections = [line for entry in CATALOG.values() for line in _section(entry)]
    return _HEAD + "\n".join([*rows, _CHOSEN, *sections]) + "\n"


def _row(name: str, entry: RuleEntry) -> str:
    replaced = ", ".join(f"[{old}](#{old.lower()})" for old in TAKES_THE_PLACE_OF.get(name, ()))
    causes = ", ".join(_advice(entry))
    return f"| [{name}](#{name.lower()}) | {entry.sentence} | {causes} | {replaced or '-'} |"


def _section(entry: RuleEntry) -> Iterator[str]:
    yield f"\n### {entry.name}\n"
    yield entry.sentence
    yield ""
    yield (getdoc(entry.load()) or "").strip()
    for cause, sentences in _advice(entry).items():
        yield f"\nWhat to try ({cause}):\n"
        yield from (f"- {sentence}" for sentence in sentences)


def _advice(entry: RuleEntry) -> dict[str, tuple[str, ...]]:
    return dict(entry.load().advice)
