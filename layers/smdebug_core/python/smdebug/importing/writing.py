"""Writes what another tool has logged as a run of this library.

The run has a saved step for each step of the log, or for each of 300 groups of them, which carries the series
as a hook's does. A step has the number that the log gives it, in training and validation, which are told
apart by their modes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from smdebug.config.hyperparameters import flat_config
from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.files.collections_file import ClosingNote, LostSteps, encode_collections
from smdebug.files.names import (
    COLLECTIONS_FOLDER,
    END_MARKER,
    OBSERVATIONS,
    OBSERVED_COLLECTION,
    ORIGIN,
    SERIES,
    collections_key,
)
from smdebug.files.notes.origin import ImportedFrom, Origin
from smdebug.files.observations import FACTS, LAYOUT, ObservationLayout, json_array
from smdebug.importing.facts import facts_of
from smdebug.importing.names import LOSS, targets_of
from smdebug.importing.records import Details, Found, ImportedRun, Point, Target, named_values
from smdebug.importing.sorting import SortedPoints, Value
from smdebug.mode_keys import ModeKeys
from smdebug.saving.hooks.loop_hook import NeutralCollections
from smdebug.saving.place.attempt import StartedAttempt, new_run_id
from smdebug.saving.place.finished import remove_run
from smdebug.saving.writing.step_writer import StepWriter
from smdebug.storage import open_storage
from smdebug.storage.base import Storage

WORKER = "worker_0"
MOST_STEPS = 300
"""Logs of more steps are saved in groups of them: no value is lost, and rules check at the end of each."""
_MOST_VALUES = 200_000
"""A group ends early with so many values."""
_COUNTED_TOGETHER = 1000
_LONGEST_SOURCE = 500
_MOST_KEPT = 500
"""How many series the origin names."""


def import_run(
    found: Found,
    place: str | Path,
    *,
    overwrite: bool = False,
    advance: Callable[[int], object] = lambda values: None,
) -> ImportedRun:
    """Write the run that another tool has logged to `place`, a folder or `s3://…`; return what was imported.

    A place that holds anything is refused, unless `overwrite` says that its run may be replaced. Nothing is
    written before the whole log was read. `advance` is called with the number of values that were read or
    written since.
    """
    storage = open_storage(str(place))
    _check_place(storage, found, overwrite=overwrite)
    details = Details()
    with SortedPoints() as points:
        points.add(_counted(named_values(found.read(details), details), advance), details)
        counts = points.counts()
        if not counts:
            raise SMDebugValueError(f"{found.place} ({found.format}) holds no scalars{_reasons(details)}")
        targets = targets_of(counts)
        if overwrite:
            remove_run(storage)
        writer = _Writer(storage, targets, details, facts_of(targets, counts, points.span))
        writer.write(found, points, advance)
    return ImportedRun(
        found,
        storage.location,
        writer.values,
        writer.steps,
        targets,
        dict(details.left_out),
        writer.config,
    )


def _check_place(storage: Storage, found: Found, *, overwrite: bool) -> None:
    """Raise unless a run may be written there: never over the log itself, nor over what is no run."""
    source = found.place.resolve()
    if "://" not in storage.location and source.is_relative_to(Path(storage.location).resolve()):
        raise SMDebugValueError(
            f"{found.place} cannot be imported into {storage.location}, which contains it. "
            "Choose another folder"
        )
    if next(iter(storage.list("")), None) is None:
        return
    if not overwrite:
        raise SMDebugValueError(
            f"{storage.location} is not empty. Choose another folder, or replace the run in it with "
            "--overwrite"
        )
    if next(iter(storage.list(COLLECTIONS_FOLDER)), None) is None and not storage.exists(END_MARKER):
        raise SMDebugValueError(
            f"{storage.location} holds files, and no run that --overwrite could replace. "
            "Choose another folder"
        )


def _counted(points: Iterator[Point], advance: Callable[[int], object]) -> Iterator[Point]:
    for number, point in enumerate(points, 1):
        if not number % _COUNTED_TOGETHER:
            advance(_COUNTED_TOGETHER)
        yield point


def _reasons(details: Details) -> str:
    return f": {', '.join(details.left_out)} were left out" if details.left_out else ""


class _Writer:
    """Writes the steps of one run, and the files around them."""

    def __init__(
        self, storage: Storage, targets: Mapping[str, Target], details: Details, facts: Mapping[str, Any]
    ):
        self.values = 0
        self.steps = 0
        self.config = flat_config(details.config)
        self._storage = storage
        self._targets = targets
        self._details = details
        self._attempt = StartedAttempt(new_run_id(storage.location, 1))
        self._collections = NeutralCollections(create_default=True)
        self._collections.set_num_workers(1)
        self._collections.get(OBSERVED_COLLECTION).include([f"^{OBSERVATIONS}"])
        self._collections.update_meta(self._attempt.to_meta())
        self._last: int | None = None
        self._written = 0
        self._started = details.started
        self._facts = facts
        self._layout_step: int | None = None
        self._chosen = {
            target.series
            for target in targets.values()
            if target.series == LOSS or self._is_saved(target.series)
        }

    def write(self, found: Found, points: SortedPoints, advance: Callable[[int], object]) -> None:
        for name in self._chosen:
            collection = CollectionKeys.LOSSES if "loss" in name.lower() else CollectionKeys.METRICS
            self._collections.get(collection).add_tensor_name(name)
        self._write_collections()
        size = max(1, -(-points.steps() // MOST_STEPS))
        group: list[Value] = []
        in_group = 0
        for _, values in groupby(points.in_order(), key=lambda value: value.step):
            at_step = list(values)
            advance(len(at_step))
            group += at_step
            in_group += 1
            self.steps += 1
            if in_group >= size or len(group) >= _MOST_VALUES:
                self._write_step(group)
                group, in_group = [], 0
        if group:
            self._write_step(group)
        self._storage.write(ORIGIN, self._origin(found).encode())
        note = ClosingNote(self._last, self._written, LostSteps(0, None, None, ""))
        self._collections.update_meta(note.to_meta())
        self._write_collections()
        self._storage.write(END_MARKER, b"")

    def _is_saved(self, series: str) -> bool:
        kinds = (CollectionKeys.LOSSES, CollectionKeys.METRICS)
        patterns = [pattern for kind in kinds for pattern in self._collections.get(kind).include_regex]
        return any(re.search(pattern, series) for pattern in patterns)

    def _write_step(self, group: list[Value]) -> None:
        """Write a group of steps as the last one of them. Within a step, training comes before validation."""
        rows: dict[str, list[tuple[float, float, float, float]]] = {}
        for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            for value in group:
                target = self._targets[value.series]
                if target.mode is mode:
                    row = (value.step, mode.value, value.step, value.value)
                    rows.setdefault(target.series, []).append(row)
        step = group[-1].step
        trains = any(self._targets[value.series].mode is ModeKeys.TRAIN for value in group)
        times = [value.time for value in group if value.time is not None]
        time = max(times) if times else self._details.started or 0.0
        if times and self._started is None:
            self._started = min(times)
        with StepWriter(
            self._storage,
            step=step,
            worker=WORKER,
            mode=ModeKeys.TRAIN if trains else ModeKeys.EVAL,
            mode_step=step,
            meta_extras={
                **self._attempt.to_meta(),
                "previous_step": self._last,
                "steps_before": self._written,
            },
        ) as writer:
            if self._layout_step is None:
                self._layout_step = step
                writer.write_tensor(LAYOUT, ObservationLayout({}, self._facts).to_array(), time)
            writer.write_tensor(FACTS, json_array({"imported": True, "layout": self._layout_step}), time)
            for series, of_series in sorted(rows.items()):
                ordered = sorted(of_series, key=lambda row: row[0])  # stable: training first
                writer.write_tensor(f"{SERIES}{series}", np.array(ordered, np.float64), time)
                self.values += len(ordered)
                if series in self._chosen:
                    here = [row for row in ordered if row[0] == step]
                    if here:
                        writer.write_tensor(series, np.array(here[0][3], np.float64), time)
        self._last = step
        self._written += 1

    def _write_collections(self) -> None:
        content = encode_collections(self._collections.to_json_dict(), checksum=True)
        self._storage.write(collections_key(WORKER), content)

    def _origin(self, found: Found) -> Origin:
        details = self._details
        started = ""
        if self._started is not None:
            started = datetime.fromtimestamp(self._started, UTC).isoformat(timespec="seconds")
        origin = Origin(
            run_id=self._attempt.run_id,
            started=started,
            command=details.command,
            host=details.host[:_LONGEST_SOURCE],
            config=self.config,
            tags=tuple(tag[:_LONGEST_SOURCE] for tag in details.tags),
            note=details.note[:_LONGEST_SOURCE],
        )
        source = found.place.resolve()
        # Those of the loss first: the file has a limit.
        kept = sorted(self._targets, key=lambda name: self._targets[name].series != LOSS)[:_MOST_KEPT]
        imported = ImportedFrom(
            found.format,
            str(source)[-_LONGEST_SOURCE:],
            details.step_is,
            {name: str(self._targets[name]) for name in kept},
            dict(details.left_out),
        )
        return replace(origin, imported=imported)
