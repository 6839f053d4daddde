"""Complete paths, rule names, and the tensors, collections and workers of a run in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from smdebug.trials import Trial

_MOST = 500


def complete_place(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete files and folders, as the shell does by default."""
    return [CompletionItem(incomplete, type="file")]


def complete_folder(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete folders."""
    return [CompletionItem(incomplete, type="dir")]


def complete_rule(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of built-in rules, in any case."""
    from smdebug.rules.generic import every_rule

    return [CompletionItem(name) for name in every_rule() if _begins(name, incomplete)]


def complete_rule_or_all(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of built-in rules and of their sets."""
    from smdebug.rules.rule_sets import SET_NAMES

    sets = [CompletionItem(name) for name in SET_NAMES if _begins(name, incomplete)]
    return [*complete_rule(ctx, parameter, incomplete), *sets]


def complete_set_or_file(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete files and the names of sets of rules."""
    from smdebug.rules.rule_sets import SET_NAMES

    sets = [CompletionItem(name) for name in SET_NAMES if _begins(name, incomplete)]
    return [*complete_place(ctx, parameter, incomplete), *sets]


def complete_rule_or_file(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete files and the names of built-in rules; bash offers files if no rule matches."""
    return [
        *complete_place(ctx, parameter, incomplete),
        *complete_rule(ctx, parameter, incomplete),
    ]


def complete_tensor(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of tensors and scalars of the run that the command line names."""
    from smdebug.runs.tensors import every_name

    trial = _run_named(ctx)
    names = [] if trial is None else every_name(trial)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)][:_MOST]


def complete_plotted(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of what can be drawn: saved tensors, and scalars."""
    trial = _run_named(ctx)
    names = [] if trial is None else [*trial.tensor_names(), *trial.observations.series_names()]
    found = (name for name in dict.fromkeys(names) if name.startswith(incomplete))
    return [CompletionItem(name) for name in found][:_MOST]


def complete_collection(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of collections of the run that the command line names."""
    trial = _run_named(ctx)
    names = [] if trial is None else sorted(trial.collections())
    return [CompletionItem(name) for name in names if _begins(name, incomplete)]


def complete_worker(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the workers of the run that the command line names."""
    trial = _run_named(ctx)
    names = [] if trial is None else trial.workers()
    return [CompletionItem(name) for name in names if name.startswith(incomplete)][:_MOST]


def _run_named(ctx: click.Context) -> Trial | None:
    """Return the run if it is in a folder. In a bucket, each key press would send a request."""
    # Before an option has its value, click has not yet given the arguments their names.
    given = (*(ctx.params.get(name) for name in ("path", "run", "first")), *ctx.args)
    places = (Path(text).expanduser() for text in given if isinstance(text, str))
    place = next(filter(Path.is_dir, places), None)
    if place is None:
        return None
    from smdebug.exceptions import SMDebugError
    from smdebug.runs.opening import open_run

    try:
        return open_run(place)
    except (SMDebugError, OSError):
        return None


def _begins(name: str, incomplete: str) -> bool:
    return name.lower().startswith(incomplete.lower())
