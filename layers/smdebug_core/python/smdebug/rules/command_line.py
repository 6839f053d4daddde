"""`python -m smdebug.rules.rule_invoker`: evaluate a rule over a run, from a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from smdebug.exceptions import NoMoreData, SMDebugError, SMDebugValueError
from smdebug.rules.construction import (
    TRIAL_PARAMETERS,
    accepted_parameters,
    make_rule,
    suggestion,
)
from smdebug.rules.evaluations import Evaluation, evaluations
from smdebug.rules.loading import find_in, rules_in_file
from smdebug.rules.outcomes import NothingToCheck, NotSaved
from smdebug.rules.parameters import boolean
from smdebug.rules.rule import Rule

PASSED, FOUND, USAGE_ERROR, FAILED, INTERRUPTED = 0, 1, 2, 3, 130

_EXAMPLES = """\
any parameter of the rule can be given as an option:

  %(prog)s --trial-dir ~/run --rule-name VanishingGradient --threshold 1e-6
  %(prog)s --trial-dir s3://bucket/run --rule-name UnchangedTensor --tensor_regex '.*' --num_steps 10
  %(prog)s --trial-dir ~/run --other-trials ~/run_before --rule-name SimilarAcrossRuns
  %(prog)s --trial-dir ~/run --rule-file my_rule.py --rule-name MyRule --limit 5
  %(prog)s --list
  %(prog)s --describe LossNotDecreasing

exit codes:
  0    the rule passed, or the requested list or description was printed
  1    the rule detected a problem at one step or more
  2    usage error: no such rule, parameter or value
  3    the run cannot be read, or the rule failed
  130  interrupted, after printing the findings so far
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code, which `--help` explains."""
    try:
        options, rest = _parser().parse_known_args(argv)
        if options.list:
            print(_list_of_rules())
            return PASSED
        if options.describe:
            print(_description(options.describe))
            return PASSED
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
        return _report_error(error, FAILED if _is_about_the_run(error) else USAGE_ERROR)
    return _evaluate(rule, options)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SMDebugValueError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m smdebug.rules.rule_invoker",
        usage="%(prog)s --trial-dir PATH --rule-name NAME [--PARAMETER VALUE ...]",
        description="Evaluate a rule at every step of a run, and print what it finds. "
        "A run still in progress is followed until it ends.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--trial-dir", "--trial_dir", metavar="PATH", help="the run: a folder or s3://bucket/prefix")
    add("--rule-name", "--rule_name", metavar="NAME", help="the rule, in any case")
    add("--rule-file", "--rule_file", metavar="FILE", help="a Python file that defines the rule")
    add("--other-trials", "--other_trials", "--other-trial", "--other_trial", metavar="PATHS", default="",
        help="other runs for the rule, separated by , or ;")  # fmt: skip
    add("--start-step", "--start_step", metavar="N", type=int, default=0,
        help="the first global step (0)")  # fmt: skip
    add("--end-step", "--end_step", metavar="N", type=int,
        help="the first global step to leave out (default: continue until the run ends)")  # fmt: skip
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
        raise SMDebugValueError("--rule-name is missing; --list lists the built-in rules")
    rule_class: type[Rule] = _catalog_entry(name).load()
    return rule_class


def _catalog_entry(name: str) -> Any:
    from smdebug.rules.generic import find_rule

    return find_rule(name)


def _rule_in_file(file: str, name: str | None) -> type[Rule]:
    rules = rules_in_file(file)
    if name is None:
        if len(rules) > 1:
            raise SMDebugValueError(
                f"{file} defines several rules: choose one with --rule-name ({', '.join(rules)})"
            )
        return next(iter(rules.values()))
    rule = find_in(rules, name)
    if rule is None:
        raise SMDebugValueError(f"{file} defines no rule {name!r}{suggestion(name, rules)}")
    return rule


_ALIASES = {"action_json": "action_str"}


def _parameters(rule_class: type[Rule], rest: Sequence[str]) -> dict[str, str]:
    """Return the rule's parameters from `--any_parameter value`, `--any-parameter=value` and `--flag`."""
    accepted = accepted_parameters(rule_class)
    parameters: dict[str, str] = {}
    remaining = list(rest)
    while remaining:
        option = remaining.pop(0)
        if not option.startswith("--") or option == "--":
            raise SMDebugValueError(f"{option!r} follows no option")
        written, equals, value = option[2:].partition("=")
        name = written.replace("-", "_")
        name = _ALIASES.get(name, name) if name not in accepted.names else name
        if name not in accepted.names and not accepted.anything:
            raise SMDebugValueError(
                f"{rule_class.__name__} takes no parameter {written!r}{suggestion(name, accepted.settable)}"
            )
        if not equals:
            value = remaining.pop(0) if remaining and not remaining[0].startswith("--") else "True"
        if name in parameters:
            raise SMDebugValueError(f"--{written} is given twice")
        parameters[name] = value
    return parameters


