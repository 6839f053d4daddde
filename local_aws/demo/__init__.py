"""`make demo`: the whole debugger at work on this machine, shown in a terminal or as JSON."""
