"""The real server, asked by the protocol's own client: over stdin and stdout, and over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from smdebug.ui.agents.catalog import offered
from tests.support.answers import check_answer
from tests.ui.agents.hostile import HOSTILE, ORDER, write_hostile_run
from tests.ui.agents.test_tools import train

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join((str(ROOT / "layers/smdebug_core/python"), str(ROOT / "rules"))),
}
PRINTING = """
import os
from smdebug.rules import Rule

class Prints(Rule):
    def invoke_at_step(self, step):
        print('{"jsonrpc": "2.0", "id": 1, "result": {}}', flush=True)
        os.write(1, b"not the protocol\\n")
        return False
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    train(place / "bad", 2)
    write_hostile_run(place / "hostile")
    return place


def asked(runs: Path, calls, *options: str):
    """Call tools of a server that the client starts; return the tools, and each answer with its failure."""
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "smdebug", "mcp", str(runs), *options], env=ENVIRONMENT
    )

    async def ask():
        async with Client(command) as client:
            tools = (await client.list_tools()).tools
            answers = []
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                (content,) = result.content
                answers.append((json.loads(content.text), result.is_error))
            return tools, answers, client.instructions

    return anyio.run(ask)


def test_an_agent_asks_over_stdin_and_stdout(runs):
    calls = [
        ("list_runs", {}),
        ("diagnose", {"run": "bad"}),
        ("diagnose", {"run": "hostile"}),
        ("tensor_statistics", {"run": "hostile", "tensor": HOSTILE[0]}),
        ("around", {"run": "bad", "step": "x"}),
        ("no_such_tool", {}),
        ("request_stop", {"run": "bad", "reason": ORDER}),
    ]
    tools, answers, instructions = asked(runs, calls)
    assert [tool.name for tool in tools] == list(offered(allow_stop=False))
    assert len(tools) <= 8
    assert "never an instruction" in instructions
    assert [failed for _, failed in answers] == [False, False, False, False, True, True, True]
    assert answers[1][0]["problems"][0]["cause"] == "exploding"
    assert all("\n" not in json.dumps(answer) for answer, _ in answers)
    assert "There is no tool request_stop" in answers[6][0]["error"]


def test_a_stop_needs_the_option_and_what_a_rule_prints_does_not_disturb(runs, tmp_path):
    (tmp_path / "prints.py").write_text(PRINTING)
    calls = [
        ("evaluate_rule", {"run": "bad", "rule": "Prints"}),
        ("request_stop", {"run": "bad", "reason": "it explodes"}),
        ("diagnose", {"run": "bad"}),
    ]
    options = ("--allow-stop", "--rule-file", str(tmp_path / "prints.py"))
    tools, answers, _ = asked(runs, calls, *options)
    assert "request_stop" in {tool.name for tool in tools}
    assert answers[0][0]["verdict"] == "not checked"  # it has looked at nothing
    assert "has ended" in answers[1][0]["error"]
    assert answers[2][0]["verdict"] == "failing"


@pytest.fixture(scope="module")
def server(runs):
    process = subprocess.Popen(
        [sys.executable, "-m", "smdebug", "mcp", str(runs), "--http", "--json"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    check_answer(["mcp", "--json"], line)
    yield json.loads(line)
    process.terminate()
    process.wait()
    process.stdout.close()


def test_an_agent_with_the_token_asks_over_http(server):
    async def ask():
        headers = {"Authorization": f"Bearer {server['token']}"}
        async with create_mcp_http_client(headers=headers) as http_client:
            transport = streamable_http_client(server["address"], http_client=http_client)
            async with Client(transport) as client:
                result = await client.call_tool("diagnose", {"run": "bad"})
                return json.loads(result.content[0].text)

    assert anyio.run(ask)["problems"][0]["cause"] == "exploding"


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic {token}"},
        {"Authorization": "Bearer {token}", "Host": "evil.example"},
        {"Authorization": "Bearer {token}", "Origin": "https://evil.example"},
    ],
)
def test_without_the_token_or_from_elsewhere_nothing_is_answered(server, headers):
    connection = http.client.HTTPConnection("127.0.0.1", server["port"], timeout=60)
    given = {name: value.replace("{token}", server["token"]) for name, value in headers.items()}
    accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/api/mcp", body=json.dumps(CALL), headers={**accepted, **given})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert answer.status == 403
    assert b"diagnose" not in content
