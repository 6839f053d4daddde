"""For code written against tornasole: see `smdebug.analysis`."""
