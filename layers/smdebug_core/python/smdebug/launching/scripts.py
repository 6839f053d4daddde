"""Run a training script with a hook in it, unchanged: `python -m smdebug.run train.py …`.

    python -m smdebug.run --out-dir s3://bucket/run --collections weights,gradients train.py --epochs 3
    torchrun --nproc-per-node 2 -m smdebug.run --out-dir s3://bucket/run train.py

From the import of PyTorch, Keras or XGBoost on, trainings are watched by that framework's hook. It follows
the default plan, unless a JSON file (`--config`, or SMDEBUG_CONFIG_FILE_PATH) or options say what to save;
options override the file. The script runs as with `python train.py`, and gives the same results.
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
from typing import Any, NoReturn

from smdebug.config import json_config
from smdebug.config.environment import config_file_path
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.launching.checks import check_configuration
from smdebug.launching.messages import framework_of, no_training_in
from smdebug.logger import get_logger
from smdebug.plain_text import did_you_mean, escaped
from smdebug.saving.place import finished
from smdebug.saving.place.finished import NEXT, OVERWRITE, RESUME
from smdebug.saving.place.places import unused
from smdebug.secrets.texts import redacted

#: The modules that watch a framework, by the framework's module.
WATCHERS = {
    "torch": "smdebug.pytorch.unchanged",
    "keras": "smdebug.tensorflow.unchanged",
    "xgboost": "smdebug.xgboost.unchanged",
}
DEFAULT_FOLDER = "smdebug-runs"
_CHOICES = ("collections", "save_interval", "include_regex", "save_all")
NO_SCRIPT = 2  # as `python nofile.py` ends
MakeHook = Callable[[Any], Any]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the script with its trainings watched. It ends as the script ends."""
    asked = parser().parse_args(argv)
    try:
        configured = _configured(asked.config)
        if asked.overwrite and asked.resume:
            raise SMDebugValueError("A finished run is either replaced or continued: --overwrite or --resume")
        if_finished = OVERWRITE if asked.overwrite else RESUME if asked.resume else NEXT
        described = description(vars(asked), configured, os.environ, if_finished)
        chooses = bool(configured) or chooses_tensors(vars(asked))
        maker = HookMaker(
            described, _runs_file(asked.json, os.environ), chooses=chooses, if_finished=if_finished
        )
    except (SMDebugError, OSError) as error:
        parser().error(str(error))
    watch_imports(maker.make)
    try:
        if asked.module:
            sys.argv = [asked.script, *asked.arguments]
            sys.path[0] = str(Path.cwd())
            runpy.run_module(asked.script, run_name="__main__", alter_sys=True)
        else:
            run_script(asked.script, asked.arguments)
    finally:
        if asked.module or Path(asked.script).is_file():
            maker.report_missing_training(asked.script)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command; all its options come before the script."""
    made = _Parser("smdebug run", add_help=False)
    for names, given in (
        (["--config"], {"metavar": "FILE", "help": "Configure the hook with this JSON file."}),
        (
            ["--out-dir"],
            {"metavar": "PLACE", "help": "Save to this folder, or s3://bucket/prefix."},
        ),
        (
            ["--overwrite"],
            {
                "action": "store_true",
                "help": "Replace a finished run in that place. Otherwise the next name is free.",
            },
        ),
        (["--resume"], {"action": "store_true", "help": "Continue a finished run in that place."}),
        (
            ["--collections"],
            {"metavar": "NAMES", "help": "Also save these collections, such as weights,gradients."},
        ),
        (
            ["--save-interval"],
            {"metavar": "N", "type": int, "help": "Save at steps divisible by N."},
        ),
        (
            ["--include-regex"],
            {"metavar": "REGEX", "help": "Also save tensors whose names match."},
        ),
        (["--save-all"], {"action": "store_true", "help": "Save every tensor."}),
        (
            ["--include-workers"],
            {"choices": ("one", "all"), "help": "Save on one of several workers, or on all."},
        ),
        (["--tensorboard"], {"action": "store_true", "help": "Also write files for TensorBoard."}),
        (
            ["--json"],
            {"metavar": "FILE", "help": "Write the places of the saved runs to this file."},
        ),
        (["-m"], {"dest": "module", "action": "store_true", "help": "Run SCRIPT as a module."}),
        (["-h", "--help"], {"action": "help", "help": "Show this message and exit."}),
    ):
        made.add_argument(*names, **given)
    made.add_argument("script", help=argparse.SUPPRESS)
    made.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return made


_HELP = """\
Run an unchanged training script with a hook.

