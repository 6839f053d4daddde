"""A run in a bucket."""

from __future__ import annotations

from typing import Any

from smdebug.storage import open_storage
from smdebug.trials.trial import Trial


class S3Trial(Trial):
    """The run at `s3://bucket_name/prefix_name`.

    `check`, `index_mode` and `cache` are accepted for old code: everything is checked always.
    """

    def __init__(
        self,
        name: str,
        bucket_name: str,
        prefix_name: str,
        range_steps: tuple[int | None, int | None] | None = None,
        check: bool = False,
        index_mode: bool = True,
        cache: bool = False,
        **options: Any,
    ):
        self.bucket_name = bucket_name
        self.prefix_name = prefix_name.strip("/")
        path = f"s3://{bucket_name}/{self.prefix_name}".rstrip("/")
        super().__init__(name, open_storage(path), path=path, range_steps=range_steps, **options)
