"""Parsers of untrusted input on malformed input: typed errors, in bounded time and memory."""
