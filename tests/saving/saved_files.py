"""Read the files that a hook has saved."""

import json

from smdebug import SaveConfig
from smdebug.files.names import END_MARKER

EVERY_STEP = SaveConfig(save_interval=1)


def index_of(out_dir, step, worker="worker_0"):
    (path,) = (out_dir / "index").glob(f"*/{step:012}_{worker}.json")
    return json.loads(path.read_text())


def names_at(out_dir, step, worker="worker_0"):
    return [entry["tensorname"] for entry in index_of(out_dir, step, worker)["tensor_payload"]]


def saved_steps(out_dir):
    return sorted(int(path.name[:12]) for path in (out_dir / "index").glob("*/*.json"))


def collections_of(out_dir, worker="worker_0"):
    return json.loads((out_dir / f"collections/000000000/{worker}_collections.json").read_text())


def has_ended(out_dir):
    return (out_dir / END_MARKER).exists()
