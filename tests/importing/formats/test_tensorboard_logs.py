"""Event files of TensorBoard: scalars of each form, folders of runs, and damage."""

from __future__ import annotations

import struct

import pytest

from smdebug.files.wire import delimited, varint
from smdebug.importing.finding import find_runs
from tests.importing.logs import STARTED, by_name, event_of_summary, read, write_events


def scalar_tensor(dtype: int, content: bytes, field: int = 4) -> bytes:
    """Return the value that TensorFlow 2 writes for a scalar."""
    tensor = b"\x08" + varint(dtype) + b"\x12\x00" + delimited(varint(field << 3 | 2), content)
    plugin = delimited(b"\x4a", delimited(b"\x0a", delimited(b"\x0a", b"scalars")))
    return delimited(b"\x0a", b"loss") + delimited(b"\x42", tensor) + plugin


def test_scalars_come_with_their_steps_and_times(tmp_path):
    write_events(
        tmp_path / "a/events.out.tfevents.1.host", [("loss", 0, 2.0), ("loss", 10, 1.0), ("lr", 10, 0.5)]
    )
    points, details = read(find_runs(tmp_path))
    assert by_name(points) == {"loss": [(0, 2.0), (10, 1.0)], "lr": [(10, 0.5)]}
    assert [point.time for point in points] == [STARTED, STARTED + 10, STARTED + 10]
    assert not details.left_out


@pytest.mark.parametrize(
    "value",
    [
        scalar_tensor(1, struct.pack("<f", 0.5)),
        scalar_tensor(2, struct.pack("<d", 0.5)),
        scalar_tensor(1, struct.pack("<f", 0.5), field=5),
        scalar_tensor(19, struct.pack("<e", 0.5)),
    ],
    ids=["float", "double", "float_val", "half"],
)
def test_a_scalar_may_be_a_tensor(tmp_path, value):
    (tmp_path / "events.out.tfevents.1").write_bytes(event_of_summary(value, step=7))
    points, _ = read(find_runs(tmp_path))
    assert by_name(points) == {"loss": [(7, 0.5)]}


def test_images_and_histograms_are_left_out_and_counted(tmp_path):
    image = delimited(b"\x0a", b"picture") + delimited(b"\x22", b"")
    histogram = delimited(b"\x0a", b"weights") + delimited(b"\x2a", b"")
    scalar = delimited(b"\x0a", b"loss") + b"\x15" + struct.pack("<f", 1.0)
    records = [event_of_summary(value) for value in (image, histogram, histogram, scalar)]
    (tmp_path / "events.out.tfevents.1").write_bytes(b"".join(records))
    points, details = read(find_runs(tmp_path))
    assert by_name(points) == {"loss": [(0, 1.0)]}
    assert details.left_out == {"images": 1, "histograms": 2}


def test_each_folder_with_event_files_is_a_run_and_its_parts_belong_to_it(tmp_path):
    for folder in ("a", "b/c", "keras/train", "keras/validation", "a/1763805600.5", "a/Loss_train"):
        write_events(tmp_path / folder / "events.out.tfevents.1", [("loss", 0, 1.0)])
    runs = {run.name: run for run in find_runs(tmp_path)}
    assert set(runs) == {"a", "b-c", "keras"}
    assert set(by_name(read([runs["keras"]])[0])) == {"train/loss", "validation/loss"}
    assert set(by_name(read([runs["a"]])[0])) == {"loss", "train/loss"}


@pytest.mark.parametrize("kept", [1, 7, 11, 20, 39])
def test_a_file_that_is_cut_off_is_read_up_to_the_cut(tmp_path, kept):
    path = write_events(tmp_path / "events.out.tfevents.1", [("loss", step, 1.0) for step in range(10)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - kept])
    points, details = read(find_runs(tmp_path))
    assert 8 <= len(points) < 10
    (what,) = details.left_out
    assert "cut off" in what


def test_after_a_record_whose_checksum_is_wrong_nothing_is_read(tmp_path):
    path = write_events(tmp_path / "events.out.tfevents.1", [("loss", step, 1.0) for step in range(10)])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    points, details = read(find_runs(tmp_path))
    assert 0 < len(points) < 10
    assert len(details.left_out) == 1


def test_hyperparameters_and_the_arguments_of_transformers_are_the_configuration(tmp_path):
    number = delimited(b"\x12", b"\x11" + struct.pack("<d", 0.1))
    text = delimited(b"\x12", delimited(b"\x1a", b"adam"))
    entries = delimited(b"\x0a", delimited(b"\x0a", b"lr") + number)
    entries += delimited(b"\x0a", delimited(b"\x0a", b"optimizer") + text)
    plugin = delimited(b"\x0a", b"hparams") + delimited(b"\x12", delimited(b"\x1a", entries))
    hparams = delimited(b"\x0a", b"_hparams_/session_start_info") + delimited(
        b"\x4a", delimited(b"\x0a", plugin)
    )
    texts = b"\x08\x07" + delimited(b"\x42", b'{"per_device_train_batch_size": 8}')
    kind = delimited(b"\x4a", delimited(b"\x0a", delimited(b"\x0a", b"text")))
    arguments = delimited(b"\x0a", b"args/text_summary") + delimited(b"\x42", texts) + kind
    (tmp_path / "events.out.tfevents.1").write_bytes(event_of_summary(hparams) + event_of_summary(arguments))
    _, details = read(find_runs(tmp_path))
    assert details.config == {"lr": 0.1, "optimizer": "adam", "per_device_train_batch_size": 8}
