"""Images and texts that were logged, as TensorBoard itself reads them."""

from __future__ import annotations

import io

import numpy as np
import pytest

import smdebug
from smdebug.export.selection import Selection
from smdebug.export.tensorboard import export_tensorboard

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


@pytest.fixture
def run(tmp_path):
    place = str(tmp_path / "run")
    with smdebug.Hook(place) as hook:
        for step in range(3):
            with hook.step(smdebug.modes.TRAIN):
                hook.record("loss", 1.0)
            pixels = np.full((4, 6, 3), 10 * step, np.uint8)
            hook.log(picture=pixels, answer=f"[link](http://x)\nstep {step}", rows=[{"a": 1}])
    return place


def read(folder):
    found = accumulator.EventAccumulator(str(folder / "TRAIN"), size_guidance={"images": 0, "tensors": 0})
    found.Reload()
    return found


def test_they_are_at_their_steps_and_a_text_is_no_markup(run, tmp_path):
    export_tensorboard(run, tmp_path / "tb")
    found = read(tmp_path / "tb")
    images = found.Images("picture")
    assert [(image.step, image.width, image.height) for image in images] == [(0, 6, 4), (1, 6, 4), (2, 6, 4)]
    pil = pytest.importorskip("PIL.Image")
    assert np.array(pil.open(io.BytesIO(images[2].encoded_image_string)))[0, 0].tolist() == [20, 20, 20]
    texts = found.Tensors("answer")
    assert [text.step for text in texts] == [0, 1, 2]
    assert texts[1].tensor_proto.string_val[0] == b"    [link](http://x)\n    step 1"
    assert found.SummaryMetadata("answer").plugin_data.plugin_name == "text"


def test_a_selection_holds_for_them_too(run, tmp_path):
    export_tensorboard(run, tmp_path / "tb", Selection(regex="loss|picture", steps=(0, 1)))
    found = read(tmp_path / "tb")
    assert [image.step for image in found.Images("picture")] == [0, 1]
    assert "answer" not in found.Tags()["tensors"]
