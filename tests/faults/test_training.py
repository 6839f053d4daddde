"""Whatever fails at whichever call, the training ends as it would have, and the files are complete."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smdebug
from smdebug import SaveConfig, modes
from smdebug.exceptions import ObjectMissing
from smdebug.files import names
from smdebug.files.event_reading import read_value
from smdebug.files.index import parse_index
from smdebug.saving.hooks import hook as hook_module
from smdebug.saving.place import deadline
from smdebug.storage.base import ByteSpan
from smdebug.storage.folder import FolderStorage
from tests.faults import places
from tests.faults.places import TroubledFolder
from tests.support.looking import each
from tests.trials.writing import open_trial

STEPS = 4
IMPATIENT = 0.05
ENDS_WITHIN = 60.0


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_module.BaseHook, "write_patience", IMPATIENT)
    monkeypatch.setattr(deadline, "ANSWERS_WITHIN", IMPATIENT)


@pytest.fixture
def log_records() -> Iterator[list[logging.LogRecord]]:
    """The messages of the logger."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger = logging.getLogger("smdebug")
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


def train(hook: smdebug.Hook | None = None, saved: dict[int, dict[str, Any]] | None = None) -> bytes:
    """Train a small network with noise from numpy's global generator; return the bits of its final state."""
    np.random.seed(7)
    weights = np.random.normal(size=(12, 3))
    inputs, target = np.random.normal(size=(30, 12)), np.random.normal(size=(30, 3))
    for step in range(STEPS):
        noisy = inputs * np.random.binomial(1, 0.9, inputs.shape)
        error = noisy @ weights - target
        gradient = noisy.T @ error / len(noisy)
        tensors = {"loss": (error**2).mean(), "gradient/w": gradient, "weight": weights}
        if hook is not None:
            with hook.step(modes.TRAIN):
                hook.record_all(tensors)
        if saved is not None:
            saved[step] = {name: np.array(value) for name, value in tensors.items()}
        weights -= 0.1 * gradient
    if hook is not None:
        hook.close()
    return weights.tobytes() + np.random.bytes(8)


def hook_at(place: TroubledFolder) -> smdebug.Hook:
    return smdebug.Hook(
        place,
        include_collections=["weights", "gradients"],
        save_config=SaveConfig(save_interval=1),
    )


