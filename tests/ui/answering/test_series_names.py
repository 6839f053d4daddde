"""Which series the page shows of a run."""

from __future__ import annotations

import smdebug
from smdebug import modes
from smdebug.ui.answering.answers import series_names
from smdebug.ui.following.reading import RunReader


def test_a_learning_rate_is_named_again_only_where_it_differs_from_the_first(tmp_path):
    rates = {"0/0": 0.1, "0/1": 0.1, "1/0": 0.2}
    with smdebug.Hook(tmp_path / "run") as hook:
        for step in range(6):
            with hook.step(modes.TRAIN):
                hook.record("loss", 1.0)
                for name, rate in rates.items():
                    hook.carry(f"learning_rate/{name}", rate)
                hook.carry("learning_rate/1/1", 0.1 if step < 5 else 0.05)
                hook.carry("metric", 0.1)
    reader = RunReader(str(tmp_path / "run"), is_alone=True)
    while not reader.is_read:
        reader.advance(1.0)
    names = [each["name"] for each in series_names(reader)]
    assert names == ["learning_rate/0/0", "learning_rate/1/0", "learning_rate/1/1", "loss", "metric"]
