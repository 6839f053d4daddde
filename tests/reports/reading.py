"""The data in a report, as the page reads it."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np

DATA = re.compile(r'<script type="application/json" id="answers">(.*?)</script>', re.DOTALL)


def data_in(page: str) -> dict[str, Any]:
    """Return what the page is given: its run, and the answers by address."""
    found = DATA.search(page)
    assert found
    return json.loads(found[1])


def answer_in(page: str, what: str = "") -> Any:
    """Return an answer about the run of a report: `series/loss`, `about`, or the run itself."""
    data = data_in(page)
    return data["answers"]["/".join(filter(None, ("run", data["run"], what)))]


def statistic_in(page: str, kind: str, statistic: str, *, part: str = "low") -> dict[str, list[float]]:
    """Return a statistic of every tensor of a kind over the columns."""
    block = answer_in(page, f"kind/{kind}")
    numbers = np.frombuffer(base64.b64decode(block[part] or block["low"]), "<f4")
    shape = len(block["statistics"]), len(block["names"]), len(block["first"])
    rows = numbers.reshape(shape)[block["statistics"].index(statistic)]
    return {name: row.tolist() for name, row in zip(block["names"], rows, strict=True)}
