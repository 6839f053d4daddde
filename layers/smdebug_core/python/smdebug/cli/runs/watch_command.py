"""`smdebug watch`: follow runs in the terminal while they train."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from smdebug.amounts import counted, number
from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, faint, good, strong
from smdebug.cli.answers.diagnosis_output import issue_lines
from smdebug.cli.answers.live_screen import LiveScreen
from smdebug.cli.answers.output import output_options, print_json_line, print_line, print_note
from smdebug.cli.answers.partial_reads import code_despite, unread_file_warnings
from smdebug.cli.arguments.choice_options import rule_file_option, rule_option
from smdebug.cli.arguments.completers import complete_place
from smdebug.cli.arguments.inputs import FiniteRange, read_file
from smdebug.storage.intervals import IN_BUCKET, IN_FOLDER

if TYPE_CHECKING:
    from smdebug.runs.evaluation.following import IssueChange
    from smdebug.runs.left_out import LeftOut
    from smdebug.runs.live_run import LiveRun

_LOOK_FOR_RUNS_EVERY = 5.0
_CURVE = 24
_LONG_SILENCE = 60.0  # seconds after which the last step's age is shown


@click.command("watch")
@click.argument("paths", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_place)
@rule_option(
    "Evaluate this built-in rule; can be repeated. Default: the rules of the run, and the default rules."
)
@rule_file_option()
@click.option(
    "--interval",
    type=FiniteRange(min=0.1),
    metavar="SECONDS",
    help=f"Check for new steps this often (default: {IN_FOLDER:g}, on S3 {IN_BUCKET:g}).",
)
@click.option("--once", is_flag=True, help="Show the runs as they are now, and exit.")
@output_options
def command(
    paths: tuple[str, ...],
    rules: tuple[str, ...],
    rule_file: str | None,
    interval: float | None,
    once: bool,
    as_json: bool,
) -> int:
    """Follow runs while they train: steps, loss, and problems as they are detected and resolved.

    RUN is the folder or S3 prefix of a run, which need not have begun, or one with several runs. It needs
    only the files: no AWS account for a folder, and no deployed debugger. It ends when every run has ended,
    or with Ctrl-C; a run that failed is followed on, as it may be resumed. With --json each event is a line
    of JSON: `progress`, `opened`, `resolved`, `failed`, `ended`, `unread`.

    \b
    Examples:
      smdebug watch runs/a
      smdebug watch runs
      smdebug watch s3://bucket/experiments --rule VanishingGradient
      smdebug watch runs/a --json | jq .

    Exits with 0 if nothing was found, with 1 if something was, and with 3 if a run or part of it could not be
    read, a rule failed, or nothing was checked in a run that has ended.
    """
    from smdebug.runs.watched_places import WatchedPlaces

    wanted = _known_rules(rules, rule_file)
    places = WatchedPlaces(paths, wanted or None, rule_file)
    show: _Events | _Screen = _Events() if as_json else _Screen()
    pause = interval or (IN_BUCKET if places.are_remote else IN_FOLDER)
    try:
        for _ in _rounds(pause, once):
            places.look_for_runs(every=_LOOK_FOR_RUNS_EVERY)
            with redirect_stdout(_Stderr()):  # keep what a rule prints out of the answer
                news = [(run, run.advance()) for run in places.runs]
            for run, changes in news:
                show.changes(run, changes)
            show.state(places.runs)
            if places.have_ended:
                break
    except KeyboardInterrupt:  # the usual end of watching
        show.interrupted()
    show.end(places.runs)
    gaps = []
    for run in places.runs:
        if unread := _unread(run):
            show.unread(run, unread)
            gaps += unread
    return code_despite(gaps, _code(places.runs))


def _known_rules(rules: Sequence[str], rule_file: str | None) -> list[str]:
    """Return the rules to evaluate, of those in the file and the built-in ones; refuse an unknown name."""
    from smdebug.rules.loading import rules_in_file
    from smdebug.rules.rule_sets import SET_NAMES
    from smdebug.runs.evaluation.evaluating import rule_class

    if rule_file is not None:
        read_file(rule_file)
        rules_in_file(rule_file)
    for name in rules:
        if name.lower() not in SET_NAMES:
            rule_class(name, rule_file)
    return list(rules)


def _rounds(pause: float, once: bool) -> Iterator[None]:
    yield
    while not once:
        time.sleep(pause)
        yield


def _code(runs: Sequence[LiveRun]) -> int:
    if any(run.error or run.failed_rules or _checked_nothing(run) for run in runs):
        return exit_codes.FAILED
    found = any(run.following is not None and run.following.issues for run in runs)
    return exit_codes.FOUND if found else exit_codes.PASSED


def _unread(run: LiveRun) -> list[LeftOut]:
    """Return the files of a finished run that cannot be read; those of others may still arrive."""
    return list(run.left_out) if run.has_ended else []


def _checked_nothing(run: LiveRun) -> bool:
    if not run.has_ended:
        return False
    return run.following is None or not any(result.has_seen for result in run.following.results)


class _Stderr:
    """Writes to whatever stderr is now."""

    def write(self, text: str) -> int:
        click.echo(text, err=True, nl=False)
        return len(text)

    def flush(self) -> None:
        pass


class _Screen:
    """Runs in a terminal: a line for each that is redrawn, and lines of news above them."""

    def __init__(self) -> None:
        self._screen = LiveScreen()
        self._ended: set[str] = set()

    def changes(self, run: LiveRun, changes: Sequence[IssueChange]) -> None:
        from smdebug.runs.evaluation.following import ChangeKind

        for change in changes:
            if change.kind is ChangeKind.OPENED:
                self._screen.print_above(*issue_lines(change.issue, run=run.path))
            else:
                title = _title(change)
                text = f"{good('✓')} {run.path}: {title} was resolved at step {change.step:,}"
                self._screen.print_above(text)
        if run.has_ended and run.path not in self._ended:
            self._ended.add(run.path)
            self._screen.print_above(*_ending(run))

    def state(self, runs: Sequence[LiveRun]) -> None:
        self._screen.show([line for run in runs for line in _lines(run)])

    def unread(self, run: LiveRun, gaps: Sequence[LeftOut]) -> None:
        for sentence in unread_file_warnings(gaps, run.path):
            print_note(sentence)

    def interrupted(self) -> None:
        """Leave the line on which the terminal echoes ^C."""
        if self._screen.is_live:
            print_line()

    def end(self, runs: Sequence[LiveRun]) -> None:
        """Leave the last state on the screen; where nothing is redrawn, print it now."""
        if not self._screen.is_live:
            for run in runs:
                for line in _lines(run):
                    self._screen.print_above(line)


class _Events:
    """Runs as lines of JSON."""

    def __init__(self) -> None:
        self._last: dict[str, Any] = {}

    def changes(self, run: LiveRun, changes: Sequence[IssueChange]) -> None:
        for change in changes:
            issue = change.issue.to_dict()
            print_json_line(
                {"event": change.kind.value, "run": run.path, "step": change.step, "issue": issue}
            )
        for rule, error in run.failed_rules.items():
            self._print_once({"event": "failed", "run": run.path, "rule": rule, "error": error})

    def state(self, runs: Sequence[LiveRun]) -> None:
        for run in runs:
            self._print_once(
                {
                    "event": "ended" if run.has_ended else "progress",
                    "run": run.path,
                    "state": run.state.name.lower(),
                    "steps_saved": run.steps_saved,
                    "last_step": run.last_step,
                    "loss": run.loss,
                    "missing_steps": run.missing.count,
                    "open": len(run.following.open_issues) if run.following else 0,
                    "error": run.error or None,
                }
            )

    def unread(self, run: LiveRun, gaps: Sequence[LeftOut]) -> None:
        files = [gap.to_dict() for gap in gaps]
        print_json_line({"event": "unread", "run": run.path, "left_out": files})

    def interrupted(self) -> None:
        """Every line has ended."""

    def end(self, runs: Sequence[LiveRun]) -> None:
        """Everything was printed when it happened."""

    def _print_once(self, event: dict[str, Any]) -> None:
        key = f"{event['run']} {event.get('rule', '')}"
        if self._last.get(key) != event:
            self._last[key] = event
            print_json_line(event)


def _title(change: IssueChange) -> str:
    from smdebug.diagnosis.wording import title_of

    return title_of(change.issue)


def _ending(run: LiveRun) -> list[str]:
    """Return in lines how the run ended; without a check, nothing is said of its health."""
    from smdebug.runs.evaluation.diagnosing import not_checked_in_words

    end = f"{run.path} ended at step {run.last_step or 0:,}: {run.outcome}"
    following = run.following
    if following is not None and following.issues:
        return [f"{bad('✗')} {end}"]
    if run.missing or (run.is_partial and not _checked_nothing(run)):
        return [f"{bad('!')} {end}"]
    if not _checked_nothing(run):
        return [f"{good('✓')} {end}"]
    results = following.results if following is not None else []
    missing = {result.name: result.not_checked for result in results if result.not_checked}
    return [f"{faint('–')} {end}", *(f"    {text}" for text in not_checked_in_words(missing))]


def _lines(run: LiveRun) -> list[str]:
    """Return the state of a run: one line, and one for each open problem."""
    from smdebug.diagnosis.wording import in_a_line
    from smdebug.runs.live_run import is_bad
    from smdebug.runs.sparkline import sparkline

    parts = [strong(run.path), run.state.value]
    if run.last_step is not None:
        parts.append(f"step {run.last_step:,}")
    if run.missing.gaps:
        parts.append(bad(f"{counted(run.missing.count, 'step')} missing"))
    if run.training_loss is not None:
        value = number(run.loss)
        shown = bad(value) if is_bad(run.loss) else value
        parts.append(f"{run.training_loss.name} {shown} {sparkline(run.losses, _CURVE)}")
    if age := _age(run):
        parts.append(faint(age))
    if run.error:
        parts.append(bad(run.error))
    lines = ["  ".join(parts)]
    if run.following is not None:
        lines += [f"  {bad('✗')} {in_a_line(issue)}" for issue in run.following.open_issues]
    lines += [f"  {bad('!')} {name} failed: {error}" for name, error in run.failed_rules.items()]
    return lines


def _age(run: LiveRun) -> str:
    """Return how long ago the last step was saved, once that is long."""
    if run.has_ended or run.last_saved_at is None:
        return ""
    seconds = time.time() - run.last_saved_at
    if seconds < _LONG_SILENCE:
        return ""
    minutes = int(seconds // 60)
    return f"last step {minutes} min ago" if minutes < 120 else f"last step {minutes // 60} h ago"
