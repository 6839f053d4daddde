"""Which series and mode the names in a log mean: `train/loss`, `eval_loss`, `Loss/val`, `lr-Adam`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from smdebug.files.names import FIRST_LEARNING_RATE, LEARNING_RATES, OBSERVATIONS, SYSTEM
from smdebug.importing.records import Target
from smdebug.mode_keys import ModeKeys
from smdebug.trials.observations.loss_names import likely_losses

LOSS = "loss"
_TRAIN = frozenset({"train", "training", "trainer"})
_EVAL = frozenset({"val", "valid", "validation", "validate", "eval", "evaluation", "dev"})
_TEST = frozenset({"test", "testing"})
_MARKS = _TRAIN | _EVAL | _TEST
_PARTS = re.compile(r"^(?P<first>[^\W_]+)(?P<separator>[/_.\- :]+)(?P<rest>.+)$", re.DOTALL)
_LAST = re.compile(r"^(?P<rest>.+?)(?P<separator>[/_.\- :]+)(?P<last>[^\W_]+)$", re.DOTALL)
_RATE = re.compile(r"(^|[/_.\- :])(lr|learning[_ -]?rate)([/_.\- :]|$|\d)", re.IGNORECASE)
_RESERVED = (OBSERVATIONS, LEARNING_RATES, f"{SYSTEM}/", "logged/")


def targets_of(counts: Mapping[str, int]) -> dict[str, Target]:
    """Return the series and the mode that each name of a log means, of names with how many values each has.

    One loss of the training becomes `loss`, and the validation's of the same name becomes its `loss` in EVAL.
    The learning rates become those that rules read. Of two names that mean the same, the one with more values
    does, and the other keeps its name.
    """
    meanings = {name: _meaning(name) for name in counts}
    loss = _loss_of_training(meanings, counts)
    targets: dict[str, Target] = {}
    taken: set[Target] = set()
    rates = 0
    for name in sorted(counts, key=lambda each: (-counts[each], len(each), each)):
        base, mode = meanings[name]
        if _RATE.search(name) and "loss" not in name.lower():
            series = FIRST_LEARNING_RATE if not rates else f"{LEARNING_RATES}{rates}/0"
            target = Target(series, ModeKeys.TRAIN)
            rates += 1
        elif base == loss and _mark_of(name) not in _TEST:
            target = Target(LOSS, mode)
        else:
            target = Target(_own_name(name if _mark_of(name) in _TEST or base == LOSS else base), mode)
        if target in taken:
            target = Target(_own_name(name), mode)
        while target in taken:
            target = Target(f"{target.series}*", mode)
        taken.add(target)
        targets[name] = target
    return {name: targets[name] for name in sorted(targets)}


def _meaning(name: str) -> tuple[str, ModeKeys]:
    """Return the name without the word for its mode, and the mode."""
    mark = _mark_of(name)
    base = name
    first, last = _PARTS.match(name), _LAST.match(name)
    if first is not None and first["first"].lower() in _MARKS:
        base = first["rest"]
    elif last is not None and last["last"].lower() in _MARKS:
        base = last["rest"]
    base = re.sub(r"^(epoch|evaluation)_(?=.)", "", base)  # of Keras' TensorBoard callback
    base = re.sub(r"(?<=.)_step$", "", base)  # of Lightning: `train_loss_step` beside `train_loss_epoch`
    if base.lower() == LOSS:
        base = LOSS
    return base, ModeKeys.EVAL if mark in _EVAL | _TEST else ModeKeys.TRAIN


def _mark_of(name: str) -> str:
    """Return the word for the mode at the beginning or the end of the name; empty if there is none."""
    first, last = _PARTS.match(name), _LAST.match(name)
    if first is not None and first["first"].lower() in _MARKS:
        return first["first"].lower()
    if last is not None and last["last"].lower() in _MARKS:
        return last["last"].lower()
    return ""


def _loss_of_training(meanings: Mapping[str, tuple[str, ModeKeys]], counts: Mapping[str, int]) -> str | None:
    """Return the name, without its mode, of the loss that rules judge."""
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
        bases: dict[str, int] = {}
        for name, (base, its_mode) in meanings.items():
            if its_mode is mode and not _RATE.search(name):
                bases[base] = max(bases.get(base, 0), counts[name])
        losses = likely_losses(sorted(bases, key=lambda base: -bases[base]))
        if LOSS in losses:
            return LOSS
        if losses and "loss" in losses[0].lower():
            return losses[0]
    return None


def _own_name(name: str) -> str:
    return f"logged/{name}" if name.startswith(_RESERVED) else name
