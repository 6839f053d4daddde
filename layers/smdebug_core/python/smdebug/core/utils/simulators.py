"""For code written against smdebug: surroundings for tests of training scripts."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from smdebug.config.constants import (
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_SAGEMAKER_OUTDIR,
    TENSORBOARD_CONFIG_FILE_PATH_ENV_STR,
    TRAINING_JOB_NAME_ENV_VAR,
)
from smdebug.core.utils.paths import ensure_dir, remove_file_if_exists
from smdebug.saving.singleton import current_hook, del_hook

__all__ = ["SagemakerSimulator", "ScriptSimulator"]


class SagemakerSimulator:
    """A context in which this process looks like a SageMaker training job with that hook configuration."""

    def __init__(
        self,
        json_config_path: str = "/tmp/zcc_config.json",  # noqa: S108 - the old default
        tensorboard_dir: str = "/tmp/tensorboard",  # noqa: S108 - the old default
        training_job_name: str = "sm_job",
        json_file_contents: str = "{}",
        cleanup: bool = True,
    ):
        self.out_dir = DEFAULT_SAGEMAKER_OUTDIR
        self.json_config_path = json_config_path
        self.tensorboard_dir = tensorboard_dir
        self.training_job_name = training_job_name
        self.json_file_contents = json_file_contents
        self.cleanup = cleanup
        self._before: dict[str, str | None] = {}
        self._tensorboard_config = ""

    def __enter__(self) -> SagemakerSimulator:
        _forget_hook()
        self._remove_output()
        ensure_dir(self.json_config_path)
        Path(self.json_config_path).write_text(self.json_file_contents, encoding="utf-8")
        handle, self._tensorboard_config = tempfile.mkstemp(suffix=".json")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"LocalPath": self.tensorboard_dir}, file)
        self._set(CONFIG_FILE_PATH_ENV_STR, self.json_config_path)
        self._set(TENSORBOARD_CONFIG_FILE_PATH_ENV_STR, self._tensorboard_config)
        self._set(TRAINING_JOB_NAME_ENV_VAR, self.training_job_name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _forget_hook()
        if self.cleanup:
            self._remove_output()
            remove_file_if_exists(self.json_config_path)
        remove_file_if_exists(self._tensorboard_config)
        for variable, value in self._before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value

    def _set(self, variable: str, value: str) -> None:
        self._before[variable] = os.environ.get(variable)
        os.environ[variable] = value

    def _remove_output(self) -> None:
        if self.cleanup:
            shutil.rmtree(self.out_dir, ignore_errors=True)
            shutil.rmtree(self.tensorboard_dir, ignore_errors=True)


class ScriptSimulator:
    """A context that starts with an empty `out_dir` and removes it at the end."""

    def __init__(self, out_dir: str = "/tmp/test", tensorboard_dir: str | None = None):  # noqa: S108
        self.out_dir = out_dir
        self.tensorboard_dir = tensorboard_dir

    def __enter__(self) -> ScriptSimulator:
        _forget_hook()
        self._remove_output()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _forget_hook()
        self._remove_output()

    def _remove_output(self) -> None:
        shutil.rmtree(self.out_dir, ignore_errors=True)
        if self.tensorboard_dir:
            shutil.rmtree(self.tensorboard_dir, ignore_errors=True)


def _forget_hook() -> None:
    hook = current_hook()
    if hook is not None:
        hook.close()
    del_hook()
