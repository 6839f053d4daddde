"""The same over a real connection: what botocore makes of our request bodies, and what a fork does."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import boto3
import pytest
from botocore.config import Config
from moto.server import ThreadedMotoServer

from smdebug.exceptions import ObjectMissing, StorageUnavailable
from smdebug.storage import ByteSpan, open_storage
from smdebug.storage.s3 import S3Storage
from smdebug.storage.s3_upload import ONE_PUT_UP_TO, PART
from tests.support.mocked_aws import CREDENTIALS

MB = 1 << 20


@pytest.fixture(scope="module")
def endpoint():
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def run(endpoint, monkeypatch):
    where = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": endpoint}
    for name, value in {**CREDENTIALS, **where}.items():
        monkeypatch.setenv(name, value)
    boto3.session.Session().client("s3").create_bucket(Bucket="runs")
    return open_storage("s3://runs/my run +%41 ü")


@pytest.mark.parametrize("size", [0, 1, 100_000, 3 * MB + 1])
def test_an_object_arrives_as_it_was_sent(run, size):
    data = os.urandom(size)
    run.write("events/one put +%41 ü", data)
    sink = run.create("events/sink")
    sink.write([data[: size // 2], bytearray(data[size // 2 :])])
    sink.commit()
    for key in ("events/one put +%41 ü", "events/sink"):
        assert run.read(key) == run.view(key) == data
        assert run.view(key, ByteSpan(1, size // 2 + 1)) == data[1 : size // 2 + 1]


def test_a_large_object_arrives_in_parts(run):
    block = os.urandom(MB)
    sink = run.create("events/large")
    for _ in range(3 * PART // MB):
        sink.write([block])
    sink.write([b"end"])
    sink.commit()
    assert run.size("events/large") == 3 * PART + 3 > ONE_PUT_UP_TO
    assert run.read("events/large", ByteSpan(2 * PART, 2 * PART + MB)) == block
    assert run.read("events/large", ByteSpan(3 * PART, 2**50)) == b"end"


def test_what_is_missing_is_missing(run):
    with pytest.raises(ObjectMissing):
        run.view("nowhere")
    with pytest.raises(ObjectMissing):
        run.size("nowhere")
    assert not run.exists("nowhere")


def test_a_forked_process_opens_connections_of_its_own(run):
    script = """
        import os
        from smdebug.storage import open_storage
        run = open_storage("s3://runs/forked")
        run.write("parent", b"1")
        child = os.fork()
        if not child:
            run.write("child", run.read("parent"))
            os._exit(0)
        for _ in range(20):
            assert run.read("parent") == b"1"
        assert os.waitpid(child, 0)[1] == 0
        assert list(run.list("")) == ["child", "parent"]
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=environment, check=True, timeout=60)


def test_nobody_there_is_worth_another_try(run, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    client = boto3.session.Session().client("s3", config=Config(retries={"total_max_attempts": 1}))
    with pytest.raises(StorageUnavailable, match="cannot be reached"):
        S3Storage("runs", "x", client).read("x")
