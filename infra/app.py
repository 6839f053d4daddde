"""`python -m infra.app` synthesizes the stack into `cdk.out`; `cdk deploy` also deploys it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from infra.packaging.assets import ROOT
from infra.settings import Settings, SettingsError
from infra.stack import DebuggerStack

NAME = Settings.stack
"""The name of the stack, unless the setting `stack` says otherwise."""


def app_with(settings: Settings | None = None, **options: Any) -> cdk.App:
    """Return the app; without `settings`, they come from the context."""
    app = cdk.App(**options)
    settings = settings or Settings.from_context(app.node.get_all_context())
    DebuggerStack(app, settings.stack, settings=settings)
    return app


def main() -> None:
    try:
        app = app_with(**_options_without_cli(os.environ))
    except SettingsError as error:
        sys.exit(str(error))
    assembly = app.synth()
    if "CDK_OUTDIR" not in os.environ:  # the CDK CLI reads the folder itself
        for stack in assembly.stacks:
            print(Path(stack.template_full_path).resolve())


def _options_without_cli(environ: Any) -> dict[str, Any]:
    """What the CDK CLI passes in the environment, for a run without it: folder and `cdk.json`."""
    options: dict[str, Any] = {}
    if "CDK_OUTDIR" not in environ:
        options["outdir"] = "cdk.out"
    if "CDK_CONTEXT_JSON" not in environ:
        configuration = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))
        options["context"] = configuration["context"]
    return options


if __name__ == "__main__":
    main()
