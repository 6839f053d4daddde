"""`make demo`: the whole debugger at work on this machine, told in a terminal or as JSON."""
