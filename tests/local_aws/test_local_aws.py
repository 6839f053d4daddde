"""The local stack starts or says why not, and leaves nothing behind however it ends."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from infra.packaging.fingerprints import files_of
from local_aws import LocalAws, LocalDebugger
from local_aws.deployment import assembly as assembly_module
from local_aws.deployment.assembly import KEPT, Assembly, synthesized
from local_aws.deployment.deployed import Deployed
from local_aws.errors import (
    DiskFull,
    FolderClosed,
    NotSynthesized,
    PortTaken,
    Unsupported,
    explain_os_error,
)
from local_aws.resources.deploying import deploy
from local_aws.serve import exports, serve
from tests.e2e.test_rules import COUNTING
from tests.functions.saver import FAILING, Saver
from tests.local_aws.edited import edited
from tests.support.answers import check_answer

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT, ROOT / "layers" / "smdebug_core" / "python", ROOT / "rules"]


@pytest.fixture(scope="module")
def assembly() -> Assembly:
    return synthesized()


def test_a_template_with_something_unknown_is_not_deployed(assembly, tmp_path):
    def with_a_network(resources):
        resources.update(Vpc={"Type": "AWS::EC2::VPC"})

    with (
        pytest.raises(Unsupported, match="AWS::EC2::VPC"),
        LocalAws(assembly=edited(assembly, tmp_path / "edited", with_a_network)),
    ):
        pass


@pytest.mark.parametrize(
    ("kind", "change", "named"),
    [
        ("AWS::SQS::Queue", {"FifoQueue": True}, "FifoQueue"),
        ("AWS::SNS::Topic", {"DisplayName": {"Fn::ImportValue": "x"}}, "Fn::ImportValue"),
    ],
)
def test_a_resource_with_something_unknown_is_not_created(assembly, tmp_path, kind, change, named):
    def changed(resources):
        of_kind = next(resource for resource in resources.values() if resource["Type"] == kind)
        resources.clear()
        resources["Changed"] = {"Type": kind, "Properties": {**of_kind.get("Properties", {}), **change}}

    def no_client(service):
        pytest.fail(f"a client of {service} was made")

    with pytest.raises(Unsupported, match=named):
        deploy(edited(assembly, tmp_path / "edited", changed), no_client, into=Deployed())


def test_a_missing_permission_refuses_the_call(assembly, tmp_path):
    def without_starting(resources):
        for resource in resources.values():
            if resource["Type"] == "AWS::IAM::Policy":
                for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
                    if statement["Action"] == "states:StartExecution":
                        statement["Action"] = "states:StopExecution"

    with LocalAws(assembly=edited(assembly, tmp_path / "edited", without_starting)) as aws:
        debugger = LocalDebugger(aws)
        Saver(debugger.storage("run")).begin().save(0, FAILING)
        aws.wait_until(aws.refused, what="the refusal")
        assert "may not states:StartExecution" in aws.refused()[0]
        assert not aws.invocations("evaluate")


def test_a_taken_port_is_named(assembly):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=str(port)), LocalAws(assembly=assembly, port=port):
            pass


def test_two_stacks_are_independent(assembly):
    with LocalAws(assembly=assembly) as first, LocalAws(assembly=assembly) as second:
        first.client("s3").put_object(Bucket=first.bucket, Key="x", Body=b"")
        assert first.endpoint != second.endpoint
        assert not second.client("s3").list_objects_v2(Bucket=second.bucket).get("Contents")


def test_a_killed_stack_leaves_nothing_behind(assembly):
    program = (
        "import sys, time\n"
        "from local_aws import LocalAws\n"
        "aws = LocalAws()\n"
        "aws.start()\n"
        "aws.invoke('sweep', {})\n"
        "print(aws.folder, flush=True)\n"
        "time.sleep(60)\n"
    )
    process = started(program)
    assert process.stdout is not None
    folder = process.stdout.readline().strip()
    assert processes_of(folder)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until = time.monotonic() + 120
    while time.monotonic() < until and (Path(folder).exists() or processes_of(folder)):
        time.sleep(0.05)
    assert not Path(folder).exists()
    assert not processes_of(folder)


def test_the_handlers_can_run_in_this_process():
    program = (
        "import sys\n"
        "from local_aws import LocalAws, LocalDebugger\n"
        "from tests.functions.saver import FAILING, Saver\n"
        "with LocalAws(in_process=True) as aws:\n"
        "    debugger = LocalDebugger(aws)\n"
        "    debugger.attach('run', ['ExplodingTensor'])\n"
        "    Saver(debugger.storage('run')).begin().save(0, FAILING)\n"
        "    debugger.wait('run', through=0)\n"
        "    print([finding.rule for finding in debugger.findings('run')])\n"
        "    print('functions.evaluation.built_in' in sys.modules)\n"
    )
    output, _ = started(program).communicate(timeout=120)
    assert output.splitlines()[-2:] == ["['ExplodingTensor']", "True"]


@pytest.mark.parametrize("name", ["pager", "ssm:/teams/pager"])
def test_a_webhook_receives_the_findings_with_its_token(name):
    posts = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posts.append((self.headers["x-smdebug-token"], json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    secret = {"url": f"http://127.0.0.1:{server.server_address[1]}/hook", "token": "secret"}
    try:
        with LocalAws({"webhook_secret": name}, secrets={name: secret}) as aws:
            debugger = LocalDebugger(aws)
            debugger.attach("run", ["ExplodingTensor"])
            Saver(debugger.storage("run")).begin().save(0, FAILING)
            found = "Rule Evaluation Condition Met"

            def findings():
                return [post for post in posts if post[1]["detail-type"] == found]

            token, event = aws.wait_until(findings, what="the post to the webhook")[0]
            assert (token, event["detail"]["rule"]) == ("secret", "ExplodingTensor")
            assert aws.refused() == []
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_an_existing_bucket_is_watched_with_the_rules_of_a_folder(tmp_path):
    (tmp_path / "counting.py").write_text(COUNTING)
    settings = {"bucket": "my-runs", "custom_rules": str(tmp_path), "workflow_type": "standard"}
    with LocalAws(settings) as aws:
        s3 = aws.client("s3")
        s3.create_bucket(Bucket="my-runs")
        s3.put_bucket_notification_configuration(
            Bucket="my-runs", NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
        debugger = LocalDebugger(aws)
        rule = {"name": "Counting", "rule": "Counting", "parameters": {"limit": "2"}}
        debugger.attach("run", ["VanishingGradient"])
        debugger.attach("run", [rule, "ExplodingTensor"])  # the later call replaces the first
        saver = Saver(debugger.storage("run")).begin()
        saver.save(0)
        saver.save(1, FAILING)
        run = debugger.wait("run", through=1)
        assert {(finding.step, finding.rule) for finding in run.findings()} == {
            (1, "Counting"),
            (1, "ExplodingTensor"),
        }
        assert aws.refused() == []


def test_serve_prints_what_to_set():
    lines: list[str] = []
    stop = threading.Event()
    settings = {"export_queues": "mlflow"}
    options = {"write": lines.append, "until": stop, "settings": settings}
    thread = threading.Thread(target=serve, kwargs=options)
    thread.start()
    until = time.monotonic() + 60
    while not any("Ctrl-C" in line for line in lines) and time.monotonic() < until:
        time.sleep(0.05)
    stop.set()
    thread.join(60)
    assert any(re.search(r"export AWS_ENDPOINT_URL=http://127.0.0.1:\d+", line) for line in lines)
    assert any(re.search(r"The queue mlflow is http://127.0.0.1:\d+/\d+/\S+Mlflow", line) for line in lines)
    assert "Nothing was left behind" in lines[-1]
    assert exports({"A": "b c"}) == ["export A='b c'"]


def test_serve_prints_its_address_as_one_line_of_json():
    lines: list[str] = []
    stop = threading.Event()
    stop.set()
    assert serve(as_json=True, write=lines.append, until=stop) == 0
    (line,) = lines
    check_answer(["local", "--json"], line)
    address = json.loads(line)
    assert address["environment"]["AWS_ENDPOINT_URL"] == address["endpoint"]
    assert address["environment"]["SMDEBUG_BUCKET"] == address["bucket"]
    assert (address["stop_queues"], address["export_queues"]) == ({}, {})


def test_a_missing_node_is_reported_with_its_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("JSII_NODE", str(tmp_path / "no-node"))
    with pytest.raises(NotSynthesized, match="make setup"):
        synthesized(cache=tmp_path)


def test_an_assembly_is_made_anew_when_any_file_of_the_template_has_changed():
    read = {file for source in assembly_module.sources_of({}) for file in files_of(source)}
    templates = [file for file in (ROOT / "infra").rglob("*.*") if file.suffix in (".py", ".json")]
    assert ROOT / "infra" / "backtesting" / "backtests.asl.json" in templates
    assert set(templates) <= read


def test_an_assembly_is_kept_while_a_stack_of_another_process_runs_from_it(tmp_path, monkeypatch):
    monkeypatch.setattr(assembly_module, "SYNTHESIZE", "__import__('os').mkdir(sys.argv[2])")
    with holding(synthesized({"stack": "held"}, cache=tmp_path).folder) as held:
        os.utime(held, (0, 0))  # the oldest
        left = synthesized({"stack": "left"}, cache=tmp_path).folder
        os.utime(left, (0, 0))
        others = [synthesized({"stack": f"n{n}"}, cache=tmp_path).folder for n in range(KEPT)]
        assert set(tmp_path.glob("assembly-*")) == {held, *others}
    newest = synthesized({"stack": "newest"}, cache=tmp_path).folder
    assert set(tmp_path.glob("assembly-*")) == {newest, *others[1:]}


@contextlib.contextmanager
def holding(folder: Path) -> Iterator[Path]:
    """Let another process have an assembly of that folder."""
    program = "import sys; from pathlib import Path; from local_aws.deployment.assembly import Assembly\n"
    program += "held = Assembly(Path(sys.argv[1])); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        process.stdout.readline()
        yield folder
        process.stdin.close()
        process.wait()


def test_a_full_disk_during_synthesis_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(
        assembly_module, "SYNTHESIZE", "__import__('pathlib').Path('/dev/full').write_text('x')"
    )
    with pytest.raises(DiskFull, match=re.escape(str(tmp_path))):
        synthesized(cache=tmp_path)


def test_a_full_disk_during_start_is_named_and_everything_is_removed(tmp_path):
    # In another process: what is replaced in moto stays replaced.
    program = (
        "import tempfile\n"
        "from pathlib import Path\n"
        "from local_aws import LocalAws, cloud\n"
        "from local_aws.errors import DiskFull\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "cloud.link_layer = lambda folder: Path('/dev/full').write_text('x')\n"
        "try:\n"
        "    LocalAws(in_process=True).start()\n"
        "except DiskFull as problem:\n"
        "    print(problem)\n"
    )
    output, _ = started(program).communicate(timeout=120)
    assert str(tmp_path) in output
    assert list(tmp_path.glob("smdebug-local-*")) == []


def test_a_folder_that_is_not_writable_is_named(tmp_path):
    place = tmp_path / "checkout"
    place.write_text("a file instead of a folder", encoding="utf-8")
    error = explain_os_error(PermissionError(errno.EACCES, "Permission denied", str(place)), "elsewhere")
    assert isinstance(error, FolderClosed)
    assert str(place) in str(error)
    assert explain_os_error(FileNotFoundError(errno.ENOENT, "No such file"), str(place)) is None


def test_the_examples_of_the_pytest_plugin_in_the_docs_work(tmp_path):
    page = (ROOT / "docs" / "local.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"--basetemp={tmp_path / 'temporary'}", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(), cwd=tmp_path, check=False
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_old_address_has_the_same_names():
    import infra.local
    import infra.local.pytest_plugin
    import local_aws
    import local_aws.pytest_plugin

    for name in local_aws.__all__:
        assert getattr(infra.local, name) is getattr(local_aws, name)
    for name in ("local_aws", "local_debugger"):
        assert getattr(infra.local.pytest_plugin, name) is getattr(local_aws.pytest_plugin, name)


def started(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=ROOT,
    )


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    return {**kept, "PYTHONPATH": os.pathsep.join(map(str, SOURCES))}


def processes_of(folder: str) -> list[int]:
    """The processes with the folder in their environment or on their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            text = (path / "environ").read_bytes() + (path / "cmdline").read_bytes()
        except OSError:
            continue
        if folder.encode() in text:
            found.append(int(path.name))
    return found
