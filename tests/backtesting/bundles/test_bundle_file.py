"""The format of bundles: what was written is read, and whatever else an archive says, no more than that."""

from __future__ import annotations

import io
import json
import random
import tracemalloc
import zipfile
import zlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.backtesting.bundles import bundle_file
from smdebug.backtesting.bundles.bundle_file import (
    LARGEST_BUNDLE,
    LARGEST_FILE,
    Bundle,
    BundleWriter,
    bundle_name,
)
from smdebug.exceptions import DamagedFile
from smdebug.storage.versions import Version

RUN = "s3://bucket/team/run"
FILES = {
    "index/000000000/000000000000_worker_0.json": b'{"a": 1}' * 100,
    "events/000000000000/000000000000_worker_0.tfevents": bytes(range(256)) * 9,
    "collections/000000000/größe_collections.json": b"",
}


def versions_of(files: Mapping[str, bytes], tag: str = "tag") -> dict[str, Version]:
    return {key: Version(key, len(content), f"{tag} {key}") for key, content in files.items()}


VERSIONS = versions_of(FILES)


def written(files: Mapping[str, bytes] = FILES, run: str = RUN) -> bytes:
    writer = BundleWriter(run)
    for version in versions_of(files).values():
        writer.add(version, files[version.key])
    return bytes(writer.packed())


def archive(*members: tuple[str, bytes], run: str = RUN, size: int | None = None) -> bytes:
    """Return an archive that somebody else made."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.comment = json.dumps({"format": 1, "run": run}).encode()
        for key, content in members:
            member = zipfile.ZipInfo(key)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.comment = f"tag {key}".encode()
            made.writestr(member, content)
            if size is not None:
                member.file_size = size
    return file.getvalue()


def test_what_was_bundled_is_read():
    bundle = Bundle(written(), RUN, VERSIONS)
    assert {version.key: bundle.read(version.key) for version in bundle.versions()} == FILES
    assert len(bundle) == len(FILES)
    assert "index/of/nothing.json" not in bundle


def test_any_unzip_makes_the_run_of_it():
    with zipfile.ZipFile(io.BytesIO(written())) as opened:
        assert opened.testzip() is None
        assert {name: opened.read(name) for name in opened.namelist()} == FILES
        assert json.loads(opened.comment) == {"format": 1, "run": RUN}


@pytest.mark.parametrize("changed", [Version("", 0, "another"), Version("", 1, "")])
def test_a_file_that_is_not_as_it_was_or_not_there_is_not_in_it(changed: Version):
    first, second, _ = FILES
    now = {**VERSIONS, first: VERSIONS[first]._replace(tag=changed.tag or VERSIONS[first].tag)}
    now[first] = now[first]._replace(size=now[first].size + changed.size)
    del now[second]
    assert [version.key for version in Bundle(written(), RUN, now).versions()] == list(FILES)[2:]


def test_a_bundle_of_another_run_is_refused():
    with pytest.raises(DamagedFile, match="it is of another run"):
        Bundle(written(run="s3://bucket/other/run"), RUN, VERSIONS)


def test_files_of_other_runs_and_names_that_lead_elsewhere_are_never_looked_up():
    hostile = ["/etc/passwd", "../other/index/a.json", "index/../../x.json", "a\\b"]
    bundle = Bundle(archive(*((key, b"x") for key in hostile)), RUN, VERSIONS)
    assert len(bundle) == 0


def test_a_file_that_is_there_twice_is_refused():
    key = next(iter(FILES))
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = archive((key, FILES[key]), (key, FILES[key]))
    with pytest.raises(DamagedFile, match="twice"):
        Bundle(twice, RUN, VERSIONS)


def test_a_member_that_unpacks_to_more_than_the_file_has_is_refused_before_it_is_unpacked():
    key = "index/bomb.json"
    bomb = archive((key, bytes(200 << 20)), size=100)
    assert len(bomb) < 1 << 20
    bundle = Bundle(bomb, RUN, {key: Version(key, 100, f"tag {key}")})
    tracemalloc.start()
    try:
        with pytest.raises(DamagedFile, match="is not what was bundled"):
            bundle.read(key)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_directory_of_many_members_needs_no_more_memory_than_the_run():
    many = archive(*((f"index/{number}.json", b"") for number in range(60_000)))
    tracemalloc.start()
    try:
        assert len(Bundle(many, RUN, VERSIONS)) == 0
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_bundle_that_is_too_large_is_refused():
    with pytest.raises(DamagedFile, match="a bundle has up to"):
        Bundle(bytes(LARGEST_BUNDLE + 1), RUN, VERSIONS)


@pytest.mark.parametrize("there", [0, 1, 21, 22, 100, -1, -30])
def test_the_beginning_of_a_bundle_is_refused(there: int):
    with pytest.raises(DamagedFile, match="The bundle of s3://bucket/team/run"):
        Bundle(written()[:there], RUN, VERSIONS)


@given(st.data())
def test_a_bundle_with_any_byte_changed_gives_the_file_or_an_error(data: st.DataObject):
    damaged = bytearray(written())
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        bundle = Bundle(bytes(damaged), RUN, VERSIONS)
    except DamagedFile:
        return
    for key in FILES.keys() & {version.key for version in bundle.versions()}:
        try:
            content = bundle.read(key)
        except DamagedFile:
            continue
        assert zlib.crc32(content) == zlib.crc32(FILES[key])


def test_what_is_too_large_stays_outside(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bundle_file, "LARGEST_BUNDLE", 100_000 + 0xFFFF)
    noise = random.Random(0).randbytes(40 << 10)
    writer = BundleWriter(RUN)
    for number in range(4):
        writer.add(Version(f"index/{number}.json", len(noise), "t"), noise)
    writer.add(Version("index/large.json", LARGEST_FILE + 1, "t"), bytes(LARGEST_FILE + 1))
    assert len(writer.packed()) <= bundle_file.LARGEST_BUNDLE
    assert len(writer) == 2
    assert "index/large.json" not in writer


def test_names_of_bundles_are_those_of_no_run_below_another():
    names = {bundle_name(run) for run in ("s3://b/a", "s3://b/a/plan", "s3://b/a/rows/000001", "s3://c/a")}
    assert len(names) == 4
    assert all(len(name) == 32 and "/" not in name for name in names)
