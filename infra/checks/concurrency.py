"""How many functions may run at once, and for whom some are reserved."""

from __future__ import annotations

from pathlib import Path

SMALLEST_ACCOUNT = 10
"""The concurrency of a new account."""


def problem_with(limit: int, *, reserved: int, custom: int, rules: Path) -> str:
    """Return what is wrong with these settings of an account with this limit; empty if nothing is."""
    if custom < 0:
        return f"custom_concurrency={custom} is negative."
    functions = 1 + len([file for file in rules.glob("*.py") if file.name[0] != "_"])
    if custom and reserved + custom * functions > limit - 100:
        return (
            f"custom_concurrency={custom} for each of {functions} functions and "
            f"reserved_concurrency={reserved} leave less than the 100 of {limit} that Lambda keeps "
            "unreserved (account_concurrency): use fewer, or ask AWS for a higher quota."
        )
    if not SMALLEST_ACCOUNT <= limit <= 100_000:
        return (
            f"account_concurrency={limit} is outside {SMALLEST_ACCOUNT} to 100000: `aws lambda "
            "get-account-settings` shows your account's ConcurrentExecutions."
        )
    if reserved < 0:
        return f"reserved_concurrency={reserved} is negative."
    if reserved and limit < 200:
        return (
            f"reserved_concurrency={reserved} needs an account with a concurrency "
            f"of 200 or more, and account_concurrency is {limit}: Lambda keeps "
            "100 unreserved. Ask AWS for a higher quota, or omit it."
        )
    if reserved and reserved > limit - 100:
        return (
            f"reserved_concurrency={reserved} leaves less than the 100 of {limit} that Lambda keeps "
            f"unreserved: use at most {limit - 100}."
        )
    return ""
