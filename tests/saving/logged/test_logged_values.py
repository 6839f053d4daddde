"""What a training logs to be looked at: what is kept of it, what is refused, what is left out."""

from __future__ import annotations

import io
import json
import logging
import os
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import DamagedFile, SMDebugTypeError
from smdebug.files.logged.catalog import MOST_VALUES
from smdebug.runs import verify
from smdebug.saving.hooks import singleton
from smdebug.saving.place.finished import remove_run
from smdebug.storage import open_storage
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import create_trial
from smdebug.trials.logged_reading import read_logged

GRAY = np.arange(48, dtype=np.uint8).reshape(6, 8)


@pytest.fixture(autouse=True)
def no_hook_of_this_process():
    singleton.del_hook()
    yield
    singleton.del_hook()


@pytest.fixture(params=["folder", "s3"])
def place(request, tmp_path):
    if request.param == "folder":
        return str(tmp_path / "run")
    request.getfixturevalue("bucket")
    return "s3://bucket/run"


@pytest.fixture
def bucket(monkeypatch):
    boto3, moto = pytest.importorskip("boto3"), pytest.importorskip("moto")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with moto.mock_aws():
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="bucket")
        yield


def logged(place, steps=3, **given):
    """Log the values after the last of the steps, and return what a reader finds."""
    with smdebug.Hook(place) as hook:
        for step in range(steps):
            with hook.step(smdebug.modes.TRAIN):
                hook.record("loss", 1.0 / (1 + step))
        hook.log(given)
    return create_trial(place).logged()


def test_each_kind_of_value_is_read_as_it_was_logged(place):
    colours = np.stack([GRAY, 2 * GRAY, 255 - GRAY, GRAY], axis=2)
    found = {
        value.name: value
        for value in logged(
            place,
            gray=GRAY,
            colours=smdebug.Image(colours, caption="four channels"),
            floats=GRAY / 255,
            answer="once\nupon a time",
            rows=[{"word": "a", "loss": 0.5}, {"word": "b", "ok": True}],
            confusion=smdebug.ConfusionMatrix([[3, 1], [0, 2]], ["cat", "dog"]),
            weights=smdebug.Histogram([0.0, 1.0, 1.0], bins=2),
            sound=smdebug.Audio(np.array([0, 1000, -1000], np.int16), 8000),
        )
    }
    assert {(value.step, value.worker, value.mode) for value in found.values()} == {(2, "worker_0", "TRAIN")}
    assert (found["gray"].read() == GRAY[:, :, None]).all()
    assert (found["colours"].read() == colours).all()
    assert found["colours"].caption == "four channels"
    assert (found["floats"].read()[:, :, 0] == GRAY).all()
    assert found["answer"].read() == "once\nupon a time"
    assert found["rows"].read() == [
        {"word": "a", "loss": 0.5, "ok": None},
        {"word": "b", "loss": None, "ok": True},
    ]
    assert found["confusion"].read() == {"classes": ["cat", "dog"], "counts": [[3, 1], [0, 2]]}
    assert found["weights"].read() == {"counts": [1, 2], "edges": [0.0, 0.5, 1.0], "not_finite": 0}
    samples, rate = found["sound"].read()
    assert (samples[:, 0].tolist(), rate) == ([0, 1000, -1000], 8000)
    assert verify(place).problems == ()


def test_a_value_belongs_to_the_step_that_ran_last_or_the_one_that_is_named(tmp_path):
    place = str(tmp_path / "run")
    smdebug.log(early="before the hook")
    with smdebug.Hook(place) as hook:
        hook.log(early="before the step")
        for step in range(4):
            with hook.step(smdebug.modes.TRAIN):
                hook.record("loss", 1.0)
            smdebug.log(each=f"after {step}")
        smdebug.log(each="named", step=1)
    trial = create_trial(place)
    assert [value.step for value in trial.logged("early")] == [0, 0]
    assert [(each.step, each.read()) for each in trial.logged("each", kind="text")] == [
        (0, "after 0"),
        (1, "after 1"),
        (1, "named"),
        (2, "after 2"),
        (3, "after 3"),
    ]
    assert trial.logged(kind="image") == []


def test_an_image_is_as_a_browser_or_pillow_reads_it(tmp_path):
    pil = pytest.importorskip("PIL.Image")
    picture = pil.fromarray(np.stack([GRAY, GRAY, 255 - GRAY], 2)).convert("P")
    logged(str(tmp_path / "run"), gray=GRAY, picture=picture)
    folder = tmp_path / "run" / "logged" / "values" / "worker_0"
    images = [pil.open(io.BytesIO((folder / f"00000{n}.png").read_bytes())) for n in (0, 1)]
    assert [image.mode for image in images] == ["L", "RGB"]
    assert (np.array(images[0]) == GRAY).all()
    assert (np.array(images[1]) == np.array(picture.convert("RGB"))).all()


class Tensor:
    """As a tensor of PyTorch on another device."""

    def __init__(self, array):
        self._array, self.shape, self.dtype = array, array.shape, array.dtype

    def detach(self):
        return self

    def cpu(self):
        return self._array


