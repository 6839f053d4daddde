"""`python -m infra.app` synthesizes the stack; `cdk deploy` also deploys it."""

from __future__ import annotations

import sys
from typing import Any

import aws_cdk as cdk

from infra.settings import Settings, SettingsError
from infra.stack import DebuggerStack

NAME = "smdebug"


def app_with(settings: Settings | None = None, *, name: str = NAME, **options: Any) -> cdk.App:
    """Return the app; without `settings`, they come from the context."""
    app = cdk.App(**options)
    DebuggerStack(app, name, settings=settings or Settings.from_context(app.node.get_all_context()))
    return app


def main() -> None:
    try:
        app = app_with()
    except SettingsError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
