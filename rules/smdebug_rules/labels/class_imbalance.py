"""Classes that are far more frequent than others, or mostly mispredicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.mode_keys import ModeKeys
from smdebug.rules import Finding, Rule
from smdebug.rules.measurements import each_worker, value_of
from smdebug.rules.parameters import boolean, integer, is_given, number
from smdebug.rules.selection import TensorSelection
from smdebug_rules.labels.classes import ClassesUnknown, classes_of, label_row

_MOST_CLASSES = 100_000


class ClassImbalance(Rule):
    """Fires when, among at least `samples` labels, a class is too frequent or too often mispredicted.

    Labels are counted over all steps of a mode, training and validation separately; with `reset_samples`, the
    count restarts after that many. A class is too frequent at more than `threshold_imbalance` times the
    rarest class seen, and too often mispredicted at more than a share of `threshold_misprediction`. With
    `argmax`, predictions are scores of all classes.
    """

    cause = "imbalance"
    advice: ClassVar = {
        "": (
            "Weight the loss by the inverse frequency of each class, or sample rare classes more often.",
            "Check that batches are shuffled: sorted data gives each batch one class.",
            "Judge the model by the recall of each class, not by its accuracy.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        threshold_imbalance: Any = 10.0,
        threshold_misprediction: Any = 0.7,
        samples: Any = 500,
        argmax: Any = False,
        labels_regex: Any = ".*labels",
        predictions_regex: Any = ".*predictions",
        reset_samples: Any = None,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.threshold_imbalance = number("threshold_imbalance", threshold_imbalance, minimum=1)
        self.threshold_misprediction = number(
            "threshold_misprediction", threshold_misprediction, minimum=0, maximum=1
        )
        self.samples = integer("samples", samples, minimum=1)
        self.argmax = boolean("argmax", argmax)
        self.labels = TensorSelection(None, labels_regex or ".*labels")
        self.predictions = TensorSelection(None, predictions_regex or ".*predictions")
        self.reset_samples = None
        if is_given(reset_samples):
            self.reset_samples = integer("reset_samples", reset_samples, minimum=self.samples)
        self.counts: dict[str, dict[str, Counter[int]]] = {}  # of each mode
        self.mode = ModeKeys.GLOBAL.name  # of the step that is evaluated
        self.last_good_step: int | None = None

    @property
    def seen(self) -> Counter[int]:
        """The labels of the step's mode."""
        return self.counts[self.mode]["seen"]

    @property
    def predicted(self) -> Counter[int]:
        """Those of them that have predictions."""
        return self.counts[self.mode]["predicted"]

    @property
    def wrong(self) -> Counter[int]:
        """Those of them that were mispredicted."""
        return self.counts[self.mode]["wrong"]

    def invoke_at_step(self, step: int) -> bool:
        self.looked = False
        self.mode = (self.base_trial.mode(step) or ModeKeys.GLOBAL).name
        self.counts.setdefault(self.mode, _no_counts())
        for name, labels, predictions in self._pairs(step):
            try:
                self._count(labels, predictions)
            except ClassesUnknown as unknown:
                self.skipped[name] = str(unknown)
        total = sum(self.seen.values())
        if not self.looked or total < self.samples:
            return False
        self.findings = [*self._imbalance(step, total), *self._mispredictions(step)]
        if not self.findings:
            self.last_good_step = step
        if self.reset_samples is not None and total >= self.reset_samples:
            self.counts[self.mode] = _no_counts()
        return bool(self.findings)

    def _pairs(self, step: int) -> Iterator[tuple[str, Any, Any]]:
        """Yield each worker's labels, with its predictions if there are as many tensors of both."""
        trial = self.base_trial
        labels, predictions = (
            _by_worker(trial, chosen.names(trial, step), step) for chosen in (self.labels, self.predictions)
        )
        for worker, label_tensors in labels.items():
            matching = predictions.get(worker, [])
            if len(matching) != len(label_tensors):
                self.skipped["predictions"] = (
                    f"there are {len(matching)} tensors for {len(label_tensors)} tensors of labels"
                )
                if matching:
                    self._refuse_ambiguous([name for name, _ in matching], len(label_tensors))
                matching = [("", None)] * len(label_tensors)
            for (name, label), (_, prediction) in zip(label_tensors, matching, strict=True):
                yield name, label, prediction

    def _refuse_ambiguous(self, names: list[str], labels: int) -> None:
        self.not_checked = (
            f"predictions_regex selects {len(names)} tensors ({', '.join(names[:3])}) "
            f"for {labels} of labels, so it is unknown which predictions belong to "
            "which labels: make both patterns select as many"
        )

    def _count(self, labels: Any, predictions: Any) -> None:
        row = label_row(labels)
        if not row.size:
            return
        found = Counter(
            dict(zip(*(part.tolist() for part in np.unique(row, return_counts=True)), strict=True))
        )
        if len(self.seen | found) > _MOST_CLASSES:
            raise ClassesUnknown(f"there are more than {_MOST_CLASSES} classes")
        self.seen.update(found)
        self.looked = True
        if predictions is not None:
            try:
                row, predicted = classes_of(labels, predictions, self.argmax)
            except ClassesUnknown as unknown:  # the labels still count
                self.skipped["predictions"] = str(unknown)
                return
            self.predicted.update(found)
            self.wrong.update(row[row != predicted].tolist())

    def _imbalance(self, step: int, total: int) -> Iterator[Finding]:
        ranked = self.seen.most_common()
        (most, many), (least, few) = ranked[0], ranked[-1]
        ratio = self.checked_value = many / few
        if ratio > self.threshold_imbalance:
            yield Finding(
                statistic="largest class over smallest",
                value=ratio,
                threshold=self.threshold_imbalance,
                step=step,
                message=f"class {most} has {many} of {total} labels, class {least} only {few}: "
                f"ratio {ratio:.4g} (limit {self.threshold_imbalance:g})",
                details={"labels": dict(ranked[:20]), **self._last_good()},
            )

    def _mispredictions(self, step: int) -> Iterator[Finding]:
        shares = [(self.wrong[label] / count, label) for label, count in self.predicted.items()]
        for share, label in sorted(shares, key=lambda item: (-item[0], item[1])):
            if share <= self.threshold_misprediction:
                return
            yield Finding(
                statistic=f"share of class {label} predicted wrong",
                value=share,
                threshold=self.threshold_misprediction,
                step=step,
                message=f"class {label}: {self.wrong[label]} of {self.predicted[label]} samples "
                f"mispredicted, {share:.4g} (limit {self.threshold_misprediction:g})",
                details={"class": label, **self._last_good()},
            )

    def _last_good(self) -> dict[str, Any]:
        return {} if self.last_good_step is None else {"last_good_step": self.last_good_step}


def _no_counts() -> dict[str, Counter[int]]:
    return {"seen": Counter(), "predicted": Counter(), "wrong": Counter()}


def _by_worker(trial: Any, names: list[str], step: int) -> dict[str, list[tuple[str, Any]]]:
    found: dict[str, list[tuple[str, Any]]] = {}
    for tensor, worker in each_worker(trial, names, step):
        value = value_of(tensor, step, ModeKeys.GLOBAL, worker)
        if value is not None:
            found.setdefault(worker, []).append((tensor.name, value))
    return found
