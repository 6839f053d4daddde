"""Decisions, as pure functions of values: no clock, no environment, no client."""
