"""The places of a run's files: `smdebug.files.names` names them."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path, PurePosixPath

from smdebug.exceptions import IndexReaderException, SMDebugValueError
from smdebug.files import names
from smdebug.mode_keys import ModeKeys

_STEP_FOLDER = re.compile(r"^\d+$")


class TensorFileLocation:
    """The event file of one step and worker."""

    def __init__(self, step_num: int, worker_name: str):
        self.step_num = int(step_num)
        self.worker_name = worker_name
        self.type = "events"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorFileLocation) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.step_num, self.worker_name))

    def get_file_location(self, trial_dir: str = "") -> str:
        """Return `<trial_dir>/events/<step>/<step>_<worker>.tfevents`."""
        return _joined(trial_dir, names.event_key(self.step_num, self.worker_name))

    def get_filename(self) -> str:
        return PurePosixPath(self.get_file_location()).name

    @classmethod
    def load_filename(cls, s: str) -> TensorFileLocation:
        """Return the location for a file name; the step ends at the first underscore."""
        found = names.step_file(s)
        if found is None:
            raise SMDebugValueError(
                f"{s} is not the name of an event file: 000000000012_worker_0.tfevents is one"
            )
        return cls(found.step, found.worker)

    @classmethod
    def match_regex(cls, s: str) -> bool:
        return names.step_file(s) is not None

    @staticmethod
    def get_dir(base_dir: str) -> str:
        return _joined(base_dir, "events")

    @classmethod
    def get_step_dirs(cls, base_dir: str) -> list[str]:
        """Return the names of the step folders in a local `<base_dir>/events`, sorted."""
        events = Path(cls.get_dir(base_dir))
        folders = (entry.name for entry in events.iterdir()) if events.is_dir() else ()
        return sorted(folder for folder in folders if _STEP_FOLDER.match(folder))

    @classmethod
    def get_step_dir_path(cls, base_dir: str, step_num: int) -> str:
        return _joined(cls.get_dir(base_dir), f"{int(step_num):012}")


class TensorboardFileLocation:
    """The TensorBoard file of one step, process and mode."""

    def __init__(self, step_num: int, worker_name: str, mode: ModeKeys | None = None):
        self.step_num = int(step_num)
        self.worker_name = worker_name
        self.mode = mode
        self.type = "tensorboard"

    def get_file_location(self, base_dir: str = "") -> str:
        """Return `<base_dir>/<MODE>/<step>_<worker>.tfevents`."""
        folder = _joined(base_dir, self.mode.name) if self.mode is not None else base_dir
        return _joined(folder, self.get_filename())

    def get_filename(self) -> str:
        return f"{self.step_num:012}_{names.file_name_of(self.worker_name)}.tfevents"

    @classmethod
    def load_filename(cls, s: str) -> TensorboardFileLocation:
        found = TensorFileLocation.load_filename(s)
        return cls(found.step_num, found.worker_name)


class TraceFileLocation:
    """The profiler's trace file of one hour, node and moment."""

    TRACE_FOLDER = "framework/pevents"

    @classmethod
    def get_file_location(cls, timestamp: float, base_dir: str = "", suffix: str = "pythontimeline") -> str:
        """Return `<base_dir>/framework/pevents/<YYYYMMDDHH>/<microseconds>_<pid>_<suffix>.json`."""
        hour = time.strftime("%Y%m%d%H", time.gmtime(timestamp))
        name = f"{int(timestamp * 1e6)}_{os.getpid()}_{suffix}.json"
        return _joined(base_dir, f"{cls.TRACE_FOLDER}/{hour}/{name}")


class IndexFileLocationUtils:
    """The places of index files: a folder for each thousand steps."""

    MAX_INDEX_FILE_NUM_IN_INDEX_PREFIX = names.STEPS_PER_INDEX_FOLDER

    @staticmethod
    def get_index_prefix_for_step(step_num: int) -> str:
        """Return the name of the folder that holds this step."""
        return f"{int(step_num) // names.STEPS_PER_INDEX_FOLDER:09}"

    @classmethod
    def next_index_prefix_for_step(cls, step_num: int) -> str:
        return cls.get_index_prefix_for_step(int(step_num) + names.STEPS_PER_INDEX_FOLDER)

    @classmethod
    def get_index_key_for_step(cls, prefix: str, step_num: int, worker_name: str) -> str:
        return _joined(prefix, names.index_key(int(step_num), worker_name))

    @staticmethod
    def parse_step_from_index_file_name(index_file_name: str) -> int:
        found = names.step_file(index_file_name)
        if found is None:
            raise IndexReaderException(
                f"{index_file_name} is not the name of an index file: 000000000012_worker_0.json is one"
            )
        return found.step

    @staticmethod
    def get_index_path(path: str) -> str:
        return _joined(path, "index")

    @staticmethod
    def get_prefix_from_index_file(index_file: str) -> str:
        """Return the run of an index file: the path before `/index/`."""
        return index_file.rpartition("/index/")[0]


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name
