"""Trials of a sweep, by Optuna, Ray Tune or your own loop: each is a run, and is pruned by its problems.

watch_trial("runs", trial)    with trial an Optuna trial; pruned by `watched.prune()`
"""

from __future__ import annotations

from smdebug.sweeps.watched_trial import WatchedTrial, watch_trial

__all__ = ["WatchedTrial", "watch_trial"]
