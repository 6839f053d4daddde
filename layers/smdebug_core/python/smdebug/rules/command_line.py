"""`python -m smdebug.rules.rule_invoker`: a rule over a run, from a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from smdebug.exceptions import NoMoreData, SMDebugError, SMDebugValueError
from smdebug.rules.making import GIVEN, accepted_by, make_rule, nearest_told
from smdebug.rules.parameters import boolean
from smdebug.rules.rule import Rule

FOUND_NOTHING, FOUND_SOMETHING, ASKED_WRONGLY, CANNOT_LOOK, INTERRUPTED = 0, 1, 2, 3, 130

_EXAMPLES = """\
any parameter of the rule can be given as an option:

  %(prog)s --trial-dir ~/run --rule-name VanishingGradient --threshold 1e-6
  %(prog)s --trial-dir s3://bucket/run --rule-name UnchangedTensor --tensor_regex '.*' --num_steps 10
  %(prog)s --trial-dir ~/run --other-trials ~/run_before --rule-name SimilarAcrossRuns
  %(prog)s --trial-dir ~/run --rule-file my_rule.py --rule-name MyRule --limit 5
  %(prog)s --list
  %(prog)s --describe LossNotDecreasing

exit code:
  0    the rule found nothing, or what was asked for was listed or described
  1    it found something at one step at least
  2    something was asked wrongly: no such rule, parameter or value
  3    the run cannot be read, or the rule failed
  130  interrupted, after telling what was found so far
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, which `--help` explains."""
    try:
        options, rest = _parser().parse_known_args(argv)
        if options.list:
            print(_list_of_rules())
            return FOUND_NOTHING
        if options.describe:
            print(_description(options.describe))
            return FOUND_NOTHING
        options.stop_at_first = boolean(
            "--raise-rule-eval-cond-exception", options.raise_rule_eval_cond_exception
        )
        rule_class = _rule_class(options.rule_name, options.rule_file)
        parameters = _parameters(rule_class, rest)
        if not options.trial_dir:
            raise SMDebugValueError("--trial-dir is missing: the folder or s3:// path of the run")
        rule = _rule(rule_class, parameters, options)
    except SystemExit as done:  # argparse has printed the help
        return int(done.code or 0)
    except SMDebugError as error:
        return _complain(error, CANNOT_LOOK if _is_about_the_run(error) else ASKED_WRONGLY)
    return _look(rule, options)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SMDebugValueError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m smdebug.rules.rule_invoker",
        usage="%(prog)s --trial-dir PATH --rule-name NAME [--PARAMETER VALUE ...]",
        description="Evaluate a rule at every step of a run, and say what it finds. "
        "A run that is still going on is followed until it ends.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--trial-dir", "--trial_dir", metavar="PATH", help="the run: a folder or s3://bucket/prefix"
    )
    add("--rule-name", "--rule_name", metavar="NAME", help="the rule, in any case")
    add("--rule-file", "--rule_file", metavar="FILE", help="a Python file that defines the rule")
    add("--other-trials", "--other_trials", "--other-trial", "--other_trial", metavar="PATHS", default="",
        help="other runs that the rule looks at, with , or ; between them")  # fmt: skip
    add("--start-step", "--start_step", metavar="N", type=int, default=0,
        help="the first global step (0)")  # fmt: skip
    add("--end-step", "--end_step", metavar="N", type=int,
        help="the first global step to leave out (go on until the run ends)")  # fmt: skip
    add("--raise-rule-eval-cond-exception", "--raise_rule_eval_cond_exception",
        nargs="?", const="true", default="false", metavar="true|false",
        help="stop at the first step where the rule finds something")  # fmt: skip
    add("--list", action="store_true", help="list the built-in rules")
    add("--describe", metavar="NAME", help="describe a built-in rule and its parameters")
    return parser


def _rule_class(name: str | None, file: str | None) -> type[Rule]:
    if file:
        return _rule_in_file(file, name)
    if not name:
        raise SMDebugValueError("--rule-name is missing; --list shows the built-in rules")
    rule_class: type[Rule] = _catalog_entry(name).load()
    return rule_class


def _catalog_entry(name: str) -> Any:
    from smdebug.rules.generic import find_rule

    return find_rule(name)


def _rule_in_file(file: str, name: str | None) -> type[Rule]:
    rules = rules_in(load_rule_file(file))
    if not rules:
        raise SMDebugValueError(f"{file} defines no rule: a class derived from smdebug.rules.Rule")
    if name is None:
        if len(rules) > 1:
            raise SMDebugValueError(
                f"{file} defines several rules: choose one by --rule-name ({', '.join(rules)})"
            )
        return next(iter(rules.values()))
    for known, rule in rules.items():
        if known.lower() == name.lower():
            return rule
    raise SMDebugValueError(f"{file} defines no rule {name!r}{nearest_told(name, rules)}")


def load_rule_file(file: str) -> Any:
    """Run a rule's Python file as a module of its own."""
    from importlib.util import module_from_spec, spec_from_file_location

    path = Path(file).expanduser()
    if not path.is_file():
        raise SMDebugValueError(f"There is no file {file}")
    spec = spec_from_file_location(f"smdebug_rule_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SMDebugValueError(f"{file} is no Python file: its name has to end in .py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise SMDebugValueError(
            f"{file} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return module


def rules_in(module: Any) -> dict[str, type[Rule]]:
    """The rules that a module defines itself, by name."""
    from inspect import isabstract

    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Rule)
        and value.__module__ == module.__name__
        and not isabstract(value)
    }


_ALIASES = {"action_json": "action_str"}


