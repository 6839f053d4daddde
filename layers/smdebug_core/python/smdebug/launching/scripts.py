"""Run a training script with a hook in it, unchanged: `python -m smdebug.run train.py …`.

    python -m smdebug.run --out-dir s3://bucket/run --collections weights,gradients train.py --epochs 3
    torchrun --nproc-per-node 2 -m smdebug.run --out-dir s3://bucket/run train.py

From the import of PyTorch, Keras or XGBoost on, trainings are watched by that framework's hook. It follows
the default plan, unless a JSON file (`--config`, or SMDEBUG_CONFIG_FILE_PATH) or options say what to save;
options override the file. With `--evaluate` or `--sink` a process beside the training evaluates rules. The
script runs as with `python train.py`, and gives the same results.
"""

from __future__ import annotations

import argparse
import builtins
import io
import json
import os
import runpy
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from smdebug.config import json_config
from smdebug.config.environment import config_file_path
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.launching.checks import check_configuration
from smdebug.launching.imports import watch_imports
from smdebug.launching.messages import framework_of, is_left_to_callback, no_training_in
from smdebug.logger import get_logger
from smdebug.plain_text import did_you_mean, escaped
from smdebug.saving.place import finished
from smdebug.saving.place.finished import NEXT, OVERWRITE, RESUME
from smdebug.saving.place.places import unused
from smdebug.saving.process.companion import HERE, checked_alerts, checked_rule_file, refuse_unevaluable
from smdebug.saving.process.sinks import checked_sinks
from smdebug.secrets.texts import redacted

DEFAULT_FOLDER = "smdebug-runs"
_CHOICES = ("collections", "save_interval", "include_regex", "save_all")
NO_SCRIPT = 2  # as `python nofile.py` ends


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
        beside = evaluation_beside(vars(asked), str(described["LocalPath"]))
        runs_file = _runs_file(asked.json, os.environ)
        maker = HookMaker(described, runs_file, chooses=chooses, if_finished=if_finished, beside=beside)
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
        (
            ["--evaluate"],
            {
                "action": "store_true",
                "help": "Evaluate rules beside the training, and print problems. The next three do so, too.",
            },
        ),
        (
            ["--rule-file"],
            {"metavar": "FILE", "help": "Evaluate the rules in this Python file, too."},
        ),
        (
            ["--alert"],
            {"metavar": "ADDRESS", "action": "append", "help": "Send problems to this address; repeatable."},
        ),
        (
            ["--sink"],
            {
                "metavar": "NAME",
                "action": "append",
                "help": "Send numbers and problems to this tool, such as mlflow; repeatable.",
            },
        ),
        (["--tensorboard"], {"action": "store_true", "help": "Also write files for TensorBoard."}),
        (
            ["--json"],
            {
                "metavar": "FILE",
                "help": "Write the places of the saved runs to this file. --json-schema alone: its schema.",
            },
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
  smdebug run --sink mlflow --alert 'slack://$SLACK_TOKEN' train.py
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


def evaluation_beside(asked: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the hook's arguments for an evaluation beside the training; raise if one cannot work."""
    rule_file = checked_rule_file(asked["rule_file"])
    alerts, sinks = checked_alerts(asked["alert"] or ()), checked_sinks(asked["sink"] or ())
    evaluate = HERE if asked["evaluate"] or alerts or rule_file else None
    refuse_unevaluable(evaluate, alerts, place, rule_file=rule_file, sinks=sinks)
    given = {"evaluate": evaluate, "alerts": alerts, "rule_file": rule_file, "sinks": sinks}
    return {name: value for name, value in given.items() if value}


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
        beside: Mapping[str, Any] | None = None,
    ):
        self._beside = dict(beside or {})
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
        if not self._made_hooks and not is_left_to_callback() and os.environ.get("RANK", "0") == "0":
            print(f"smdebug run: {escaped(no_training_in(script))}", file=sys.stderr)

    def _made(self, hook_class: Any, described: Mapping[str, Any]) -> Any:
        if not self._chooses:
            return hook_class(described["LocalPath"], **described["HookParameters"], **self._beside)
        handle, path = tempfile.mkstemp(suffix=".json")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(described, file)
            return hook_class.create_from_json_file(path, beside=self._beside)
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
