"""The `smdebug` command: one file per command, thin; what it does is in the rooms it calls."""
