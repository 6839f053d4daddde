"""Stops the jobs of failing runs on a cluster of one's own, as a queue of the debugger asks for it."""
