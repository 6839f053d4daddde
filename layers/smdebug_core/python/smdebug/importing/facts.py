"""What a log says of its training besides numbers: whether its loss has to fall."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from smdebug.files.observations import LOSS_SHOULD_FALL
from smdebug.importing.names import LOSS
from smdebug.importing.records import Target
from smdebug.mode_keys import ModeKeys

_SUPERVISED = re.compile(r"(^|[/_.-])(acc|accuracy|top[-_]?[15]|f1)([/_.@-]|$)", re.IGNORECASE)
_FIRST_INTERVALS = 2
"""A log that begins later than this many of its intervals continues a training that has learnt before."""


def facts_of(
    targets: Mapping[str, Target], counts: Mapping[str, int], span: Callable[[str], tuple[int, int]]
) -> dict[str, Any]:
    """Return the facts of the run's steps, as hooks note them.

    Only of a supervised training must the loss fall: one loss, with a validation of the same loss or with an
    accuracy, and a log from its beginning. The losses of rewards and of adversaries need not.
    """
    training = [name for name, target in targets.items() if target == (LOSS, ModeKeys.TRAIN)]
    losses = [target for target in targets.values() if "loss" in target.series.lower()]
    others = {target.series for target in losses if target.series != LOSS}
    validated = Target(LOSS, ModeKeys.EVAL) in losses or any(
        _SUPERVISED.search(target.series) for target in targets.values()
    )
    if not training or others or not validated or counts[training[0]] < 2:
        return {}
    first, last = span(training[0])
    interval = (last - first) / (counts[training[0]] - 1)
    if first > _FIRST_INTERVALS * interval:
        return {}
    return {LOSS_SHOULD_FALL: True}
