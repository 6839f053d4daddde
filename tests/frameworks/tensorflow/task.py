"""One task of those that `TF_CONFIG` names: `python -m tests.frameworks.tensorflow.task RUN`."""

from __future__ import annotations

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np

import smdebug.tensorflow as smd


def main(run: str) -> None:
    every = smd.SaveConfig(save_interval=1)
    hook = smd.KerasHook(run, save_config=every, save_all=True, include_workers="all")
    with hook:
        for step in range(2):
            with hook.step(smd.modes.TRAIN):
                hook.save_tensor("who", np.array([os.getpid(), step]))


if __name__ == "__main__":
    main(*sys.argv[1:])
