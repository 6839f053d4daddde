"""The same jobs for the old library, under a Python that still runs it; prints its timings as JSON.

    python3.8 bench/old_library.py FOLDER_WITH_RUNS

It runs alone in its environment, so it uses nothing of this project but the runs that were written for it.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["SMDEBUG_LOG_LEVEL"] = "error"


def median(job, rounds=3):
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        result = job()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken), result


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def import_seconds():
    import_it = [sys.executable, "-c", "import smdebug.trials, smdebug.rules"]
    return median(lambda: subprocess.run(import_it, check=True), 5)[0]


def main(runs):
    import numpy as np
    from smdebug.core.modes import ModeKeys
    from smdebug.core.writer import FileWriter
    from smdebug.trials import create_trial

    found = {"import": import_seconds()}

    before = resident()
    found["open"], _ = median(lambda: create_trial(os.path.join(runs, "long")))
    found["open_bytes"] = resident() - before

    small = create_trial(os.path.join(runs, "small"))
    tensors = [small.tensor(name) for name in small.tensor_names()]
    steps = small.steps()
    begin = time.perf_counter()
    count = sum(1 for tensor in tensors for step in steps if tensor.value(step) is not None)
    found["values_per_second"] = count / (time.perf_counter() - begin)

    live = create_trial(os.path.join(runs, "live"))
    found["live_query"] = median(live.tensor_names, 21)[0]

    values = np.random.rand(1024).astype(np.float32)
    out = tempfile.mkdtemp(dir=os.path.dirname(runs))

    def write():
        for step in range(20):
            writer = FileWriter(trial_dir=out, step=step, worker="worker_0")
            for i in range(100):
                writer.write_tensor(values, "tensor_%d" % i, mode=ModeKeys.TRAIN, mode_step=step)
            writer.close()

    found["small_writes_per_second"] = 2000 / median(write)[0]
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
