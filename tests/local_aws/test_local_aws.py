"""The stack on this machine: it starts or says why not, and leaves nothing behind whatever ends it."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from local_aws import LocalAws, LocalDebugger
from local_aws import assembly as making
from local_aws.assembly import Assembly, synthesized
from local_aws.errors import (
    DiskFull,
    FolderClosed,
    NotSynthesized,
    PortTaken,
    Unsupported,
    in_words,
)
from local_aws.serve import exports, serve
from tests.e2e.test_rules import COUNTING
from tests.functions.saver import ILL, Saver

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT, ROOT / "layers" / "smdebug_core" / "python", ROOT / "rules"]


@pytest.fixture(scope="module")
def assembly() -> Assembly:
    return synthesized()


def edited(assembly: Assembly, folder: Path, change) -> Assembly:
    shutil.copytree(assembly.folder, folder, symlinks=True)
    file = folder / "smdebug.template.json"
    template = json.loads(file.read_text())
    change(template["Resources"])
    file.write_text(json.dumps(template))
    return Assembly(folder)


def of_type(resources, kind: str):
    return next(one for one in resources.values() if one["Type"] == kind)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda all_: all_.update(Vpc={"Type": "AWS::EC2::VPC"}), "AWS::EC2::VPC"),
        (
            lambda all_: of_type(all_, "AWS::SQS::Queue")["Properties"].update(FifoQueue=True),
            "FifoQueue",
        ),
        (
            lambda all_: of_type(all_, "AWS::SNS::Topic")["Properties"].update(
                DisplayName={"Fn::ImportValue": "x"}
            ),
            "Fn::ImportValue",
        ),
    ],
)
def test_a_template_that_uses_something_unknown_is_not_deployed(assembly, tmp_path, change, named):
    with (
        pytest.raises(Unsupported, match=named),
        LocalAws(assembly=edited(assembly, tmp_path / "edited", change)),
    ):
        pass


def test_a_permission_that_is_missing_refuses_the_call(assembly, tmp_path):
    def without_reading(resources):
        for one in resources.values():
            if one["Type"] == "AWS::IAM::Policy":
                for statement in one["Properties"]["PolicyDocument"]["Statement"]:
                    if statement["Action"] == "states:StartExecution":
                        statement["Action"] = "states:StopExecution"

    with LocalAws(assembly=edited(assembly, tmp_path / "edited", without_reading)) as aws:
        debugger = LocalDebugger(aws)
        Saver(debugger.storage("run")).begin().save(0, ILL)
        aws.wait_until(aws.refused, what="the refusal")
        assert "may not states:StartExecution" in aws.refused()[0]
        assert not aws.invocations("evaluate")


def test_a_port_that_is_taken_is_named(assembly):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=str(port)), LocalAws(assembly=assembly, port=port):
            pass


def test_two_stacks_know_nothing_of_each_other(assembly):
    with LocalAws(assembly=assembly) as one, LocalAws(assembly=assembly) as other:
        one.client("s3").put_object(Bucket=one.bucket, Key="x", Body=b"")
        assert one.endpoint != other.endpoint
        assert not other.client("s3").list_objects_v2(Bucket=other.bucket).get("Contents")


def test_a_stack_that_is_killed_leaves_nothing_behind(assembly):
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
    until = time.monotonic() + 20
    while time.monotonic() < until and (Path(folder).exists() or processes_of(folder)):
        time.sleep(0.05)
    assert not Path(folder).exists()
    assert not processes_of(folder)


def test_the_handlers_run_in_this_process_if_asked_to():
    program = (
        "import sys\n"
        "from local_aws import LocalAws, LocalDebugger\n"
        "from tests.functions.saver import ILL, Saver\n"
        "with LocalAws(in_process=True) as aws:\n"
        "    debugger = LocalDebugger(aws)\n"
        "    debugger.attach('run', ['ExplodingTensor'])\n"
        "    Saver(debugger.storage('run')).begin().save(0, ILL)\n"
        "    debugger.wait('run', through=0)\n"
        "    print([one.rule for one in debugger.findings('run')])\n"
        "    print('functions.evaluation.built_in' in sys.modules)\n"
    )
    said, _ = started(program).communicate(timeout=120)
    assert said.splitlines()[-2:] == ["['ExplodingTensor']", "True"]


def test_a_webhook_gets_the_findings_with_its_token():
    got = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.headers["x-smdebug-token"], json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    secret = {"url": f"http://127.0.0.1:{server.server_address[1]}/hook", "token": "secret"}
    try:
        with LocalAws({"webhook_secret": "pager"}, secrets={"pager": secret}) as aws:
            debugger = LocalDebugger(aws)
            debugger.attach("run", ["ExplodingTensor"])
            Saver(debugger.storage("run")).begin().save(0, ILL)
            found = "Rule Evaluation Condition Met"

            def told():
                return [one for one in got if one[1]["detail-type"] == found]

            token, event = aws.wait_until(told, what="the post to the webhook")[0]
            assert (token, event["detail"]["rule"]) == ("secret", "ExplodingTensor")
            assert aws.refused() == []
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_bucket_that_was_there_and_rules_of_a_folder_are_watched_all_the_same(tmp_path):
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
        debugger.attach("run", [rule, "ExplodingTensor"])  # the later one counts
        saver = Saver(debugger.storage("run")).begin()
        saver.save(0)
        saver.save(1, ILL)
        run = debugger.wait("run", through=1)
        assert {(one.step, one.rule) for one in run.findings()} == {
            (1, "Counting"),
            (1, "ExplodingTensor"),
        }
        assert aws.refused() == []


def test_a_stack_that_is_kept_up_says_what_to_set():
    said: list[str] = []
    stop = threading.Event()
    thread = threading.Thread(target=serve, kwargs={"say": said.append, "until": stop})
    thread.start()
    until = time.monotonic() + 60
    while not any("Ctrl-C" in line for line in said) and time.monotonic() < until:
        time.sleep(0.05)
    stop.set()
    thread.join(30)
    assert any(re.search(r"export AWS_ENDPOINT_URL=http://127.0.0.1:\d+", line) for line in said)
    assert "Nothing was left behind" in said[-1]
    assert exports({"A": "b c"}) == ["export A='b c'"]


def test_a_stack_that_is_up_tells_a_program_where_it_is_in_one_line():
    said: list[str] = []
    stop = threading.Event()
    stop.set()
    assert serve(as_json=True, say=said.append, until=stop) == 0
    (line,) = said
    told = json.loads(line)
    assert told["environment"]["AWS_ENDPOINT_URL"] == told["endpoint"]
    assert told["environment"]["SMDEBUG_BUCKET"] == told["bucket"]


def test_without_node_it_is_said_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("JSII_NODE", str(tmp_path / "no-node"))
    with pytest.raises(NotSynthesized, match="make setup"):
        synthesized(cache=tmp_path)


def test_a_disk_that_is_full_at_synthesis_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(
        making, "SYNTHESIZE", "__import__('pathlib').Path('/dev/full').write_text('x')"
    )
    with pytest.raises(DiskFull, match=re.escape(str(tmp_path))):
        synthesized(cache=tmp_path)


def test_a_disk_that_is_full_when_the_stack_starts_is_named_and_all_is_removed(tmp_path):
    # In a process of its own: what is replaced in moto stays replaced.
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
    said, _ = started(program).communicate(timeout=120)
    assert str(tmp_path) in said
    assert [one for one in tmp_path.iterdir() if one.name.startswith("smdebug-local-")] == []


def test_a_folder_that_may_not_be_written_to_is_named(tmp_path):
    place = tmp_path / "checkout"
    place.write_text("a file where a folder has to be", encoding="utf-8")
    told = in_words(PermissionError(errno.EACCES, "Permission denied", str(place)), "elsewhere")
    assert isinstance(told, FolderClosed)
    assert str(place) in str(told)
    assert in_words(FileNotFoundError(errno.ENOENT, "No such file"), str(place)) is None


def test_the_page_tells_how_rules_are_tested_with_the_plugin(tmp_path):
    page = (ROOT / "docs" / "local.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(), cwd=tmp_path, check=False
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


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
    """Those that have the folder in their environment or on their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            told = (path / "environ").read_bytes() + (path / "cmdline").read_bytes()
        except OSError:
            continue
        if folder.encode() in told:
            found.append(int(path.name))
    return found
