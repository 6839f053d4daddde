"""Runs as agents get them: bounded answers, in which text that comes from a run is marked as data."""
