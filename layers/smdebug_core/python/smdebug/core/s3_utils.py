"""For code written against smdebug that lists a bucket."""

from __future__ import annotations

from smdebug.core.access_layer.s3handler import ListRequest, S3Handler

__all__ = ["list_s3_objects"]


def list_s3_objects(
    bucket: str, prefix: str, start_after_key: str | None = None, delimiter: str = ""
) -> tuple[list[str], str | None]:
    """Return the keys that begin with `prefix` and sort after `start_after_key`, and the last key."""
    request = ListRequest(bucket, prefix, delimiter, start_after_key or prefix)
    (keys,) = S3Handler.list_prefixes([request])
    return keys, keys[-1] if keys else None