def _rule(rule_class: type[Rule], parameters: Mapping[str, str], options: Any) -> Rule:
    other_paths = [path.strip() for path in options.other_trials.replace(";", ",").split(",")]
    return make_rule(
        rule_class,
        lambda: _trial(options.trial_dir),
        parameters,
        lambda: [_trial(path) for path in other_paths if path],
        named=lambda name: "--other-trials" if name in TRIAL_PARAMETERS else f"--{name}",
    )


def _trial(path: str) -> Any:
    from smdebug.trials import create_trial

    return create_trial(path)


def _evaluate(rule: Rule, options: Any) -> int:
    summary = Summary(rule.rule_name, options.trial_dir)
    code = None
    try:
        for evaluation in evaluations(rule, options.start_step, options.end_step):
            summary.add(evaluation, rule.skipped)
            if evaluation.met is not None:
                print(_findings_text(evaluation), flush=True)
                if options.stop_at_first:
                    break
    except NoMoreData:
        pass  # the run has ended, as expected
    except SMDebugError as error:
        code = _report_error(error, FAILED)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a custom rule can raise anything
        code = _report_error(f"{rule.rule_name} failed: {type(error).__name__}: {error}", FAILED)
    print(summary.text())
    if code is not None:
        return code
    return FOUND if summary.steps_found else PASSED


class Summary:
    """Counts evaluations, and summarises them in a few sentences."""

    def __init__(self, rule_name: str, trial_dir: str):
        self.rule_name = rule_name
        self.trial_dir = trial_dir
        self.steps: list[int] = []
        self.steps_found: list[int] = []
        self.without_data = 0
        self.with_data = 0
        self.skipped: dict[str, str] = {}

    def add(self, evaluation: Evaluation, skipped: Mapping[str, str]) -> None:
        self.skipped.update(skipped)
        if isinstance(evaluation.outcome, NotSaved):
            self.without_data += 1
            return
        if not evaluation.at_end:
            had_nothing = isinstance(evaluation.outcome, NothingToCheck)
            self.steps.append(evaluation.step)
            self.without_data += had_nothing
            self.with_data += not had_nothing
        if evaluation.met is not None and evaluation.step not in self.steps_found[-1:]:
            self.steps_found.append(evaluation.step)

    def text(self) -> str:
        where = f"{self.rule_name} on {self.trial_dir}"
        if not self.steps:
            return f"{where}: no step to evaluate."
        steps = f"{len(self.steps)} steps ({self.steps[0]} to {self.steps[-1]})"
        if len(self.steps) == 1:
            steps = f"1 step ({self.steps[0]})"
        verdict = f"passed at {steps}"
        if self.steps_found:
            listed = ", ".join(map(str, self.steps_found[:10]))
            more = f" and {len(self.steps_found) - 10} more" if len(self.steps_found) > 10 else ""
            verdict = f"findings at {len(self.steps_found)} of {steps}: {listed}{more}"
        elif not self.with_data:
            return "\n".join([f"{where}: nothing to check at {steps}.", *self._skipped_lines()])
        hint = f" {self.without_data} had nothing to check." if self.without_data else ""
        return "\n".join([f"{where}: {verdict}.{hint}", *self._skipped_lines()])

    def _skipped_lines(self) -> list[str]:
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.skipped.items():
            by_reason.setdefault(reason, []).append(name)
        return [
            f"Skipped at some step: {', '.join(names[:5])}"
            f"{f' and {len(names) - 5} more' if len(names) > 5 else ''}: {reason}."
            for reason, names in list(by_reason.items())[:5]
        ]


def _findings_text(evaluation: Evaluation) -> str:
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
        lines.append(f"  collections: {', '.join(entry.collections)}")
    lines.append("parameters:")
    for parameter in entry.parameters:
        kind = f"{parameter.type}, {'required' if parameter.required else f'default {parameter.default}'}"
        aliases = f" (also {', '.join(parameter.aliases)})" if parameter.aliases else ""
        lines.append(f"  --{parameter.name} ({kind}): {parameter.sentence}{aliases}")
    return "\n".join(lines)


def _is_about_the_run(error: SMDebugError) -> bool:
    from smdebug.exceptions import MissingCollectionFiles, StorageError

    return isinstance(error, (StorageError, MissingCollectionFiles, NoMoreData))


def _report_error(error: object, code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code
