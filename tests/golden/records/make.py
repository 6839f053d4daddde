"""Writes old_library.json: many tensors, and the records that the old library (1.0.34) makes of them.

Run it where that one is installed (Python 3.8, numpy < 1.24, protobuf 3.20.3); see README.md.
"""

import base64
import json
import pathlib
import tempfile

import numpy as np

from smdebug.core.modes import ModeKeys
from smdebug.core.writer import FileWriter

numbers = np.random.RandomState(7)
DTYPES = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
]
SHAPES = [(), (1,), (3,), (0,), (2, 3), (4, 0, 2), (1, 1, 1, 2), (127,), (128,), (50, 7)]


def array_of(dtype, shape):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    content = numbers.randint(0, 2 if dtype == "bool" else 256, size).astype(np.uint8).tobytes()
    return np.frombuffer(content, dtype).reshape(shape)


cases = []
for dtype in DTYPES:
    for shape in SHAPES:
        cases.append((f"gradient/{dtype}:{len(shape)}", array_of(dtype, shape)))
for strings in (["a"], ["", "b\u00e9", "\u65e5\u672c", "\U0001f600"], ["x" * 130, "y"]):
    cases.append(("text/unicode", np.array(strings)))
    cases.append(("text/objects", np.array(strings, dtype=object)))
cases.append(("text/none", np.array([], dtype=str)))
cases.append(("n" * 200, array_of("float32", (5,))))
cases.append(("\u00fcn\u00ef/c\u00f8d\u00e9", array_of("float32", (5,))))
cases.append(("transposed", array_of("float32", (5, 3)).T))
cases.append(("strided", array_of("int64", (40,))[::3]))

MODES = list(ModeKeys)
records = []
for number, (name, array) in enumerate(cases):
    step = [0, 1, 127, 128, 16384, 999999999999, 5][number % 7]
    mode_step = [0, 9, 10, 12345, 7][number % 5]
    mode = MODES[number % 4]
    wall_time = [1700000000.25, 1.5, -3.75][number % 3]
    with tempfile.TemporaryDirectory() as folder:
        writer = FileWriter(trial_dir=folder, worker="worker_0", step=step)
        writer.write_tensor(array, name, mode=mode, mode_step=mode_step, timestamp=wall_time)
        writer.close()
        (event_file,) = pathlib.Path(folder).glob("events/*/*.tfevents")
        record = event_file.read_bytes()
        (index_file,) = pathlib.Path(folder).glob("index/*/*.json")
        index = index_file.read_text()
    case = {
        "name": name,
        "step": step,
        "wall_time": wall_time,
        "mode": mode.name,
        "mode_step": mode_step,
        "shape": array.shape,
        "record": base64.b64encode(record).decode(),
        "index": index,
    }
    if array.dtype.kind in "UO":
        case.update(dtype="str", strings=array.tolist())
    else:
        content = np.ascontiguousarray(array).tobytes()
        case.update(dtype=array.dtype.name, content=base64.b64encode(content).decode())
    records.append(case)

path = pathlib.Path(__file__).with_name("old_library.json")
path.write_text("[\n" + ",\n".join(json.dumps(record) for record in records) + "\n]\n")
