"""Rules over a saved run: in one process, in several, and while it grows."""
