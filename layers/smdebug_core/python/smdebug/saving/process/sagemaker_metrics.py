"""Metrics for SageMaker's console: one JSON line each, in the folder that its agent watches."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from smdebug.config.constants import DEFAULT_SAGEMAKER_METRICS_PATH
from smdebug.config.environment import is_sagemaker_job
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys


class SageMakerMetrics:
    """Logs metrics in a SageMaker job; anywhere else it does nothing."""

    def __init__(self) -> None:
        folder = os.environ.get(DEFAULT_SAGEMAKER_METRICS_PATH)
        self._file = Path(folder) / f"{os.getpid()}.json" if folder and is_sagemaker_job() else None

    @property
    def is_active(self) -> bool:
        return self._file is not None

    def log(self, name: str, value: float, mode: ModeKeys, step: int, timestamp: float | None = None) -> None:
        """Log `value` as `<name>_<MODE>`."""
        if self._file is None:
            return
        line = {
            "MetricName": f"{name}_{mode.name}",
            "Value": value,
            "Timestamp": time.time() if timestamp is None else timestamp,
            "IterationNumber": step,
        }
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            get_logger().error("Metrics are no longer logged: %s cannot be written (%s)", self._file, error)
            self._file = None
