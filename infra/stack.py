"""The stack that `cdk deploy` creates: one debugger and its outputs."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from constructs import Construct

from infra.settings import Settings
from infra.training_debugger import TrainingDebugger


class DebuggerStack(cdk.Stack):
    """A training debugger in the user's own account."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, **options: Any) -> None:
        super().__init__(
            scope,
            id,
            description="smdebug: detects problems of trainings from the tensors they save",
            **options,
        )
        self.debugger = TrainingDebugger(self, "Debugger", settings=settings)
        self.debugger.outputs.use_plain_names()
