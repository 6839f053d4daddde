"""Loggers of frameworks beside ours, on the tools themselves: `make test-sinks` has both."""
