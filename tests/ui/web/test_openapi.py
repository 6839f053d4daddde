"""The description of the API, and that every answer has the form that it says."""

from __future__ import annotations

import json

import pytest

from tests.support.looking import each
from tests.ui.logged_runs import log_values
from tests.ui.written_runs import WrittenRun

TYPES = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def problems(value, schema, schemas, place="answer"):
    """Yield in which places a value differs from a schema."""
    if "$ref" in schema:
        yield from problems(value, schemas[schema["$ref"].rpartition("/")[2]], schemas, place)
        return
    if "anyOf" in schema:
        if all(list(problems(value, each, schemas, place)) for each in schema["anyOf"]):
            yield f"{place}: {value!r:.60} is none of {schema['anyOf']}"
        return
    kind = schema.get("type")
    if kind is None:
        return
    if not TYPES[kind](value):
        yield f"{place}: {value!r:.60} is no {kind}"
        return
    if kind == "array":
        for at, each in enumerate(value):
            yield from problems(each, schema["items"], schemas, f"{place}[{at}]")
    if kind == "object":
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{place}.{name} is missing"
        for name, each in value.items():
            if name in known:
                yield from problems(each, known[name], schemas, f"{place}.{name}")
            elif others is False:
                yield f"{place}.{name} is not described"
            elif isinstance(others, dict):
                yield from problems(each, others, schemas, f"{place}.{name}")


def test_the_check_of_this_test_finds_what_is_wrong():
    schemas = {"A": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}
    reference = {"$ref": "#/components/schemas/A"}
    assert list(problems({"x": 1}, reference, schemas)) == []
    assert list(problems({"x": True}, reference, schemas)) == ["answer.x: True is no integer"]
    assert list(problems({}, reference, schemas)) == ["answer.x is missing"]
    assert list(problems([None], {"type": "array", "items": {"type": "null"}}, {})) == []


@pytest.fixture
def client(serve, tmp_path):
    rules = tmp_path / "rules.py"
    rules.write_text(
        "from smdebug.rules import Rule\n\nclass Fine(Rule):\n"
        "    def invoke_at_step(self, step):\n        return False\n"
    )
    WrittenRun(tmp_path / "runs" / "a", loss=lambda step: float("nan")).write(25)
    WrittenRun(tmp_path / "runs" / "b").write(5, end=True)
    log_values(tmp_path / "runs" / "b")
    client = serve(tmp_path / "runs", rule_file=str(rules))
    while client.server.board.work([]) == 0:
        pass
    return client


def requests_of(client):
    """Return a request to every described address: its path and its body."""
    a, b = client.run("a"), client.run("b")
    tensor = "kind=gradients&name=blocks.0.weight"
    run = f"/api/run/{a}"
    return {
        "/api/runs": "/api/runs",
        "/api/compare": f"/api/compare?runs={a},{b}",
        "/api/run/{id}": run,
        "/api/run/{id}/series": f"{run}/series?name=loss&first=0&last=20&points=5",
        "/api/run/{id}/rows": f"{run}/rows?kind=gradients",
        "/api/run/{id}/members": f"{run}/members?{tensor}",
        "/api/run/{id}/matrix": f"{run}/matrix?kind=gradients&statistic=rms",
        "/api/run/{id}/tensor": f"{run}/tensor?{tensor}",
        "/api/run/{id}/at": f"{run}/at?{tensor}&step=3",
        "/api/run/{id}/numbers": f"{run}/numbers?kind=gradients",
        "/api/run/{id}/about": f"{run}/about",
        "/api/run/{id}/facts": f"{run}/facts",
        "/api/run/{id}/log": f"{run}/log",
        "/api/run/{id}/ranks": f"{run}/ranks",
        "/api/run/{id}/export.csv": f"{run}/export.csv?name=loss",
        "/api/run/{id}/logged": f"/api/run/{b}/logged",
        "/api/run/{id}/logged/value": f"/api/run/{b}/logged/value?worker=worker_0&number=0",
        "/api/run/{id}/logged/image": f"/api/run/{b}/logged/image?worker=worker_0&number=1",
        "/api/run/{id}/logged/sound": f"/api/run/{b}/logged/sound?worker=worker_0&number=2",
        "/api/run/{id}/report.html": f"/api/run/{b}/report.html",
        "/api/run/{id}/rules": f"{run}/rules",
        "/api/run/{id}/zoom": (f"{run}/zoom", {"tensors": ["blocks"], "steps": 2}),
        "/api/run/{id}/stop": (f"{run}/stop", {}),
        "/api/run/{id}/annotations": f"{run}/annotations",
        "/api/run/{id}/annotate": (f"{run}/annotate", {"version": "", "tags": ["a"]}),
        "/api/run/{id}/attach": (f"{run}/attach", {"rules": ["ExplodingTensor"]}),
        "/api/run/{id}/detach": (f"{run}/detach", {"rules": ["ExplodingTensor"]}),
        "/api/run/{id}/evaluate": (f"{run}/evaluate", {"rule": "Fine"}),
    }


def test_every_answer_has_the_form_that_is_described(client):
    document = client.get("/api/openapi.json")
    schemas = document["components"]["schemas"]
    requests = requests_of(client)
    assert set(requests) | {"/api/events"} == set(document["paths"])
    for path, request in requests.items():
        ((method, operation),) = document["paths"][path].items()
        ((media, content),) = operation["responses"]["200"]["content"].items()
        where, body = request if isinstance(request, tuple) else (request, None)
        if body is not None:
            sent = operation["requestBody"]["content"]["application/json"]["schema"]
            assert list(problems(body, sent, schemas)) == []
        status, headers, answer = client.ask(where, method=method.upper(), body=body)
        assert status == 200, (path, answer)
        assert headers["content-type"].partition(";")[0] == media
        if media == "application/json":
            assert content["schema"].get("$ref"), path
            assert list(problems(json.loads(answer), content["schema"], schemas, path)) == []


def test_every_problem_has_the_form_that_is_described(client):
    document = client.get("/api/openapi.json")
    run = f"/api/run/{client.run('a')}"
    for path, operations in each(document["paths"].items(), at_least=20):
        ((method, operation),) = operations.items()
        needed = [
            each["name"] for each in operation["parameters"] if each["in"] == "query" and each["required"]
        ]
        if not needed:
            continue
        status, _, answer = client.ask(path.replace("/api/run/{id}", run), method=method.upper())
        assert status in (400, 404), path
        assert list(json.loads(answer)) == ["error"]


def test_every_reference_is_resolved(client):
    document = client.get("/api/openapi.json")
    text = json.dumps(document)
    schemas = document["components"]["schemas"]
    assert {"RowAnswer", "IssueAnswer", "StatusAnswer", "Problem"} <= set(schemas)
    for name in text.split('"#/components/schemas/')[1:]:
        assert name.partition('"')[0] in schemas
