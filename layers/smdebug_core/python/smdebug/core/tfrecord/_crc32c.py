"""For code written against smdebug that computes CRC32C: `smdebug.files.checksum` does it now."""

from smdebug.files.checksum import crc32c

__all__ = ["crc32c"]
