"""The records of the old library that the tests hold ours against."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from smdebug.mode_keys import ModeKeys

GOLDEN = Path(__file__).parents[1] / "golden"


class OldRecord(NamedTuple):
    name: str
    array: npt.NDArray[Any]
    moment: dict[str, Any]
    record: bytes
    index: bytes


def records_of_the_old_library() -> list[OldRecord]:
    records = []
    for case in json.loads((GOLDEN / "records/old_library.json").read_bytes()):
        if case["dtype"] == "str":
            array = np.array(case["strings"], np.str_)
        else:
            array = np.frombuffer(base64.b64decode(case["content"]), case["dtype"])
        moment = {key: case[key] for key in ("step", "wall_time", "mode_step")}
        records.append(
            OldRecord(
                case["name"],
                array.reshape(case["shape"]),
                {**moment, "mode": ModeKeys[case["mode"]]},
                base64.b64decode(case["record"]),
                case["index"].encode(),
            )
        )
    return records


def event_files() -> list[Path]:
    return sorted((GOLDEN / "runs").glob("*/events/*/*.tfevents"))


def index_files() -> list[Path]:
    return sorted((GOLDEN / "runs").glob("*/index/*/*.json"))
