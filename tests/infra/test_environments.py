"""Every function is deployed with each variable that its handler reads."""

from __future__ import annotations

from dataclasses import fields

import pytest

from functions import environment
from tests.infra.conftest import Stack

ENVIRONMENTS = {
    "ingest": environment.IngestEnvironment,
    "sweep": environment.IngestEnvironment,
    "evaluate": environment.EvaluateEnvironment,
    "commit": environment.EvaluateEnvironment,
    "finish_run": environment.EvaluateEnvironment,
    "claim": environment.ClaimEnvironment,
    "watch": environment.WatchEnvironment,
    "mark_published": environment.IndexAccess,
    "write_report": environment.IndexAccess,
    "act": environment.ActEnvironment,
    "notify": environment.NotifyEnvironment,
}


@pytest.mark.parametrize("handler", ENVIRONMENTS)
def test_a_function_is_deployed_with_what_its_handler_reads(default_stack: Stack, handler):
    (function,) = [
        function
        for function in default_stack.of("AWS::Lambda::Function").values()
        if function["Handler"] == f"functions.handlers.{handler}.handler"
    ]
    given = function["Environment"]["Variables"]
    needed = {field.metadata["variable"] for field in fields(ENVIRONMENTS[handler])}
    assert needed <= given.keys()
