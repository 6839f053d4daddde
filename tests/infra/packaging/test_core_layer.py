"""The contents of the layer, and when it is rebuilt. `make layer-check` builds it, twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.packaging import core_layer
from infra.packaging.assets import bundle, copied
from infra.packaging.core_layer import LOCK, SOURCES, LayerBuildError, install
from infra.packaging.fingerprints import fingerprint_of
from infra.settings import Architecture


def test_a_fingerprint_does_not_depend_on_the_folder(tmp_path: Path):
    for place in ("here", "there"):
        (tmp_path / place / "room").mkdir(parents=True)
        (tmp_path / place / "room" / "a.py").write_text("1")
    here, there = tmp_path / "here" / "room", tmp_path / "there" / "room"
    assert fingerprint_of([here], "3.13") == fingerprint_of([there], "3.13")
    (there / "__pycache__").mkdir()
    (there / "__pycache__" / "a.pyc").write_text("x")
    assert fingerprint_of([here], "3.13") == fingerprint_of([there], "3.13")


@pytest.mark.parametrize("change", ["content", "name", "another"])
def test_any_change_of_a_source_changes_the_fingerprint(tmp_path: Path, change: str):
    (tmp_path / "a.py").write_text("1")
    before = fingerprint_of([tmp_path])
    match change:
        case "content":
            (tmp_path / "a.py").write_text("2")
        case "name":
            (tmp_path / "a.py").rename(tmp_path / "b.py")
        case "another":
            (tmp_path / "b.py").write_text("1")
    assert fingerprint_of([tmp_path]) != before


def test_each_processor_has_its_own_layer():
    assert fingerprint_of([LOCK], "arm64") != fingerprint_of([LOCK], "x86_64")


def test_only_sources_are_copied(tmp_path: Path):
    copied(*SOURCES)(tmp_path / "python")
    assert {path.name for path in (tmp_path / "python").iterdir()} == {
        "smdebug",
        "tornasole",
        "tornasole_rules",
        "smdebug_rules",
        "smdebug_default_rules",
    }
    assert not list(tmp_path.rglob("*.pyc"))
    assert (tmp_path / "python" / "smdebug_rules" / "py.typed").exists()


def test_a_bundle_is_filled_once_and_without_docker(tmp_path: Path):
    import aws_cdk as cdk
    from aws_cdk import aws_lambda as lambda_

    (tmp_path / "source").mkdir()
    filled: list[Path] = []

    def fill(target: Path) -> None:
        filled.append(target)
        (target / "a.txt").write_text("a")

    app = cdk.App(outdir=str(tmp_path / "out"), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Stack")
    for name in ("One", "Two"):
        lambda_.LayerVersion(stack, name, code=bundle(tmp_path / "source", fill, "1234"))
    app.synth()
    assert len(filled) == 1
    assert len(list((tmp_path / "out").glob("asset.*/a.txt"))) == 1


def test_every_requirement_in_the_lock_has_a_hash_and_no_url():
    text = LOCK.read_text(encoding="utf-8")
    names = re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE)
    assert {"numpy", "protobuf", "crc32c", "ml-dtypes"} <= set(names)
    assert not {"boto3", "botocore", "torch"} & set(names)
    assert len(re.findall(r"^[a-z0-9-]+==[^\n]+\\\n +--hash=", text, re.MULTILINE)) == len(names)
    assert "://" not in text


def test_a_failed_layer_build_names_the_command(tmp_path: Path):
    lock = tmp_path / "lock.txt"
    lock.write_text("no-such-thing @ file:///no/such/place.whl --hash=sha256:" + "0" * 64)
    with pytest.raises(LayerBuildError, match=r"uv pip install(.|\n)*failed with"):
        install(lock, tmp_path / "python", Architecture.ARM64)


def test_a_too_large_layer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(core_layer, "install", lambda lock, target, architecture: None)
    monkeypatch.setattr(core_layer, "MOST_MEGABYTES", 0.1)
    with pytest.raises(LayerBuildError, match=r"at most 0\.1 MB are allowed"):
        core_layer.build(tmp_path, Architecture.ARM64)
