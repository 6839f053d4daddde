"""What is left of the profiler: its configuration can be read, and nothing acts on it."""
