"""Parsers of what others have written, fed with what nobody would write: typed errors, and bounded."""
