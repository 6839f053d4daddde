"""The format of a rule's saved state: what the encoder and the decoder share.

The bytes are a header, a JSON part, and one npz file if there are larger arrays.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from smdebug.exceptions import SMDebugValueError

STATE_LIMIT = 64 * 1024 * 1024
STATE_FORMAT = 1
MAGIC = b"smdebug-state %d " % STATE_FORMAT
HEADER = len(MAGIC) + 11  # the length of the JSON part in ten digits, and a newline

# Types that npz does not know, such as bfloat16: stored as the integers of their bits.
FOREIGN_TYPES = frozenset(
    (
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3b11fnuz",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
    )
)
PLAIN_KINDS = "biufcSUmM"  # numpy kinds that are stored as they are

FACTORIES: Mapping[str, Callable[[], Any] | None] = {
    "None": None,
    "list": list,
    "dict": dict,
    "set": set,
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "tuple": tuple,
    "OrderedDict": OrderedDict,
    "Counter": Counter,
}


def size_error(rule_name: str, size: int) -> SMDebugValueError:
    """Return the error for a state of at least `size` bytes."""
    return SMDebugValueError(
        f"The state of rule {rule_name} exceeds {STATE_LIMIT >> 20} MB "
        f"({size >> 20} MB or more). Keep a summary of each tensor in the rule, not the whole tensor."
    )