Options come before SCRIPT, and ARGUMENTS are the script's own. Trainings are watched once PyTorch, Keras or
XGBoost is imported. They save the default plan, unless options or a file choose tensors.

\b
Examples:
  smdebug run train.py --epochs 3
  smdebug run --out-dir ./my-run --collections weights,gradients train.py
  torchrun --nproc-per-node 2 -m smdebug.run --out-dir ./my-run train.py

Exits as the script does, and with 2 if there is no such script or an option is wrong.
"""


class _Parser(argparse.ArgumentParser):
    """Suggests the option that was meant, and prints help as the other commands do."""

    def error(self, message: str) -> NoReturn:
        message = message.replace("required: script, arguments", "required: SCRIPT")
        print(
            f"error: {escaped(redacted(message))}\nhint: `smdebug run --help` shows its usage.",
            file=sys.stderr,
        )
        sys.exit(2)

    def format_help(self) -> str:
        from click import HelpFormatter

        formatter = HelpFormatter(max_width=100)
        formatter.write_usage(self.prog, "[OPTIONS] SCRIPT [ARGUMENTS]...")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(_HELP)
        rows = []
        for action in self._actions:
            if action.help and action.help is not argparse.SUPPRESS:
                choices = f"[{'|'.join(action.choices)}]" if action.choices else ""
                value = action.metavar or choices
                rows.append((f"{', '.join(action.option_strings)} {value}".strip(), action.help))
        with formatter.section("Options"):
            formatter.write_dl(rows)
        return formatter.getvalue()

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        known = self._option_string_actions
        words = iter(sys.argv[1:] if args is None else args)
        for word in words:
            option, _, value = word.partition("=")
            if not word.startswith("-") or option in ("-", "--"):
                break  # the script
            meant = [name for name in known if name.startswith(option)]
            if not meant and option.startswith("--"):
                self.error(f"There is no option {option}.{did_you_mean(option, known)}")
            if meant and known[meant[0]].nargs != 0 and not value:
                next(words, None)  # its value
        return super().parse_args(args, namespace)


def options() -> list[str]:
    """Return the names of the options, for completion in shells."""
    usage = parser().format_usage().replace("[", " ").replace("]", " ")
    return [word for word in usage.split() if word.startswith("--")]


def description(
    asked: Mapping[str, Any],
    configured: Mapping[str, Any],
    environment: Mapping[str, str],
    if_finished: str = NEXT,
) -> dict[str, Any]:
    """Return the configuration: the JSON file's, overridden by the options."""
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
    named = {
        collection.get("CollectionName") for collection in collections if isinstance(collection, Mapping)
    }
    asked_for = filter(None, map(str.strip, (asked["collections"] or "").split(",")))
    collections += [{"CollectionName": name} for name in asked_for if name not in named]
    described["CollectionConfigurations"] = collections
    out_dir = asked["out_dir"] or described.get("LocalPath")
    if not out_dir:
        if int(environment.get("WORLD_SIZE", "1")) > 1:
            raise SMDebugValueError("Several processes save one run: give its place with --out-dir")
        moment = time.strftime("%Y%m%d-%H%M%S")
        out_dir = unused(Path(DEFAULT_FOLDER) / f"{Path(asked['script']).stem}-{moment}")
    described["LocalPath"] = str(out_dir)
    check_configuration(described)  # before the script runs
    described["LocalPath"] = finished.place_for_another_run(str(out_dir), if_finished)
    return described


