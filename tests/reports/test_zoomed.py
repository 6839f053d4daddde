"""Tensors that were saved whole on request are drawn, at the steps that they were saved at."""

import numpy as np

import smdebug
from smdebug.files.names import ZOOM_KEY
from smdebug.files.zoom_request import ZoomRequest
from smdebug.reports import gather, page_of
from smdebug.reports.gathering import work_of
from smdebug.runs.opening import open_run
from smdebug.storage.memory import MemoryStorage


def test_a_page_shows_what_was_zoomed_into_and_says_when():
    storage = MemoryStorage()
    hook = smdebug.Hook(storage, look_for_stop=0)
    hook.observes = True
    with hook:
        for step in range(400):
            with hook.step():
                hook.record("loss", 1.0)
                for layer in range(9):
                    hook.record(f"layer{layer}/weight", np.arange(9.0) * step)
            if step == 205:
                storage.write(ZOOM_KEY, ZoomRequest(("layer7",), 3).encode())
    trial = open_run(storage)
    done = []
    found = gather(trial, progress=done.append)
    assert [each["name"] for each in found.run["named"]] == ["layer7/weight"]
    (note,) = found.run["notes"]
    assert note == "Saved whole on request, at 3 steps from 210 to 212: layer7/weight."
    assert note in page_of(found)
    assert sum(done) == work_of(trial)
