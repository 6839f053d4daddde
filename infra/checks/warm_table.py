"""How many writes a second the new table of the step index takes from its first second on."""

from __future__ import annotations

LEAST_WRITES = 4_000
"""What a new table takes without being asked for."""
MOST_WRITES = 40_000
"""What one table takes unless AWS raises the quota of the account."""
_LEAST_READS = 12_000


def problem_with(writes: int, table: str | None) -> str:
    """Return what is wrong with this setting; empty if nothing is."""
    if writes and not LEAST_WRITES <= writes <= MOST_WRITES:
        return (
            f"table_writes_per_second={writes} is outside {LEAST_WRITES} to {MOST_WRITES}: a new table "
            "takes the first anyway, and one table at most the second. Omit it, or use a number between."
        )
    if writes and table:
        return (
            f"table_writes_per_second={writes} is for a new table, and table={table} exists: omit it, and "
            f"use `aws dynamodb update-table --table-name {table} --warm-throughput …`."
        )
    return ""


def reads_for(writes: int) -> int:
    """Return the reads a second that go with these writes: a step takes about as many of both."""
    return max(_LEAST_READS, writes * 3 // 2)
