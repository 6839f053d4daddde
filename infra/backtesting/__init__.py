"""Backtests: their state machine and functions, and their share of the account."""
