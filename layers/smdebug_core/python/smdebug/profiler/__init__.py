"""The profiler's configuration can be read, but has no effect."""
