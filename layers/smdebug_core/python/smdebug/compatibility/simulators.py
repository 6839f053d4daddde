"""Surroundings for tests of training scripts."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Self

from smdebug.config.constants import (
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_SAGEMAKER_OUTDIR,
    TENSORBOARD_CONFIG_FILE_PATH_ENV_STR,
    TRAINING_JOB_NAME_ENV_VAR,
)
from smdebug.saving.hooks.singleton import current_hook, del_hook


class ScriptSimulator:
    """A context that starts without a hook and with an empty `out_dir`, and removes both at the end."""

    cleanup = True

    def __init__(self, out_dir: str = "/tmp/test", tensorboard_dir: str | None = None):  # noqa: S108
        self.out_dir = out_dir
        self.tensorboard_dir = tensorboard_dir

    def __enter__(self) -> Self:
        self._start_anew()
        return self

    def __exit__(self, *error: object) -> None:
        self._start_anew()

    def _start_anew(self) -> None:
        hook = current_hook()
        if hook is not None:
            hook.close()
        del_hook()
        if self.cleanup:
            shutil.rmtree(self.out_dir, ignore_errors=True)
            if self.tensorboard_dir:
                shutil.rmtree(self.tensorboard_dir, ignore_errors=True)


class SagemakerSimulator(ScriptSimulator):
    """A context in which this process looks like a SageMaker training job with that hook configuration."""

    def __init__(
        self,
        json_config_path: str = "/tmp/zcc_config.json",  # noqa: S108 - the old default
        tensorboard_dir: str = "/tmp/tensorboard",  # noqa: S108 - the old default
        training_job_name: str = "sm_job",
        json_file_contents: str = "{}",
        cleanup: bool = True,
    ):
        super().__init__(DEFAULT_SAGEMAKER_OUTDIR, tensorboard_dir)
        self.json_config_path = json_config_path
        self.training_job_name = training_job_name
        self.json_file_contents = json_file_contents
        self.cleanup = cleanup
        self._before: dict[str, str | None] = {}
        self._tensorboard_config = ""

    def __enter__(self) -> Self:
        self._start_anew()
        config = Path(self.json_config_path)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(self.json_file_contents, encoding="utf-8")
        with NamedTemporaryFile("w", suffix=".json", delete=False, encoding="utf-8") as file:
            json.dump({"LocalPath": self.tensorboard_dir}, file)
        self._tensorboard_config = file.name
        variables = {
            CONFIG_FILE_PATH_ENV_STR: self.json_config_path,
            TENSORBOARD_CONFIG_FILE_PATH_ENV_STR: self._tensorboard_config,
            TRAINING_JOB_NAME_ENV_VAR: self.training_job_name,
        }
        self._before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        return self

    def __exit__(self, *error: object) -> None:
        self._start_anew()
        if self.cleanup:
            Path(self.json_config_path).unlink(missing_ok=True)
        Path(self._tensorboard_config).unlink(missing_ok=True)
        for name, value in self._before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
