"""Backtests in the account: built-in rules are judged here, those of users in the sandbox."""
