"""The format of a bundle: a plain zip with small files of one run, each under its key, with its version.

`unzip` makes a folder of it that is the run, without what was too large or never read. The comment of a
member is the tag of the file's version, and that of the archive names the run.

A bundle is read as if a stranger had made it. Only the files that a listing of the run shows are looked up,
each in the version that the listing shows, and no more bytes are decompressed than it has. Nothing is
extracted, and no name in the archive is ever used as a path.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from smdebug.exceptions import DamagedFile
from smdebug.storage import Buffer
from smdebug.storage.versions import Version

LARGEST_FILE = 1 << 20
"""Bytes. Trials read larger ones in parts."""
LARGEST_BUNDLE = 100 << 20
"""Bytes, of its files and of itself: they are held in memory while it is written."""
MOST_FILES = 65_000
"""With more, an archive has another structure."""
_FORMAT = 1

_END = struct.Struct("<4s4H2LH")
_MEMBER = struct.Struct("<4s4x2H4x3L3H8xL")
_BEFORE_DATA = struct.Struct("<4s22x2H")
_LONGEST_COMMENT = 0xFFFF
_ENCRYPTED = 1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def bundle_name(location: str) -> str:
    """Return the name of a run's bundle: a digest, so that no part of it can be chosen by naming a run."""
    return hashlib.sha256(location.encode()).hexdigest()[:32]  # short: session policies hold it


class BundleWriter:
    """Collects files of a run until the bundle is full, beside those that an earlier bundle has."""

    def __init__(self, location: str, earlier: Bundle | None = None):
        self._location = location
        self._earlier = earlier
        self._bytes = _LONGEST_COMMENT
        self._number = 0
        self._files: dict[str, tuple[Version, Buffer]] = {}
        for version in earlier.versions() if earlier is not None else ():
            self._count(version)

    def __len__(self) -> int:
        """Return how many files it has that the earlier bundle lacks."""
        return len(self._files)

    def __contains__(self, key: str) -> bool:
        return key in self._files

    def add(self, version: Version, content: Buffer) -> None:
        """Add a file, unless it is too large, there already, or the bundle would become too large."""
        if version.size > LARGEST_FILE or version.key in self._files:
            return
        if self._number < MOST_FILES and self._bytes + _room_of(version) <= LARGEST_BUNDLE:
            self._count(version)
            self._files[version.key] = version, content

    def packed(self) -> bytes:
        """Return the bundle, without files that are damaged in the earlier one."""
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.comment = json.dumps({"format": _FORMAT, "run": self._location}).encode()
            for version, content in self._contents():
                member = zipfile.ZipInfo(version.key)
                member.compress_type = zipfile.ZIP_DEFLATED
                member.comment = version.tag.encode()
                archive.writestr(member, content)
        return file.getvalue()

    def _contents(self) -> Iterator[tuple[Version, bytes]]:
        for version, content in self._files.values():
            yield version, bytes(content)
        if self._earlier is not None:
            yield from self._earlier.sound_files(without=self._files)

    def _count(self, version: Version) -> None:
        self._number += 1
        self._bytes += _room_of(version)


def _room_of(version: Version) -> int:
    """Return the bytes that a file may take: its own, its name, three times, its tag, and its numbers."""
    return version.size + version.size // 1000 + 3 * len(version.key.encode()) + len(version.tag) + 200


class _Member(NamedTuple):
    """What the directory says of a member."""

    sign: bytes
    flags: int
    method: int
    checksum: int
    length: int
    """Bytes in the archive."""
    size: int
    """Bytes when unpacked."""
    name: int
    extra: int
    comment: int
    """The lengths of what follows."""
    start: int


class _Place(NamedTuple):
    """Where the archive has a file of the run."""

    member: _Member
    version: Version


class Bundle:
    """The files of a bundle that are in the run as it is now; `DamagedFile` if it is no bundle of the run."""

    def __init__(self, archive: Buffer, location: str, versions: Mapping[str, Version]):
        self._archive = memoryview(archive)
        self._location = location
        try:
            self._places = self._places_in(versions)
        except (struct.error, UnicodeDecodeError) as problem:
            raise self._damage(f"its directory cannot be read ({problem})") from None

    def __len__(self) -> int:
        return len(self._places)

    def versions(self) -> Iterator[Version]:
        return (place.version for place in self._places.values())

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def sound_files(self, without: Container[str]) -> Iterator[tuple[Version, bytes]]:
        """Yield its files, but these and those that are damaged."""
        for key, place in self._places.items():
            if key not in without:
                try:
                    content = self.read(key)
                except DamagedFile:
                    continue
                yield place.version, content

    def read(self, key: str) -> bytes:
        """Return the content of a file that it has; `DamagedFile` if it is not as long as in the run."""
        member, version = self._places[key]
        try:
            sign, name, extra = _BEFORE_DATA.unpack_from(self._archive, member.start)
            begin = member.start + _BEFORE_DATA.size + name + extra
            packed = self._archive[begin : begin + member.length]
            content = _unpacked(packed, member.method, version.size)
        except (struct.error, zlib.error) as problem:
            raise self._damage(f"{key} cannot be read ({problem})") from None
        if sign != b"PK\3\4" or len(content) != version.size or zlib.crc32(content) != member.checksum:
            raise self._damage(f"{key} is not what was bundled")
        return content

    def _places_in(self, versions: Mapping[str, Version]) -> dict[str, _Place]:
        if len(self._archive) > LARGEST_BUNDLE:
            raise self._damage(f"it is too large, for a bundle has up to {LARGEST_BUNDLE:,} bytes")
        number, start = self._end()
        places: dict[str, _Place] = {}
        for _ in range(number):
            member = _Member(*_MEMBER.unpack_from(self._archive, start))
            if member.sign != b"PK\1\2":
                raise self._damage("its directory is not where it should be")
            start += _MEMBER.size
            key = bytes(self._archive[start : start + member.name]).decode()
            start += member.name + member.extra
            tag = bytes(self._archive[start : start + member.comment]).decode()
            start += member.comment
            version = versions.get(key)
            if version is None or version != (key, member.size, tag) or version.size > LARGEST_FILE:
                continue  # it was written anew since, or is no file of the run
            if key in places:
                raise self._damage(f"it has {key} twice")
            if member.flags & _ENCRYPTED or member.method not in _METHODS:
                raise self._damage(f"{key} is encrypted, or compressed in an unknown way")
            places[key] = _Place(member, version)
        return places

    def _end(self) -> tuple[int, int]:
        """Return the number of members and where their directory begins, if it is a bundle of this run."""
        first = max(0, len(self._archive) - _END.size - _LONGEST_COMMENT)
        found = bytes(self._archive[first:]).rfind(b"PK\5\6")
        if found < 0:
            raise self._damage("it has no end, so it is no archive or only the beginning of a bundle")
        *_, number, _, start, length = _END.unpack_from(self._archive, first + found)
        comment = self._archive[first + found + _END.size :]
        about = None
        with suppress(ValueError):
            about = json.loads(bytes(comment[:length]))
        if about != {"format": _FORMAT, "run": self._location}:
            raise self._damage("it is of another run, or of another version of the library")
        return number, start

    def _damage(self, problem: str) -> DamagedFile:
        return DamagedFile(f"The bundle of {self._location}", problem)


def _unpacked(packed: memoryview, method: int, size: int) -> bytes:
    """Return the bytes, one more than `size` at most: a longer member is noticed, but not unpacked."""
    if method == zipfile.ZIP_STORED:
        return bytes(packed[: size + 1])
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1)
