"""A classifier that confuses classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from smdebug.mode_keys import ModeKeys
from smdebug.rules import Finding, Rule
from smdebug.rules.measurements import each_worker, value_of
from smdebug.rules.parameters import integer, is_given, number, text
from smdebug.rules.selection import TensorSelection
from smdebug_rules.labels.classes import Classes, ClassesUnknown, classes_of


class Confusion(Rule):
    """Fires when too few of a class's predictions are right, or too many belong to another class.

    Of the samples that a step predicts as class i, a share of at least `min_diag` must be class i, and at
    most `max_off_diag` any other class. A class that is never predicted is not checked.
    """

    advice: ClassVar = {
        "": (
            "Look at samples of the two classes side by side: their labels may be wrong.",
            "Collect more samples of the classes that are confused, or merge them.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        category_no: Any = None,
        labels: Any = "labels",
        predictions: Any = "predictions",
        labels_collection: Any = "labels",
        predictions_collection: Any = "predictions",
        min_diag: Any = 0.9,
        max_off_diag: Any = 0.1,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.category_no = None
        if is_given(category_no):
            self.category_no = integer("category_no", category_no, minimum=2)
        self.labels = text("labels", labels)
        self.predictions = text("predictions", predictions)
        self.labels_collection = text("labels_collection", labels_collection)
        self.predictions_collection = text("predictions_collection", predictions_collection)
        self.min_diag = number("min_diag", min_diag, minimum=0, maximum=1)
        self.max_off_diag = number("max_off_diag", max_off_diag, minimum=0, maximum=1)
        self.last_good_step: int | None = None

    def invoke_at_step(self, step: int) -> bool:
        counted: dict[tuple[int, int], int] = {}
        labels = self._by_worker(step, self.labels, self.labels_collection)
        predictions = self._by_worker(step, self.predictions, self.predictions_collection)
        for worker, values in labels.items():
            if worker not in predictions:
                self.skipped[self.predictions] = f"{worker} did not save it"
                continue
            try:
                self._count(classes_of(values, predictions[worker]), counted)
            except ClassesUnknown as unknown:
                self.skipped[self.labels] = str(unknown)
        self.looked = bool(counted)
        self.findings = self._found(counted, step)
        if counted and not self.findings:
            self.last_good_step = step
        return bool(self.findings)

    def _count(self, classes: Classes, counted: dict[tuple[int, int], int]) -> None:
        pairs = np.stack(classes)
        known = pairs.min(axis=0, initial=0) >= 0
        if self.category_no is not None:
            known &= pairs.max(axis=0, initial=0) < self.category_no
        if not known.all():
            without = int(np.count_nonzero(~known))
            self.skipped[self.labels] = f"{without} samples have a negative class, or one above the last"
        cells, counts = np.unique(pairs[:, known], axis=1, return_counts=True)
        for label, prediction, count in zip(*cells.tolist(), counts.tolist(), strict=True):
            counted[label, prediction] = counted.get((label, prediction), 0) + count

    def _found(self, counted: dict[tuple[int, int], int], step: int) -> list[Finding]:
        columns: dict[int, int] = {}
        for (_, prediction), count in counted.items():
            columns[prediction] = columns.get(prediction, 0) + count
        found = []
        for prediction, total in columns.items():
            share = counted.get((prediction, prediction), 0) / total
            if share < self.min_diag:
                problem = f"only {share:.4g} of the predictions of class {prediction} are right"
                found.append((self.min_diag - share, prediction, prediction, share, self.min_diag, problem))
        for (label, prediction), count in counted.items():
            share = count / columns[prediction]
            if label != prediction and share > self.max_off_diag:
                problem = f"{share:.4g} of the predictions of class {prediction} are class {label}"
                found.append(
                    (
                        share - self.max_off_diag,
                        label,
                        prediction,
                        share,
                        self.max_off_diag,
                        problem,
                    )
                )
        found.sort(key=lambda item: (-item[0], item[1:3]))
        good = {} if self.last_good_step is None else {"last_good_step": self.last_good_step}
        return [
            Finding(
                tensor=self.predictions,
                statistic="share of the predictions of a class",
                value=share,
                threshold=limit,
                step=step,
                message=f"{problem} (limit {limit:g})",
                details={"label": label, "prediction": prediction, **good},
            )
            for _, label, prediction, share, limit, problem in found
        ]

    def _by_worker(self, step: int, name: str, collection: str) -> dict[str, Any]:
        trial = self.base_trial
        names = trial.tensor_names(step=step)
        if name not in names:
            name = next(iter(TensorSelection([collection]).names(trial, step)), name)
        found = {}
        for tensor, worker in each_worker(trial, [name], step):
            value = value_of(tensor, step, ModeKeys.GLOBAL, worker)
            if value is not None:
                found[worker] = value
        return found
