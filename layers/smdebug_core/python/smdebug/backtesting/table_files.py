"""The table as a file: JSON, parquet, or a page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any

from smdebug.backtesting.backtest import Backtest
from smdebug.backtesting.rows import COLUMNS, Row
from smdebug.exceptions import SMDebugCustomerError, SMDebugValueError
from smdebug.extras import install_command
from smdebug.storage.whole_file import whole_file

_TEXTS = ("run", "rule", "status", "first_finding", "note", "statistic", "label", "changed", "status_before")
_AT_ONCE = 10_000  # rows in memory
_NUMBERS = ("seconds", "lowest", "highest", "limit")


def check_output(file: str | os.PathLike[str]) -> None:
    """Raise `SMDebugValueError` if the name of the file does not say what it is to hold."""
    if Path(file).suffix.lower() not in _WRITERS:
        raise SMDebugValueError(f"{os.fspath(file)}: the name must end in {', '.join(_WRITERS)}")


def write_table(table: Backtest, file: str | os.PathLike[str]) -> None:
    """Write the table, whole or not at all, in the form that the name of the file says."""
    check_output(file)
    with whole_file(file) as place:
        _WRITERS[Path(file).suffix.lower()](table, Path(place))


def json_parts(
    about: Mapping[str, Any],
    rows: Iterable[Row],
    text_of: Callable[[Any], str],
) -> Iterator[str]:
    """Yield a JSON document: what is about the table, and its rows, which are never in memory together."""
    yield text_of(about).removesuffix("\n}") + ',\n  "rows": ['
    before = "\n"
    for row in rows:
        yield before + indent(text_of(row.to_dict()), "    ")
        before = ",\n"
    yield "\n  ]\n}\n"


def _write_json(table: Backtest, file: Path) -> None:
    with file.open("w", encoding="utf-8") as lines:
        lines.writelines(json_parts(table.about(), table.rows, partial(json.dumps, indent=2)))


def _write_page(table: Backtest, file: Path) -> None:
    from smdebug.backtesting.page import page_of

    file.write_text(page_of(table), encoding="utf-8", errors="replace")


def _write_parquet(table: Backtest, file: Path) -> None:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise SMDebugCustomerError(f"Writing parquet needs the extra: {install_command('export')}") from error
    types = {**dict.fromkeys(_TEXTS, arrow.string()), **dict.fromkeys(_NUMBERS, arrow.float64())}
    schema = arrow.schema([(name, types.get(name, arrow.int64())) for name in COLUMNS])
    with parquet.ParquetWriter(file.as_posix(), schema) as content:
        for start in range(0, len(table.rows), _AT_ONCE):
            some = [row.to_dict() for row in table.rows[start : start + _AT_ONCE]]
            content.write_table(arrow.Table.from_pylist(some, schema=schema))


_WRITERS: dict[str, Callable[[Backtest, Path], None]] = {
    ".json": _write_json,
    ".parquet": _write_parquet,
    ".html": _write_page,
}
