"""What the files of a run hold: steps of workers, attempts, bytes and values."""
