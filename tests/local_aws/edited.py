"""An assembly with a change to its template."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local_aws.deployment.assembly import Assembly


def edited(assembly: Assembly, folder: Path, change: Callable[[dict[str, Any]], None]) -> Assembly:
    """Return a copy in that folder whose resources `change` has changed."""
    shutil.copytree(assembly.folder, folder, symlinks=True)
    file = folder / "smdebug.template.json"
    template = json.loads(file.read_text())
    change(template["Resources"])
    file.write_text(json.dumps(template))
    return Assembly(folder)
