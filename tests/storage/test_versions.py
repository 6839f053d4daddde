"""The listing of versions that memory, a local folder and S3 share."""

from __future__ import annotations

from smdebug.storage import Storage
from smdebug.storage.versions import ListsVersions


def test_a_listing_of_versions_has_sizes_and_tags_that_change_with_the_object(storage: Storage):
    assert isinstance(storage, ListsVersions)
    for name in "ab":
        storage.write(f"index/{name}.json", b"first")
    storage.write("events/c", b"first")
    before = list(storage.versions("index/"))
    assert [(version.key, version.size) for version in before] == [("index/a.json", 5), ("index/b.json", 5)]
    assert list(storage.versions("index/")) == before
    storage.write("index/a.json", b"other")
    changed, same = storage.versions("index/")
    assert changed.tag != before[0].tag
    assert same == before[1]
    assert list(storage.versions("nothing/")) == []
