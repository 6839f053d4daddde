"""The end of a run: its last files, other workers, signals, and the last message."""
