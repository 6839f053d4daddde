"""For code written against smdebug: index readers live in `smdebug.trials.index_reader`."""

from smdebug.trials.index_reader import (
    IndexReader,
    LocalIndexReader,
    ReadIndexFilesCache,
    S3IndexReader,
)