def chooses_tensors(asked: Mapping[str, Any]) -> bool:
    """Return whether an option says what to save, so that the default plan is not followed."""
    return any(asked[option] for option in _CHOICES)


class HookMaker:
    """Makes the hooks of one process, each with its own place: `run`, `run-2` …

    If nothing `chooses` what is saved, the hooks follow the default plan.
    """

    def __init__(
        self,
        described: Mapping[str, Any],
        runs_file: Path | None = None,
        *,
        chooses: bool = True,
        if_finished: str = NEXT,
    ):
        self._if_finished = if_finished
        self._described = described
        self._chooses = chooses
        self._runs_file = runs_file
        self._made_hooks = 0
        self._runs: list[str] = []
        self._write_runs()

    def make(self, hook_class: Any) -> Any:
        """Make a hook of that class."""
        self._made_hooks += 1
        place = str(self._described["LocalPath"]).rstrip("/")
        if self._made_hooks > 1:
            place = finished.place_for_later_training(place, self._made_hooks, self._if_finished)
        hook = self._made(hook_class, {**self._described, "LocalPath": place})
        get_logger().info("Watching a training of %s in %s", framework_of(hook_class), hook.out_dir)
        self._runs.append(place if "://" in place else str(Path(place).expanduser().absolute()))
        try:
            self._write_runs()
        except OSError as error:
            get_logger().warning("The places of the saved runs could not be written: %s", error)
        return hook

    def report_missing_training(self, script: str) -> None:
        """Report on stderr if nothing was watched; of several ranks only the first one reports it."""
        if not self._made_hooks and os.environ.get("RANK", "0") == "0":
            print(f"smdebug run: {escaped(no_training_in(script))}", file=sys.stderr)

    def _made(self, hook_class: Any, described: Mapping[str, Any]) -> Any:
        if not self._chooses:
            return hook_class(described["LocalPath"], **described["HookParameters"])
        handle, path = tempfile.mkstemp(suffix=".json")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(described, file)
            return hook_class.create_from_json_file(path)
        finally:
            Path(path).unlink()

    def _write_runs(self) -> None:
        """Write the places of the runs, atomically: the script may end at any moment."""
        if self._runs_file is not None:
            whole = self._runs_file.with_name(f".{self._runs_file.name}.{os.getpid()}")
            whole.write_text(json.dumps({"runs": self._runs}) + "\n", encoding="utf-8")
            whole.replace(self._runs_file)


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Run a script as `python path …` does."""
    sys.argv = [path, *arguments]
    sys.path[0] = str(Path(path).resolve().parent)
    script = ModuleType("__main__")
    file = os.path.abspath(path)  # noqa: PTH100 - like Python, without resolving links
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
        print(f"smdebug run: {escaped(path)} cannot be read: {error.strerror}", file=sys.stderr)
        sys.exit(NO_SCRIPT)
    # Forked and spawned processes, and pickle, find the script as `__main__`.
    sys.modules["__main__"] = script
    exec(compile(source, file, "exec", dont_inherit=True), script.__dict__)  # noqa: S102


def watch_imports(make_hook: MakeHook) -> None:
    """Watch each framework from its import on."""
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


def _runs_file(path: str | None, environment: Mapping[str, str]) -> Path | None:
    """Return the file for the places of the saved runs; of several ranks only the first writes it."""
    if path is None or environment.get("RANK", "0") != "0":
        return None
    runs_file = Path(path).absolute()  # the script may change the working directory
    if not runs_file.parent.is_dir():
        raise SMDebugValueError(f"--json: the folder {runs_file.parent} does not exist")
    return runs_file


class _AfterImport:
    """Finds the modules of frameworks like any other finder, and watches them once imported."""

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
    """A module's own loader, which calls `loaded` when it has loaded."""

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
