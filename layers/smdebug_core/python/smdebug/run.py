"""Run a training script with a hook in it, unchanged: `python -m smdebug.run train.py …`.

    python -m smdebug.run --out-dir s3://bucket/run --collections weights,gradients train.py --epochs 3
    torchrun --nproc-per-node 2 -m smdebug.run --out-dir s3://bucket/run train.py

As soon as the script imports PyTorch, Keras or XGBoost, what it trains is watched by that framework's hook,
which the JSON file configures (`--config`, or SMDEBUG_CONFIG_FILE_PATH), and the options above it. The script
runs as `python train.py` would run it, and gives the same results.
"""

from __future__ import annotations

import argparse
import builtins
import importlib.util
import io
import json
import os
import runpy
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from smdebug.config import json_config
from smdebug.config.environment import config_file_path
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.logger import get_logger

#: What is watched once that module was imported.
WATCHERS = {
    "torch": "smdebug.pytorch.unchanged",
    "keras": "smdebug.tensorflow.unchanged",
    "xgboost": "smdebug.xgboost.unchanged",
}
DEFAULT_FOLDER = "smdebug-runs"
NO_SCRIPT = 2  # as `python nofile.py` ends
MakeHook = Callable[[Any], Any]


def main(argv: Sequence[str] | None = None) -> None:
    """Watch, and run the script. It ends as the script ends."""
    asked = parser().parse_args(argv)
    try:
        described = description(vars(asked), _configured(asked.config), os.environ)
        maker = HookMaker(described, _told_in(asked.json, os.environ))
    except (SMDebugError, OSError) as error:
        parser().error(str(error))
    watch_imports(maker.make)
    if asked.module:
        sys.argv = [asked.script, *asked.arguments]
        sys.path[0] = str(Path.cwd())
        runpy.run_module(asked.script, run_name="__main__", alter_sys=True)
    else:
        run_script(asked.script, asked.arguments)


def parser() -> argparse.ArgumentParser:
    """The options of the command, all of which come before the script."""
    made = argparse.ArgumentParser(
        "smdebug run",
        description="Run a training script with a hook in it, unchanged.",
        epilog="Example: smdebug run --out-dir ./my-run --collections weights,gradients train.py --epochs 3",
    )
    made.add_argument("--config", help="the JSON file that configures the hook")
    made.add_argument("--out-dir", help="where to save: a folder, or s3://bucket/prefix")
    made.add_argument("--collections", help="what to save as well: weights,gradients,…")
    made.add_argument("--save-interval", type=int, help="save every so many steps")
    made.add_argument("--include-regex", help="save the tensors whose names match, too")
    made.add_argument("--save-all", action="store_true", help="save every tensor")
    made.add_argument("--include-workers", choices=("one", "all"), help="who of several saves")
    made.add_argument("--tensorboard", action="store_true", help="write for TensorBoard, too")
    made.add_argument("--json", metavar="FILE", help="write into this file which runs were saved")
    made.add_argument("-m", dest="module", action="store_true", help="the script is a module")
    made.add_argument("script", help="the script, and what it is to be given")
    made.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return made


def options() -> list[str]:
    """Their names, for the shell."""
    usage = parser().format_usage().replace("[", " ").replace("]", " ")
    return [word for word in usage.split() if word.startswith("--")]


def description(
    asked: Mapping[str, Any], configured: Mapping[str, Any], environment: Mapping[str, str]
) -> dict[str, Any]:
    """What the JSON file would have to say: what it says, and the options above that."""
    described = dict(configured)
    parameters = dict(described.get("HookParameters") or {})
    for option, key in (
        ("save_interval", "save_interval"),
        ("include_regex", "include_regex"),
        ("save_all", "save_all"),
        ("include_workers", "include_workers"),
        ("tensorboard", "export_tensorboard"),
    ):
        if asked[option]:
            parameters[key] = asked[option]
    described["HookParameters"] = parameters
    collections = list(described.get("CollectionConfigurations") or [])
    named = {each.get("CollectionName") for each in collections if isinstance(each, Mapping)}
    asked_for = filter(None, map(str.strip, (asked["collections"] or "").split(",")))
    collections += [{"CollectionName": name} for name in asked_for if name not in named]
    described["CollectionConfigurations"] = collections
    out_dir = asked["out_dir"] or described.get("LocalPath")
    if not out_dir:
        if int(environment.get("WORLD_SIZE", "1")) > 1:
            raise SMDebugValueError("Several processes save one run: say where, by --out-dir")
        moment = time.strftime("%Y%m%d-%H%M%S")
        out_dir = f"{DEFAULT_FOLDER}/{Path(asked['script']).stem}-{moment}"
    described["LocalPath"] = str(out_dir)
    json_config.collect_hook_config_params(
        described
    )  # what is wrong in it is said before the script runs
    json_config.get_include_collections(described)
    return described


