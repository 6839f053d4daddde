"""A training whose framework logs to MLflow and W&B: `python -m … FRAMEWORK WAY RUN`.

The way is `alone`, with our `callback`, or after `smdebug.start`.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import smdebug

TOOLS = ["mlflow", "wandb"]
OURS: dict[str, Any] = {"system_metrics": False, "sinks": TOOLS}


def with_transformers(way: str, run: Path) -> None:
    from smdebug.huggingface import Callback
    from tests.frameworks.huggingface.test_callback import train

    callback = Callback(str(run), **OURS) if way == "callback" else None
    train(run.parent, callback, steps=6, report_to=TOOLS, eval_strategy="steps", eval_steps=3)
    if callback:
        callback.close()


def with_lightning(way: str, run: Path) -> None:
    from lightning.pytorch.loggers import MLFlowLogger, WandbLogger

    from smdebug.lightning import Callback
    from tests.frameworks.lightning.test_callback import fit

    loggers = [MLFlowLogger("watched"), WandbLogger(project="p")]
    callbacks = [Callback(str(run), **OURS)] if way == "callback" else []
    fit(run.parent, *callbacks, logger=loggers, log_every_n_steps=1)
    for callback in callbacks:
        callback.close()


def with_keras(way: str, run: Path) -> None:
    import keras
    import mlflow
    import wandb
    from wandb.integration.keras import WandbMetricsLogger

    import smdebug.tensorflow as smd
    from tests.frameworks.tensorflow.training import fit, small_model

    wandb.init(project="p")
    loggers = [
        mlflow.tensorflow.MlflowCallback(run=mlflow.start_run(), log_every_epoch=False, log_every_n_steps=1),
        WandbMetricsLogger(log_freq=1),
    ]
    hooks = [smd.KerasHook(str(run), **OURS)] if way == "callback" else []
    keras.utils.set_random_seed(0)
    fit(small_model(), *loggers, *hooks, validation_split=0.5)
    for hook in hooks:
        hook.close()


TRAININGS = {"transformers": with_transformers, "lightning": with_lightning, "keras": with_keras}

if __name__ == "__main__":
    framework, way, run = sys.argv[1:]
    with ExitStack() as watched:
        if way == "start":
            watched.enter_context(smdebug.start(run, **OURS))
        TRAININGS[framework](way, Path(run))
