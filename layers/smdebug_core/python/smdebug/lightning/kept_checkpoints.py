"""Which files the callbacks of a Trainer have saved its weights to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class KeptCheckpoints:
    """Knows what each callback has saved already: a file that is saved again is another checkpoint."""

    def __init__(self) -> None:
        self._savings: dict[int, Any] = {}
        self._known: dict[tuple[int, str], str] = {}

    def new(self, trainer: Any) -> Iterator[str]:
        """Yield the path of each checkpoint that was saved since the last call."""
        for callback in trainer.checkpoint_callbacks:
            saving = _last_saving(callback)
            if self._savings.get(id(callback)) == saving:
                continue  # scores are on the device, and reading them waits for it
            self._savings[id(callback)] = saving
            for path, version in _files_of(callback):
                if self._known.get((id(callback), path)) != version:
                    self._known[id(callback), path] = version
                    yield path


def _last_saving(callback: Any) -> tuple[Any, ...]:
    names = ("_last_global_step_saved", "_last_checkpoint_saved", "best_model_path")
    return tuple(getattr(callback, name, None) for name in names)


def _files_of(callback: Any) -> Iterator[tuple[str, str]]:
    """Yield each file that the callback keeps, and what differs once it is saved again.

    Those with a score are saved again when they get another one, the others at each saving.
    """
    scores = getattr(callback, "best_k_models", None) or {}
    for path, score in scores.items():
        yield str(path), str(float(score))
    step = str(getattr(callback, "_last_global_step_saved", ""))
    names = ("best_model_path", "last_model_path", "_last_checkpoint_saved")
    latest = dict.fromkeys(getattr(callback, name, "") for name in names)
    yield from ((str(path), step) for path in latest if path and path not in scores)
