"""The generated pages of the book: every option of the command, and the Python API."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = (ROOT / "layers/smdebug_core/python", ROOT / "rules")
HELP_WIDTH = 88

# What each part of the API is for, and its objects. mkdocstrings inserts their docstrings.
API = {
    "Saving": (
        "start",
        "log",
        "Image",
        "Text",
        "Table",
        "ConfusionMatrix",
        "Histogram",
        "Audio",
        "mark_checkpoint",
        "Hook",
        "SaveConfig",
        "SaveConfigMode",
        "ReductionConfig",
        "CollectionKeys",
        "pytorch.Hook",
        "tensorflow.KerasHook",
        "xgboost.Hook",
        "huggingface.Callback",
        "lightning.Callback",
        "jax.Hook",
        "sweeps.watch_trial",
        "sweeps.WatchedTrial",
        "compatibility.mxnet.hook.Hook",
    ),
    "Reading": (
        "trials.create_trial",
        "trials.Trial",
        "trials.StepState",
        "trials.tensor.Tensor",
        "trials.no_refresh",
    ),
    "Diagnosis and comparison": (
        "diagnose",
        "runs.Diagnosis",
        "runs.evaluate",
        "runs.RuleResult",
        "runs.compare",
        "runs.Comparison",
        "runs.verify",
        "runs.Verification",
        "runs.overview_of",
    ),
    "Rules": ("rules.Rule", "rules.Finding", "rules.RequiredTensors", "rules.invoke_rule"),
    "Reports, plots and exports": (
        "reports.write_report",
        "reports.gather",
        "reports.page_of",
        "plots.line",
        "plots.histogram",
        "plots.ridge",
        "plots.heatmap",
        "plots.dead_units",
        "plots.variance_across_layers",
        "plots.Picture",
        "export.export_tensorboard",
        "export.export_parquet",
        "export.export_npz",
        "export.export_safetensors",
    ),
    "A deployed debugger": (
        "service.connect",
        "service.Debugger",
        "service.WatchedRun",
        "service.RuleStatusOf",
        "service.FindingEvent",
        "service.StepStatus",
        "service.RunSummary",
    ),
    "Errors": ("exceptions",),
}


def api_page() -> str:
    """Return the page of the Python API: the directives from which mkdocstrings writes it."""
    parts = [
        "# The Python API",
        "Generated from the docstrings. Names without a leading underscore are kept.",
    ]
    for title, names in API.items():
        parts += [f"## {title}", *(f"::: smdebug.{name}" for name in names)]
    return "\n\n".join(parts) + "\n"


def cli_page() -> str:
    """Return the page of the command: what `--help` prints, for every command."""
    os.environ["COLUMNS"] = str(HELP_WIDTH)
    sys.path[:0] = [str(folder) for folder in LIBRARY]
    import click

    from smdebug.cli.commands import COMMANDS, Commands, smdebug

    parts = [
        "# Every option of the command",
        "What `smdebug --help` and `smdebug COMMAND --help` print.",
    ]
    with click.Context(smdebug, info_name="smdebug", max_content_width=HELP_WIDTH) as context:
        parts += ["## smdebug", f"```text\n{smdebug.get_help(context)}\n```"]
        for name in sorted(COMMANDS):
            command = Commands.get_command(smdebug, context, name)
            assert command is not None, name
            with click.Context(command, info_name=name, parent=context) as inner:
                parts += [f"## smdebug {name}", f"```text\n{command.get_help(inner)}\n```"]
    return "\n\n".join(parts) + "\n"


PAGES = {"api.md": api_page, "cli.md": cli_page}
