"""Where the epochs of a training begin: each is a pass over the data that it is trained with."""

from __future__ import annotations

from smdebug.pytorch.listening.passes import PASSES, Pass


class Epochs:
    """Counts the epochs of one training.

    The first training step shows which loader has its data: the last one over which a loop goes then. A later
    pass over that loader, or over its dataset, begins an epoch if a training step follows and no evaluation.
    """

    def __init__(self) -> None:
        self.passes_seen = PASSES.considered
        """How many passes of the process were considered."""
        self._pass: Pass | None = None
        self._over = -1

    def evaluation_begins(self) -> None:
        """Note a step of evaluation: the passes before it belong to it."""
        self.passes_seen = PASSES.considered = PASSES.count

    def training_step_begins(self) -> int | None:
        """Return how many epochs are over if this training step begins one; else None."""
        passes = PASSES.since(self.passes_seen)
        self.passes_seen = PASSES.count
        known = self._pass
        chosen = [each for each in passes if known is None or _has_data_of(each, known)]
        if not chosen:
            return None
        self._pass = chosen[-1]
        self._over += 1
        return self._over


def _has_data_of(this: Pass, known: Pass) -> bool:
    loader = known.loader()
    return loader is None or this.loader() is loader or this.dataset == known.dataset
