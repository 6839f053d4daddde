"""The key of each file of a run, and what its name means.

    collections/000000000/<worker>_collections.json
    events/<step:012>/<step:012>_<worker>.tfevents
    index/<step//1000:09>/<step:012>_<worker>.json
    origin.json
    checkpoints.json
    stalls/<worker>.stall.json
    annotations.json
    logged/catalogs/<worker>.value
    logged/values/<worker>/<number:06>.png (or .wav, .value)
    training_job_end.ts

A TensorFlow device is a worker too: `/job:worker/device:GPU:0` is written `_job-worker_device-GPU-0`.
The step ends at the first underscore of the file name, the worker is all the rest, and it is a device
exactly when it begins with an underscore.
"""

from __future__ import annotations

import re
from typing import NamedTuple

OBSERVATIONS = "smdebug/"
OBSERVED_COLLECTION = "observations"  # the collection of these
"""The prefix of tensors that hold observations of other tensors (`files.observations`)."""
FACTS = f"{OBSERVATIONS}facts"
SERIES = f"{OBSERVATIONS}series/"
"""The prefix of tensors that hold a scalar of every step."""
LEARNING_RATES = "learning_rate/"
"""The prefix of learning rates, by optimizer and group of parameters."""
FIRST_LEARNING_RATE = f"{LEARNING_RATES}0/0"
SYSTEM = "system"
"""The fact of a step that holds the system metrics."""
EPOCHS = f"{SYSTEM}/epoch"
"""The series that has a value at the first step of each epoch: how many are over."""
END_MARKER = "training_job_end.ts"
ORIGIN = "origin.json"  # command, versions, commit and hyperparameters (`files.notes.origin`)
CHECKPOINTS = "checkpoints.json"  # where the training saved its weights (`files.notes.checkpoints`)
ANNOTATIONS = "annotations.json"  # what people have written about it (`files.notes.annotations`)
LOGGED_FOLDER = "logged/"  # what a person looks at: images, text, sounds (`files.logged`)
LOGGED_CATALOGS = f"{LOGGED_FOLDER}catalogs/"
LOGGED_VALUES = f"{LOGGED_FOLDER}values/"
STALLS_FOLDER = "stalls/"  # where ranks are that make no progress (`files.notes.stalls`)
STALL_SUFFIX = ".stall.json"
SENT_ALERTS = "alerts.json"  # which problems were already sent as alerts, by tool (`sinks.sent_alerts`)
STOP_KEY = "control/stop"  # a request to stop the training, written beside the run
ZOOM_KEY = "control/zoom"  # a request to save whole tensors (`files.zoom_request`)
FIRST_FORMAT_MARKER = "collections.ts"
COLLECTIONS_FOLDER = "collections/000000000/"
COLLECTIONS_SUFFIX = "_collections.json"
EVENTS_FOLDER = "events/"
INDEX_FOLDER = "index/"
STEPS_PER_INDEX_FOLDER = 1000
LAST_STEP = 10**12 - 1  # a file name has twelve digits for its step
CLAIM = "claim.smd"
TEMPORARY_SUFFIX = ".tmp"

_STEP_FILE = re.compile(r"(?:^|/)(\d+)_([^/]+)\.(json|csv|tfevents)$")


class StepFile(NamedTuple):
    """The step and the worker in the name of an event or index file."""

    step: int
    worker: str


def event_key(step: int, worker: str) -> str:
    return f"{EVENTS_FOLDER}{step:012}/{step:012}_{file_name_of(worker)}.tfevents"


def index_key(step: int, worker: str) -> str:
    return f"{index_folder(step)}{step:012}_{file_name_of(worker)}.json"


def index_folder(step: int) -> str:
    return f"{INDEX_FOLDER}{step // STEPS_PER_INDEX_FOLDER:09}/"


def collections_key(worker: str) -> str:
    return f"{COLLECTIONS_FOLDER}{file_name_of(worker)}{COLLECTIONS_SUFFIX}"


def step_file(key: str) -> StepFile | None:
    """The step and worker in the name of an event or index file, or None if it is neither."""
    match = _STEP_FILE.search(key)
    return StepFile(int(match[1]), worker_in(match[2])) if match else None


def collections_worker(key: str) -> str | None:
    """The worker in the name of a collections file, or None if it is not one."""
    name = key.rsplit("/", 1)[-1]
    if not name.endswith(COLLECTIONS_SUFFIX) or name == COLLECTIONS_SUFFIX:
        return None
    return worker_in(name.removesuffix(COLLECTIONS_SUFFIX))


def file_name_of(worker: str) -> str:
    """How a worker is written in file names: only devices are changed."""
    return serialize_device(worker) if worker.startswith("/") else worker


def worker_in(file_name: str) -> str:
    """The worker that a file name means."""
    return deserialize_device(file_name) if file_name.startswith("_") else file_name


def serialize_device(device: str) -> str:
    return device.replace("/", "_").replace(":", "-")


def deserialize_device(file_name: str) -> str:
    return file_name.replace("_", "/").replace("-", ":")