def _parameters(rule_class: type[Rule], rest: Sequence[str]) -> dict[str, str]:
    """`--any_parameter value`, `--any-parameter=value` and `--flag`, as the rule calls them."""
    accepted = accepted_by(rule_class)
    parameters: dict[str, str] = {}
    waiting = list(rest)
    while waiting:
        option = waiting.pop(0)
        if not option.startswith("--") or option == "--":
            raise SMDebugValueError(f"{option!r} follows no option")
        told, equals, value = option[2:].partition("=")
        name = told.replace("-", "_")
        name = _ALIASES.get(name, name) if name not in accepted.names else name
        if name not in accepted.names and not accepted.anything:
            choices = [one for one in accepted.names if one not in GIVEN]
            raise SMDebugValueError(
                f"{rule_class.__name__} takes no parameter {told!r}{nearest_told(name, choices)}"
            )
        if not equals:
            value = waiting.pop(0) if waiting and not waiting[0].startswith("--") else "True"
        if name in parameters:
            raise SMDebugValueError(f"--{told} is given twice")
        parameters[name] = value
    return parameters


def _rule(rule_class: type[Rule], parameters: Mapping[str, str], options: Any) -> Rule:
    other_paths = [path.strip() for path in options.other_trials.replace(";", ",").split(",")]
    return make_rule(
        rule_class,
        lambda: _trial(options.trial_dir),
        parameters,
        lambda: [_trial(path) for path in other_paths if path],
        named=lambda name: "--other-trials" if name in GIVEN else f"--{name}",
    )


def _trial(path: str) -> Any:
    from smdebug.trials import create_trial

    return create_trial(path)


def _look(rule: Rule, options: Any) -> int:
    from smdebug.rules.rule_invoker import evaluations

    seen = Seen(rule.rule_name, options.trial_dir)
    code = None
    try:
        for evaluation in evaluations(rule, options.start_step, options.end_step):
            seen.add(evaluation, rule.looked, rule.skipped)
            if evaluation.met is not None:
                print(_told(evaluation), flush=True)
                if options.stop_at_first:
                    break
    except NoMoreData:
        pass  # the run has ended: what was to be expected
    except SMDebugError as error:
        code = _complain(error, CANNOT_LOOK)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - a custom rule can raise anything
        code = _complain(f"{rule.rule_name} failed: {type(error).__name__}: {error}", CANNOT_LOOK)
    print(seen.summary())
    if code is not None:
        return code
    return FOUND_SOMETHING if seen.steps_found else FOUND_NOTHING


class Seen:
    """What was looked at so far, for the summary."""

    def __init__(self, rule_name: str, trial_dir: str):
        self.rule_name = rule_name
        self.trial_dir = trial_dir
        self.steps: list[int] = []
        self.steps_found: list[int] = []
        self.without_data = 0
        self.skipped: dict[str, str] = {}

    def add(
        self, evaluation: Any, looked: bool | None, skipped: Mapping[str, str] | None = None
    ) -> None:
        self.skipped.update(skipped or {})
        if evaluation.missing is not None:
            self.without_data += 1
            return
        if not evaluation.at_end:
            self.steps.append(evaluation.step)
            self.without_data += looked is False
        if evaluation.met is not None and evaluation.step not in self.steps_found[-1:]:
            self.steps_found.append(evaluation.step)

    def summary(self) -> str:
        if not self.steps:
            return f"{self.rule_name} found no step to look at in {self.trial_dir}."
        steps = f"{len(self.steps)} steps ({self.steps[0]} to {self.steps[-1]})"
        if len(self.steps) == 1:
            steps = f"1 step ({self.steps[0]})"
        found = "nothing"
        if self.steps_found:
            listed = ", ".join(map(str, self.steps_found[:10]))
            more = f" and {len(self.steps_found) - 10} more" if len(self.steps_found) > 10 else ""
            found = f"something at {len(self.steps_found)}: {listed}{more}"
        hint = f" {self.without_data} had nothing to look at." if self.without_data else ""
        told = f"{self.rule_name} looked at {steps} of {self.trial_dir} and found {found}.{hint}"
        return "\n".join([told, *self._passed_over()])

    def _passed_over(self) -> list[str]:
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.skipped.items():
            by_reason.setdefault(reason, []).append(name)
        return [
            f"Passed over at some step: {', '.join(names[:5])}"
            f"{f' and {len(names) - 5} more' if len(names) > 5 else ''}: {reason}."
            for reason, names in list(by_reason.items())[:5]
        ]


def _told(evaluation: Any) -> str:
    findings = evaluation.findings or ("the condition is met",)
    lines = [f"step {evaluation.step}: {finding}" for finding in findings[:20]]
    if len(findings) > 20:
        lines.append(f"step {evaluation.step}: … and {len(findings) - 20} more")
    return "\n".join(lines)


def _list_of_rules() -> str:
    from smdebug.rules.generic import catalog

    rules = catalog()
    width = max(map(len, rules))
    return "\n".join(f"{name:<{width}}  {entry.sentence}" for name, entry in rules.items())


def _description(name: str) -> str:
    entry = _catalog_entry(name)
    lines = [entry.name, f"  {entry.sentence}"]
    if entry.collections:
        lines.append(f"  looks at the collections: {', '.join(entry.collections)}")
    lines.append("parameters:")
    for parameter in entry.parameters:
        kind = f"{parameter.type}, {'required' if parameter.required else f'default {parameter.default}'}"
        also = f" (also {', '.join(parameter.aliases)})" if parameter.aliases else ""
        lines.append(f"  --{parameter.name} ({kind}): {parameter.sentence}{also}")
    return "\n".join(lines)


def _is_about_the_run(error: SMDebugError) -> bool:
    from smdebug.exceptions import MissingCollectionFiles, StorageError

    return isinstance(error, (StorageError, MissingCollectionFiles, NoMoreData))


def _complain(error: object, code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code
