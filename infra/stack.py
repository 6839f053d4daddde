"""The stack that `cdk deploy` makes: one debugger, and what a person has to know about it."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from constructs import Construct

from infra.settings import Settings
from infra.training_debugger import TrainingDebugger


class DebuggerStack(cdk.Stack):
    """A training debugger in an account of its user."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, **more: Any) -> None:
        super().__init__(
            scope, id, description="smdebug: watches trainings by the tensors they save", **more
        )
        self.debugger = TrainingDebugger(self, "Debugger", settings=settings)
        self.debugger.outputs.named_plainly()
