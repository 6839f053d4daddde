"""Where a run is saved: the next free name, and the place for TensorBoard."""

from pathlib import Path

import pytest

from smdebug.config.constants import TRAINING_JOB_NAME_ENV_VAR
from smdebug.exceptions import RunEnded, StorageUnavailable
from smdebug.files.names import END_MARKER
from smdebug.saving.place.places import (
    get_tensorboard_dir,
    place_for_a_run,
    unused,
    verify_and_get_out_dir,
)
from smdebug.storage.memory import MemoryStorage


def test_the_first_name_that_is_free_is_found(tmp_path):
    found = []
    for _ in range(4):
        found.append(unused(tmp_path / "run"))
        found[-1].mkdir()
    assert [path.name for path in found] == ["run", "run-2", "run-3", "run-4"]


@pytest.mark.parametrize(
    ("export", "chosen", "expected"),
    [
        (False, None, None),
        (True, None, "/runs/a/tensorboard"),
        (False, "/boards", "/boards"),
        (True, "s3://bucket/boards", "s3://bucket/boards"),
        (True, "~/boards", str(Path.home() / "boards")),
    ],
)
def test_tensorboard_has_a_folder_of_the_run_or_the_one_that_is_named(export, chosen, expected, monkeypatch):
    assert get_tensorboard_dir(export, chosen, "/runs/a/") == expected
    monkeypatch.setenv(TRAINING_JOB_NAME_ENV_VAR, "job")
    assert get_tensorboard_dir(export, chosen, "/runs/a/") is None, "the job's own configuration decides"


def test_a_place_with_a_finished_run_is_refused_with_the_next_free_one(tmp_path):
    assert verify_and_get_out_dir(tmp_path / "run") == str(tmp_path / "run")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "index").mkdir()
    assert verify_and_get_out_dir(tmp_path / "run") == str(tmp_path / "run"), "an unfinished one goes on"
    (tmp_path / "run" / END_MARKER).touch()
    with pytest.raises(RunEnded, match="run-2"):
        verify_and_get_out_dir(tmp_path / "run")
    with pytest.raises(RuntimeError, match="out_dir is a required argument"):
        place_for_a_run(None)
    storage = MemoryStorage("run")
    storage.write(END_MARKER, b"")
    with pytest.raises(RunEnded):
        place_for_a_run(storage)


def test_a_place_that_cannot_be_read_is_taken_with_a_warning(log_records):
    class Unreadable(MemoryStorage):
        """A place that may only be written."""

        def exists(self, key):
            raise StorageUnavailable(self.location, "access denied")

    storage = Unreadable("run")
    assert place_for_a_run(storage) is storage
    assert "unknown whether" in log_records[0].getMessage()
