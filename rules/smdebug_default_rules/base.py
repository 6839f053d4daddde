"""What all default rules share: which steps they check, and the form of a finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from smdebug.mode_keys import TRAINING, ModeKeys
from smdebug.rules import Finding, Rule
from smdebug.rules.rule_sets import NOT_OBSERVED
from smdebug.trials.observations.one_step import ObservedStep

Advice = Mapping[str, tuple[str, ...]]
EVALUATION = (ModeKeys.EVAL,)
BOTH = (*TRAINING, *EVALUATION)
MOST_FINDINGS = 20
LEAST_OF_CRITERIA = 20
"""A loss made of the same criteria at so many saved steps in a row does not take turns with another."""


class Retired:
    """An attribute of earlier versions: it is dropped where a state that has it is restored."""

    def __set__(self, rule: Any, value: Any) -> None:
        """Keep nothing."""


class DefaultRule(Rule):
    """A rule of the default set: implement `check`, which yields the findings of one observed step."""

    cause: ClassVar[str]
    """The cause of its findings, one of `smdebug.diagnosis.causes`."""
    needs: ClassVar[str] = ""
    """What the run lacks where a step has nothing for the rule, as a sentence that says so."""
    modes: ClassVar[tuple[ModeKeys, ...]] = TRAINING
    follows_scalars: ClassVar[bool] = False
    """Whether it judges losses or rates of every step: an evaluation is saved with those of the training."""
    newest_optimizer: int | None = None
    """The number of the newest optimizer that the rule has seen."""
    criteria: list[str] | None = None
    """Of which criteria the loss is made."""
    steps_of_criteria: int = 0
    """At how many saved steps in a row it was made of these."""

    def is_another_training(self, seen: ObservedStep) -> bool:
        """Whether an optimizer has been made since the rule checked last, or the loss is of another kind.

        Then it is another fold, stage or attempt, and what the rule has kept belongs to the one before.
        Optimizers without numbers are not compared, nor are losses that take turns.
        """
        is_another = self._is_another_loss(seen)
        numbers = [optimizer.get("number") for optimizer in seen.facts.get("optimizers") or ()]
        known = [number for number in numbers if isinstance(number, int)]
        if known:
            before, self.newest_optimizer = self.newest_optimizer, max(known)
            is_another = is_another or (before is not None and max(known) > before)
        return is_another

    def _is_another_loss(self, seen: ObservedStep) -> bool:
        terms = (seen.facts.get("loss") or {}).get("terms")
        if not terms:
            return False
        before, self.criteria = self.criteria, sorted({str(term.get("criterion")) for term in terms})
        if self.criteria == before:
            self.steps_of_criteria += 1
            return False
        steps, self.steps_of_criteria = self.steps_of_criteria, 1
        return before is not None and steps >= LEAST_OF_CRITERIA

    def check(self, seen: ObservedStep) -> Iterable[Finding]:
        """Yield what is found at the step, the worst first."""
        raise NotImplementedError

    def invoke_at_step(self, step: int) -> bool:
        seen = self.observed(step)
        if not seen.facts and not seen.series_names:
            self.looked = False
            self.skipped = dict(seen.damaged)
            if not seen.damaged and not self.base_trial.observations.has_facts:
                self.not_checked = NOT_OBSERVED
            return False
        if seen.mode not in self.modes:
            scalars = seen.scalars_of_training if self.follows_scalars else None
            if scalars is not None:
                lacked = self.not_checked
                self._find(scalars)
                self.not_checked = lacked
            # Without the rest of a step of the training it may find something, and not pass.
            self.looked = scalars is not None and bool(self.findings)
            return bool(self.looked)
        self.looked = True
        self._find(seen)
        if self.looked is False and not seen.damaged:
            # A step of scalars alone, such as the last one, says nothing of what the others lack.
            has_scalars_alone = not seen.facts and self.base_trial.observations.has_facts
            self.not_checked = None if has_scalars_alone else self.not_checked or self.needs or None
        self.skipped = {**self.skipped, **seen.damaged}
        return bool(self.findings)

    def _find(self, seen: ObservedStep) -> None:
        # Statistics of a failing training are of any size: nothing follows from an overflow in a comparison.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            self.findings = [*self.check(seen)][:MOST_FINDINGS]

    def lacks(self, what: str) -> None:
        """Say that the rule could not check, because the run or the step lacks this."""
        self.looked = False
        self.not_checked = what

    def finding(
        self,
        message: str,
        *,
        since: int,
        tensor: str | None = None,
        statistic: str | None = None,
        value: Any = None,
        limit: Any = None,
        worker: str | None = None,
        cause: str | None = None,
        title: str = "",
        why: Sequence[str] = (),
        advice: Sequence[str] = (),
        **details: Any,
    ) -> Finding:
        """Return a finding with this rule's cause.

        `why` are the numbers that convince, `advice` what to try in this case, the first thing first.
        """
        return Finding(
            tensor=tensor,
            statistic=statistic,
            value=value,
            threshold=limit,
            worker=worker,
            message=message,
            cause=cause or self.cause,
            since=since,
            title=title,
            why=why,
            advice=advice,
            details=details,
        )