def test_channels_come_first_where_they_can_only_be_there():
    first = np.stack([GRAY, GRAY, GRAY])
    assert smdebug.Image(Tensor(first)).keep().shape == (6, 8, 3)
    assert smdebug.Image(first).keep().shape == (6, 8, 3)
    both = np.zeros((3, 8, 4), np.uint8)
    assert smdebug.Image(both).keep().shape == (3, 8, 4)
    assert smdebug.Image(Tensor(both), channels="first").keep().shape == (8, 4, 3)
    with pytest.raises(SMDebugTypeError, match=r'log smdebug.Image\(tensor, channels="first"\)'):
        smdebug.Image(Tensor(both))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: smdebug.Image(GRAY.astype(np.int64)), "numbers of uint8, or floats from 0 to 1, not int64"),
        (lambda: smdebug.Image(np.zeros((2, 3, 8, 8))), "Of several images log each"),
        (lambda: smdebug.Image(np.zeros((8, 8, 5))), "1, 3 or 4 channels"),
        (lambda: smdebug.Image(GRAY, channels="middle"), '"first" or "last"'),
        (lambda: smdebug.Image(GRAY, caption=3), "caption must be a text"),
        (lambda: smdebug.Image(np.array([["a", "b"]])), "not <U1"),
        (lambda: smdebug.Text(3), "takes a text"),
        (lambda: smdebug.Table([[1, 2]]), "names of columns"),
        (lambda: smdebug.Table([[1, 2]], ["a"]), "must have 1 value"),
        (lambda: smdebug.ConfusionMatrix([[1, 2]]), "square matrix"),
        (lambda: smdebug.ConfusionMatrix([[0.5]]), "square matrix of whole numbers"),
        (lambda: smdebug.ConfusionMatrix([[1]], ["a", "b"]), "1 classes, but 2 are named"),
        (lambda: smdebug.Histogram(["a"]), "real numbers"),
        (lambda: smdebug.Histogram([1.0], bins=0), "bins"),
        (lambda: smdebug.Audio([[0.0] * 5], 8000), "Audio takes floats"),
        (lambda: smdebug.Audio([0.0], 0.5), "samples per second"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_at_once(make, message):
    with pytest.raises(SMDebugTypeError, match=message):
        make()


def test_what_the_data_makes_odd_is_kept_and_noted():
    odd = np.array([[0.5, np.nan], [2.0, -np.inf]])
    kept = smdebug.Image(odd).keep()
    assert kept.content[:, :, 0].tolist() == [[128, 0], [255, 0]]
    assert kept.note == "3 values outside of 0 to 1, clipped"
    assert smdebug.Audio([0.5, np.nan, 3.0], 100).keep().note == "2 samples outside of -1 to 1, clipped"
    assert smdebug.Histogram([1.0, np.nan, np.inf]).keep().note == "2 values not finite"
    table = json.loads(smdebug.Table([{3: np.nan, None: np.float32(0.5), "o": object}]).keep().content)
    assert table["columns"] == ["3", "None", "o"]
    assert table["rows"] == [["nan", 0.5, "<class 'object'>"]]
    same = json.loads(smdebug.Histogram(np.full(10, 7.0)).keep().content)
    assert same["counts"] == [10]
    assert same["edges"][0] < 7 < same["edges"][1]
    wide = json.loads(smdebug.Histogram([-1.7e308, 1.7e308]).keep().content)
    assert sum(wide["counts"]) == 2
    assert smdebug.Text("\ud800").keep().content  # half of a character


def test_what_cannot_be_kept_is_said_once_and_the_training_goes_on(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        found = logged(
            str(tmp_path / "run"),
            noise=np.random.default_rng(0).integers(0, 256, (2000, 2000, 3), np.uint8),
            long="x" * 300_000,
            empty=np.zeros((0, 5)),
            silence=smdebug.Audio([], 8000),
            nothing=smdebug.Histogram([np.nan]),
            last="kept",
        )
    assert [value.name for value in found] == ["last"]
    said = [record.getMessage() for record in caplog.records if "is not kept" in record.getMessage()]
    assert len([text for text in said if "too large: an image or sound has at most 4 MB" in text]) == 1
    assert any("an image without pixels" in text for text in said)
    assert len(said) == 4
    (catalog,) = (tmp_path / "run" / "logged" / "catalogs").iterdir()
    assert json.loads(catalog.read_text())["left_out"]["too large"] == 2


def test_a_worker_keeps_a_limited_number_of_values(tmp_path):
    place = str(tmp_path / "run")
    with smdebug.Hook(place) as hook:
        for _ in range(2):
            with hook.step(smdebug.modes.TRAIN):
                hook.record("loss", 1.0)
        for number in range(MOST_VALUES + 20):
            hook.log(text=f"number {number}")
    found = create_trial(place).logged()
    assert (len(found), found[-1].read()) == (MOST_VALUES, f"number {MOST_VALUES - 1}")


def test_names_do_not_choose_files(tmp_path):
    names = ["../../../escaped", "a/b/c", "größe ✓", "/absolute", "nul\0", "C:\\x"]
    found = logged(str(tmp_path / "run"), **dict.fromkeys(names, "text"))
    assert [value.name for value in found] == names
    files = [file for file in (tmp_path / "run" / "logged").rglob("*") if file.is_file()]
    assert sorted(file.name for file in files) == [*(f"00000{n}.value" for n in range(6)), "worker_0.value"]
    assert not (tmp_path / "escaped").exists()


def test_secrets_are_left_out_of_names_texts_captions_and_tables(tmp_path):
    secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
    logged(
        str(tmp_path / "run"),
        **{f"token={secret}": "x"},
        text=f"Authorization: Bearer {secret}",
        table=[{"password": "hunter2x9", "note": f"see {secret}"}],
        image=smdebug.Image(GRAY, caption=f"key {secret}"),
        matrix=smdebug.ConfusionMatrix([[1]], [secret]),
    )
    written = b"".join(f.read_bytes() for f in (tmp_path / "run" / "logged").rglob("*") if f.is_file())
    assert secret.encode() not in written
    assert b"hunter2x9" not in written
    assert b"***" in written


def test_a_resumed_training_keeps_what_was_logged_before_its_step(tmp_path):
    place = tmp_path / "run"
    with smdebug.Hook(str(place)) as hook:
        for _ in range(3):
            with hook.step(smdebug.modes.TRAIN):
                hook.record("loss", 1.0)
            hook.log(text="first attempt")
        hook.flush()
        hook.logged.finish(10)
        hook._end_of_run.come(ended=False)
    singleton.del_hook()
    (place / "training_job_end.ts").unlink(missing_ok=True)
    again = smdebug.Hook(str(place))
    with again:
        with again.step(smdebug.modes.TRAIN):
            again.record("loss", 1.0)
        again.log(text="second attempt")
    found = read_logged(open_storage(str(place)))
    assert [each.read() for each in found] == ["second attempt"]  # it began again at step 0
    assert found[0].number == 3  # a number is used once


def test_a_dry_run_writes_nothing(tmp_path):
    with smdebug.Hook(str(tmp_path / "run"), dry_run=True) as hook:
        with hook.step(smdebug.modes.TRAIN):
            hook.record("loss", 1.0)
        hook.log(text="seen by nobody")
    assert not (tmp_path / "run" / "logged").exists()


def test_removing_a_run_removes_what_it_has_logged(tmp_path):
    logged(str(tmp_path / "run"), text="x")
    remove_run(open_storage(str(tmp_path / "run")))
    assert [file for file in (tmp_path / "run").rglob("*") if file.is_file()] == []


def test_a_forked_child_writes_nothing(tmp_path):
    with smdebug.Hook(str(tmp_path / "run")) as hook:
        with hook.step(smdebug.modes.TRAIN):
            hook.record("loss", 1.0)
        child = os.fork()
        if not child:
            hook.log(text="of the child")
            os._exit(0)
        os.waitpid(child, 0)
        hook.log(text="of the parent")
    assert [each.read() for each in create_trial(str(tmp_path / "run")).logged()] == ["of the parent"]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff" * 100, b"[" * 100_000])
def test_a_damaged_catalog_or_value_is_reported(tmp_path, data):
    place = tmp_path / "run"
    (value,) = logged(str(place), text="x")
    Path(place / "logged/values/worker_0/000000.value").write_bytes(data)
    with pytest.raises(DamagedFile):
        value.read()
    Path(place / "logged/catalogs/worker_0.value").write_bytes(data)
    with pytest.raises(DamagedFile):
        create_trial(str(place)).logged()
    assert "logged/catalogs/" in [problem.file for problem in verify(str(place)).problems]


def test_entries_of_another_form_and_names_that_are_none_are_left_out():
    storage = MemoryStorage("run")
    good = {"number": 0, "name": "a", "kind": "text", "step": 1, "bytes": 3}
    odd = [
        {**good, "number": -1},
        {**good, "number": True},
        {**good, "kind": "program"},
        {**good, "kind": ["text"]},
        {**good, "name": 3},
        {**good, "step": 1.5},
        7,
        None,
    ]
    storage.write("logged/catalogs/worker_0.value", json.dumps({"values": [*odd, good]}).encode())
    storage.write("logged/catalogs/w 0.value", b"{}")
    (entry,) = read_logged(storage)
    assert (entry.name, entry.worker) == ("a", "worker_0")


def test_of_several_workers_only_those_that_log_write(tmp_path):
    place = str(tmp_path / "run")
    hooks = [
        smdebug.Hook(place, worker=f"worker_{rank}", num_workers=3, include_workers="all")
        for rank in range(3)
    ]
    for rank, hook in enumerate(hooks):
        with hook.step(smdebug.modes.TRAIN):
            hook.record("loss", 1.0)
        if rank != 1:
            hook.log(text=f"of rank {rank}")
    for hook in hooks:
        hook.close()
    found = create_trial(place).logged("text")
    assert [(value.worker, value.read()) for value in found] == [
        ("worker_0", "of rank 0"),
        ("worker_2", "of rank 2"),
    ]
    assert not (tmp_path / "run/logged/values/worker_1").exists()