class HookMaker:
    """Makes the hooks of one process, each with a place of its own: `run`, `run-2` …"""

    def __init__(self, described: Mapping[str, Any], told_in: Path | None = None):
        self._described = described
        self._told_in = told_in
        self._wanted = 0
        self._runs: list[str] = []
        self._tell()

    def make(self, hook_class: Any) -> Any:
        """A hook of that class."""
        self._wanted += 1
        place = str(self._described["LocalPath"]).rstrip("/")
        if self._wanted > 1:
            place = f"{place}-{self._wanted}"
        hook = self._made(hook_class, {**self._described, "LocalPath": place})
        self._runs.append(place if "://" in place else str(Path(place).expanduser().absolute()))
        try:
            self._tell()
        except OSError as error:
            get_logger().warning("Which runs were saved could not be written: %s", error)
        return hook

    def _made(self, hook_class: Any, described: Mapping[str, Any]) -> Any:
        handle, path = tempfile.mkstemp(suffix=".json")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(described, file)
            return hook_class.create_from_json_file(path)
        finally:
            Path(path).unlink()

    def _tell(self) -> None:
        """Say where the runs are, whole at any moment: the script may end in any way."""
        if self._told_in is not None:
            whole = self._told_in.with_name(f".{self._told_in.name}.{os.getpid()}")
            whole.write_text(json.dumps({"runs": self._runs}) + "\n", encoding="utf-8")
            whole.replace(self._told_in)


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Run a script as `python path …` does."""
    sys.argv = [path, *arguments]
    sys.path[0] = str(Path(path).resolve().parent)
    script = ModuleType("__main__")
    file = os.path.abspath(path)  # noqa: PTH100 - Python does not look where links lead, either
    script.__dict__.update(
        __file__=file,
        __builtins__=builtins,
        __loader__=SourceFileLoader("__main__", file),
        __spec__=None,
    )
    try:
        with io.open_code(file) as opened:
            source = opened.read()
    except OSError as error:
        print(f"smdebug run: {path} cannot be read: {error.strerror}", file=sys.stderr)
        sys.exit(NO_SCRIPT)
    # Who forks or spawns processes finds the script where it expects it, and so does pickle.
    sys.modules["__main__"] = script
    exec(compile(source, file, "exec", dont_inherit=True), script.__dict__)  # noqa: S102


def watch_imports(make_hook: MakeHook) -> None:
    """Watch each framework, from when it is imported."""
    for module in WATCHERS:
        if module in sys.modules:
            _watch(module, make_hook)
    sys.meta_path.insert(0, _AfterImport(make_hook))


def _watch(module: str, make_hook: MakeHook) -> None:
    try:
        import_module(WATCHERS[module]).watch(make_hook)
    except Exception as error:  # noqa: BLE001 - whatever it is, the script runs on
        get_logger().exception("%s is not watched: %s", module, error)


def _configured(path: str | None) -> dict[str, Any]:
    if path is None and not Path(config_file_path()).is_file():
        return {}
    return json_config.get_json_config_as_dict(path)


def _told_in(path: str | None, environment: Mapping[str, str]) -> Path | None:
    """The file that says which runs were saved; of several ranks the first one writes it."""
    if path is None or environment.get("RANK", "0") != "0":
        return None
    told_in = Path(path).absolute()  # the script may go elsewhere
    if not told_in.parent.is_dir():
        raise SMDebugValueError(f"--json: there is no folder {told_in.parent} to write into")
    return told_in


class _AfterImport:
    """Finds what everybody finds, and watches it when it was imported."""

    def __init__(self, make_hook: MakeHook):
        self._make_hook = make_hook
        self._waiting = set(WATCHERS) - set(sys.modules)
        self._asking = threading.local()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self._waiting or getattr(self._asking, "name", None) == name:
            return None
        self._asking.name = name
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.name = None
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._imported)  # type: ignore[assignment]
        return spec

    def _imported(self, name: str) -> None:
        self._waiting.discard(name)
        _watch(name, self._make_hook)


class _Loader:
    """A module's own loader, which says when it has loaded."""

    def __init__(self, loader: Any, loaded: Callable[[str], None]):
        self._loader = loader
        self._loaded = loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._loaded(module.__name__)


if __name__ == "__main__":
    from smdebug.run import main as run  # not as __main__, which is the script's name from here on

    run()
