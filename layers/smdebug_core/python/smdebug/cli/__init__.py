"""The `smdebug` command: one thin file per command; the work is done in other packages."""
