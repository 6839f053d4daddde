"""The packages of Lambda's runtime and of the layer, as folders of links to what is installed here.

A handler can import these, its asset and the layer's sources, and nothing else of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from local_aws.errors import LocalStackError

ROOT = Path(__file__).parents[2]
RUNTIME = ("awslambdaric", "boto3")
LAYER_LOCK = ROOT / "requirements" / "layer.in"


def link_runtime(folder: Path) -> None:
    """Fill a folder in place of /var/runtime: the runtime client and boto3."""
    _link(folder, _with_dependencies(RUNTIME))


def link_layer(folder: Path) -> None:
    """Fill a folder with the wheels of /opt/python, named in `requirements/layer.in`."""
    lines = LAYER_LOCK.read_text(encoding="utf-8").splitlines()
    names = [match[0] for line in lines if (match := re.match(r"[\w.-]+", line))]
    _link(folder, _with_dependencies(names))


def _with_dependencies(names: Iterable[str]) -> list[metadata.Distribution]:
    found: dict[str, metadata.Distribution] = {}
    wanted = list(names)
    while wanted:
        name = re.sub(r"[-_.]+", "-", wanted.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            raise LocalStackError(
                f"{name} is not installed, but the handlers need it: run `make setup`"
            ) from None
        wanted += [
            re.split(r"[\s;<>=!~(\[]", line)[0]
            for line in found[name].requires or []
            if "extra ==" not in line and not re.search(r"python_version\s*<", line)
        ]
    return list(found.values())


def _link(folder: Path, distributions: Iterable[metadata.Distribution]) -> None:
    folder.mkdir(parents=True)
    for distribution in distributions:
        for file in distribution.files or []:
            parts = file.parts
            if parts[0] in ("..", "__pycache__") or file.suffix == ".pth":
                continue
            # Several distributions share `google`: link its subfolders.
            depth = 2 if parts[0] == "google" and len(parts) > 1 else 1
            place = folder.joinpath(*parts[:depth])
            if not place.is_symlink():
                place.parent.mkdir(exist_ok=True)
                whole = Path(str(distribution.locate_file(file)))
                place.symlink_to(whole.parents[len(parts) - depth - 1] if len(parts) > depth else whole)