def in_time(job: Callable[[], Any]) -> Any:
    """Return the job's result; fail, instead of hanging, if it does not end."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(job())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(ENDS_WITHIN)
    assert results, f"it has not ended after {ENDS_WITHIN:g} s"
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


SAVED: dict[int, dict[str, Any]] = {}
ALONE = train(saved=SAVED)


def what_is_there(place: TroubledFolder) -> dict[int, dict[str, Any]]:
    """Return all values of all steps that a listing shows; raise if any of them cannot be read."""
    folder = FolderStorage(place.location)
    found = {}
    for key in folder.list("index/"):
        at = names.step_file(key)
        assert at is not None
        try:
            found[at.step] = values_of(folder, key, at.step)
        except ObjectMissing:
            if not place.was_removed:  # else it was removed before its index file arrived
                raise
    return found


def values_of(folder: FolderStorage, key: str, step: int) -> dict[str, Any]:
    index = parse_index(folder.read(key), file=key)
    event_file = index.meta.event_file_name
    assert event_file is not None
    assert index.crcs is not None
    return {
        name: read_value(
            folder.read(event_file, ByteSpan(start, start + length)),
            file=event_file,
            name=name,
            step=step,
            crc32c=crc,
        )
        for name, start, length, crc in zip(*index[1:5], strict=True)
    }


def train_at(place: TroubledFolder, log_records: list[logging.LogRecord]) -> dict[int, dict[str, Any]]:
    """Train, and check what is promised; return the steps that were saved."""
    log_records.clear()
    try:
        assert in_time(lambda: train(hook_at(place))) == ALONE
    finally:
        place.let_go.set()
    loud = [record.getMessage() for record in log_records if record.levelno >= logging.ERROR]
    assert len(loud) <= 1, loud
    there = what_is_there(place)
    for step, tensors in there.items():
        assert tensors.keys() == SAVED[step].keys()
        for name, value in tensors.items():
            np.testing.assert_array_equal(value, SAVED[step][name])
    return there


@pytest.fixture
def calls(tmp_path, log_records) -> list[str]:
    """Return the calls of a training without faults."""
    place = TroubledFolder(tmp_path / "calm")
    assert train_at(place, log_records).keys() == SAVED.keys()
    assert not [record for record in log_records if record.levelno > logging.INFO]
    return place.calls


ONCE = [places.fails, places.is_full, places.tears, places.dies]


@pytest.mark.parametrize("trouble", ONCE, ids=lambda trouble: trouble.__name__)
def test_a_failure_of_one_call_costs_at_most_one_step_and_is_reported(trouble, calls, tmp_path, log_records):
    for number in each(range(len(calls)), at_least=20):
        place = TroubledFolder(tmp_path / f"run{number}", trouble, lambda n, at=number: n == at)
        there = train_at(place, log_records)
        assert len(there) >= STEPS - 1, calls[number]
        if len(there) < STEPS:
            (error,) = (r.getMessage() for r in log_records if r.levelno >= logging.ERROR)
            (lost,) = SAVED.keys() - there.keys()
            assert f"Lost: 1 ({lost})" in error, calls[number]
        if not number % 5:
            assert open_trial(FolderStorage(place.location)).steps() is not None


FOR_GOOD = [*ONCE, places.disappears]


@pytest.mark.parametrize("trouble", FOR_GOOD, ids=lambda trouble: trouble.__name__)
def test_a_failure_from_one_call_on_is_reported_once(trouble, calls, tmp_path, log_records):
    for number in each(range(len(calls)), at_least=20):
        place = TroubledFolder(tmp_path / f"run{number}", trouble, lambda n, at=number: n >= at)
        there = train_at(place, log_records)
        loud = [record for record in log_records if record.levelno >= logging.ERROR]
        refused = len(there) < STEPS and trouble is not places.disappears
        assert len(loud) == 1 or not refused, calls[number]


@pytest.mark.parametrize("trouble", [places.disappears, places.disappears_unnoticed])
def test_a_folder_that_is_removed_at_any_call_loses_what_was_in_it_and_no_more(
    trouble, calls, tmp_path, log_records
):
    for number in each(range(len(calls)), at_least=20):
        place = TroubledFolder(tmp_path / f"run{number}", trouble, lambda n, at=number: n == at)
        there = train_at(place, log_records)
        first = min(there, default=STEPS)
        assert sorted(there) == list(range(first, STEPS)), calls[number]


@pytest.mark.parametrize("for_good", [False, True])
def test_a_call_that_blocks_anywhere_does_not_block_the_training_forever(
    for_good, calls, tmp_path, log_records, impatient
):
    blocked = 0
    for number in range(0, len(calls), 1 + for_good):
        place = TroubledFolder(
            tmp_path / f"run{number}",
            places.blocks,
            lambda n, at=number: n == at or (for_good and n > at),
        )
        train_at(place, log_records)
        blocked += place.blocked > 0
    assert blocked > len(calls) / 4


def test_a_slow_folder_gets_everything(tmp_path, log_records):
    place = TroubledFolder(tmp_path, places.is_slow, lambda number: True)
    assert train_at(place, log_records).keys() == SAVED.keys()


@pytest.mark.parametrize("seed", range(40))
def test_repeated_failures_change_nothing_in_the_training(seed, tmp_path, log_records):
    chance = random.Random(seed)
    kinds = [*ONCE, places.is_slow, places.disappears_unnoticed]
    often = chance.choice((0.1, 0.3, 0.6))

    def any_of_them(place: TroubledFolder) -> None:
        chance.choice(kinds)(place)

    train_at(TroubledFolder(tmp_path, any_of_them, lambda number: chance.random() < often), log_records)
