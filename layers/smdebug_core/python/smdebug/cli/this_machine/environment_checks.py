"""Check the Python environment and the AWS account, for `smdebug doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

from smdebug.exceptions import SMDebugError
from smdebug.extras import install_command
from smdebug.secrets.data import without_secret

State = Literal["well", "absent", "wrong"]


class Check(NamedTuple):
    """The result of one check."""

    what: str
    state: State
    found: str
    hint: str = ""


_NEEDED = ("numpy", "protobuf", "crc32c", "click")
_EXTRAS = {
    "aws": ("boto3", "runs on S3 and deployed debuggers"),
    "bfloat16": ("ml_dtypes", "reading bfloat16 as bfloat16"),
    "plots": ("matplotlib", "smdebug plot"),
    "export": ("pyarrow", "smdebug export parquet"),
    "tensorboard": ("tensorboard", "viewing exports for it"),
    "local": ("moto", "the application on this machine"),
    "ui": ("starlette", "smdebug ui"),
    "mcp": ("mcp", "smdebug mcp"),
    "alerts": ("apprise", "alerts to chat and mail"),
    "mlflow": ("mlflow", "runs in MLflow"),
    "wandb": ("wandb", "runs in W&B"),
    "trackio": ("trackio", "runs in trackio"),
    "torch": ("torch", "the hook for PyTorch"),
    "tensorflow": ("tensorflow", "the hooks for TensorFlow and Keras"),
    "xgboost": ("xgboost", "the hook for XGBoost"),
    "huggingface": ("transformers", "the callback for the Trainer of transformers"),
    "lightning": ("lightning", "the callback for Lightning"),
    "jax": ("jax", "the hook for JAX and Flax"),
    "mxnet": ("mxnet", "the hook for MXNet"),
}
_SHOWN = (
    "SMDEBUG_",
    "USE_SMDEBUG",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
)


def run_checks(*, stack: str | None = None, config: str | None = None, offline: bool = False) -> list[Check]:
    """Run all checks, in the order of the output."""
    checks = [*_python(), *_packages(), *_tools(), *_environment(), *_configuration(config)]
    return [*checks, *(() if offline else _aws(stack))]


def run_live_checks(stack: str | None) -> list[Check]:
    """Check a deployed stack from outside, beginning with the account that it is in."""
    account = list(_account(needed=True))
    if any(check.state == "wrong" for check in account):
        return account
    from smdebug.service.checks.live_checks import check_deployment

    name = stack or os.environ.get("SMDEBUG_STACK") or "smdebug"
    return [*account, *(Check(*found) for found in check_deployment(name))]


def _python() -> Iterator[Check]:
    version = platform.python_version()
    if (3, 11) <= sys.version_info[:2] < (3, 14):
        yield Check("Python", "well", f"{version} at {sys.executable}")
    else:
        hint = "Use Python 3.11, 3.12 or 3.13: other versions are not tested."
        yield Check("Python", "wrong", version, hint)


def _packages() -> Iterator[Check]:
    import smdebug

    yield Check(
        "smdebug-serverless",
        "well",
        f"{smdebug.__version__} at {Path(smdebug.__file__).parent}",
    )
    old = _version("smdebug")
    if old is not None:
        hint = "It has the same import name. Remove it (pip uninstall smdebug), and reinstall this package."
        yield Check("smdebug (the old library)", "wrong", old, hint)
    for name in _NEEDED:
        version = _version(name)
        if version is None:
            yield Check(name, "wrong", "not installed", f"pip install {name}")
        else:
            yield Check(name, "well", version)
    for extra, (name, purpose) in _EXTRAS.items():
        version = _version(name)
        if version is None:
            yield Check(name, "absent", f"for {purpose}: {install_command(extra)}")
        else:
            yield Check(name, "well", version)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _tools() -> Iterator[Check]:
    from smdebug.cli.this_machine.checkout import find_checkout

    checkout = find_checkout()
    if checkout is None:
        yield Check("checkout", "absent", "needed for smdebug demo, smdebug local and deploying")
    else:
        yield Check("checkout", "well", str(checkout))
    node = shutil.which("node")
    yield Check("Node.js", "well" if node else "absent", node or "needed for deploying")


def _environment() -> Iterator[Check]:
    for name, value in sorted(os.environ.items()):
        if name.startswith(_SHOWN):
            yield Check(name, "well", str(without_secret(name, value)))


def _configuration(file: str | None) -> Iterator[Check]:
    """The hook's JSON: names that do not exist, and values that a hook refuses."""
    named = file or os.environ.get("SMDEBUG_CONFIG_FILE_PATH")
    if not named:
        return
    from smdebug.launching.checks import check_file

    try:
        check_file(named)
    except (SMDebugError, OSError) as error:
        yield Check("hook configuration", "wrong", named, str(error))
    else:
        yield Check("hook configuration", "well", named)


def _aws(stack: str | None) -> Iterator[Check]:
    if _version("boto3") is None:
        return
    named = stack or os.environ.get("SMDEBUG_STACK") or os.environ.get("SMDEBUG_TABLE")
    account = list(_account(needed=bool(named)))
    yield from account
    if account[0].state != "well":
        return
    try:
        from smdebug.service.client import connect

        debugger = connect(stack)
        runs = len(debugger.runs(watched=True))
        yield Check("deployed debugger", "well", f"{debugger!r}, {runs} runs watched")
    except SMDebugError as error:
        state: State = "wrong" if named else "absent"
        hint = "Deploy it (docs/deploy.md), or name it: --stack NAME" if named else ""
        yield Check("deployed debugger", state, str(error), hint)


def _account(*, needed: bool) -> Iterator[Check]:
    from smdebug.service.account import who_am_i

    try:
        yield Check("AWS account", "well", who_am_i())
    except SMDebugError as error:
        state: State = "wrong" if needed else "absent"
        hint = "aws configure, or set AWS_PROFILE and AWS_REGION." if needed else ""
        yield Check("AWS account", state, str(error), hint)
