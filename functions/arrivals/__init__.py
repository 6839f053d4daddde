"""Recording the files of a run as they arrive, and finding those that no notification reported."""
