"""For code that imports index readers from where the old library kept them."""

from smdebug.trials.index_reader import (
    IndexReader,
    LocalIndexReader,
    ReadIndexFilesCache,
    S3IndexReader,
)
