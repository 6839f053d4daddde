"""Tables of neptune-exporter."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from smdebug.exceptions import DamagedFile
from smdebug.importing.finding import find_runs
from tests.importing.logs import by_name, read

SCHEMA = arrow.schema(
    [
        ("project_id", arrow.string()),
        ("run_id", arrow.string()),
        ("attribute_path", arrow.string()),
        ("attribute_type", arrow.string()),
        ("step", arrow.decimal128(18, 6)),
        ("timestamp", arrow.timestamp("ms", tz="UTC")),
        ("int_value", arrow.int64()),
        ("float_value", arrow.float64()),
        ("string_value", arrow.string()),
        ("bool_value", arrow.bool_()),
    ]
)
AT = datetime(2025, 11, 22, 10, tzinfo=UTC)


def row(run: str, path: str, kind: str, **values: Any) -> dict[str, Any]:
    return {"project_id": "p", "run_id": run, "attribute_path": path, "attribute_type": kind, **values}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    parquet.write_table(arrow.Table.from_pylist(rows, schema=SCHEMA), path)
    return path


def test_each_run_of_the_tables_is_found_with_series_and_configuration(tmp_path):
    series = [
        row(run, "train/loss", "float_series", step=Decimal(step), float_value=2.0 - step, timestamp=AT)
        for run in ("RUN-1", "RUN-2")
        for step in range(2)
    ]
    write(tmp_path / "part_0.parquet", series)
    write(
        tmp_path / "part_1.parquet",
        [
            row("RUN-1", "parameters/lr", "float", float_value=0.1),
            row("RUN-1", "parameters/layers", "int", int_value=3),
            row("RUN-1", "sys/owner", "string", string_value="somebody"),
            row("RUN-1", "train/loss", "float_series", step=Decimal("1.5"), float_value=1.0),
            row("RUN-1", "pictures", "file_series"),
        ],
    )
    runs = find_runs(tmp_path)
    assert [(run.format, run.name) for run in runs] == [("neptune", "RUN-1"), ("neptune", "RUN-2")]
    points, details = read(runs[:1])
    assert by_name(points) == {"train/loss": [(0, 2.0), (1, 1.0)]}
    assert points[0].time == AT.timestamp()
    assert details.config == {"parameters/lr": 0.1, "parameters/layers": 3}
    assert details.left_out == {
        "values whose step is not a whole number": 1,
        "attributes of type file_series": 1,
    }


def test_other_tables_and_other_files_are_damage(tmp_path):
    parquet.write_table(arrow.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(DamagedFile, match="lacks the columns run_id"):
        find_runs(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(DamagedFile, match="not a parquet file"):
        find_runs(tmp_path / "b.parquet")
