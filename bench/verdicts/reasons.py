"""Why a fault is not named right in every run, for docs/verdicts.md."""

from __future__ import annotations

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "bit of a weight flips": "A weight of 0.1 becomes 0 after a step: a change of the size of an update.",
    "optimizer of a copy": "No model that is called has parameters of an optimizer, so nothing is watched.",
}
