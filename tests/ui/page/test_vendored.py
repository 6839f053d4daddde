"""What is vendored is what was published: to replace a file, take it from the npm package and its hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

import smdebug.ui

FOLDER = Path(smdebug.ui.__file__).parent / "page" / "vendored"
PUBLISHED = {  # of uplot 1.6.32
    "uplot-1.6.32.esm.js": ("5dd9b3281aa64b461b42d9945f6adb2649d346502b12281a9ae0d46599a80eba"),
    "uplot-1.6.32.min.css": ("df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"),
    "uplot-LICENSE.txt": ("8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"),
}


def test_each_vendored_file_is_as_published():
    files = [file for file in FOLDER.iterdir() if not file.name.endswith(".d.ts")]  # ours
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    assert found == PUBLISHED
