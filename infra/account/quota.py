"""`python -m infra.account.quota ARGS` prints the setting that fits the quota of concurrent functions.

`make deploy` adds it to its own arguments. Nothing is printed if these have the setting, or if the account
does not say: then the stack is deployed for the smallest account, which works in every one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.account.session import session_of
from infra.checks.concurrency import SMALLEST_ACCOUNT
from infra.packaging.assets import ROOT

SETTING = "account_concurrency"
_MORE = "Other stacks share it: -c account_concurrency=N leaves them some (docs/operations.md)."
_UNKNOWN = (
    "The account's quota of concurrent functions is unknown ({problem}): the stack is deployed for "
    f"{SMALLEST_ACCOUNT}. Name yours with -c {SETTING}=N (docs/operations.md)."
)


def is_given(arguments: Sequence[str], context: dict[str, Any]) -> bool:
    """Whether the setting is among the arguments of the CDK or in the context of its file."""
    return SETTING in context or any(f"{SETTING}=" in argument for argument in arguments)


def quota_of(account: Any) -> int:
    """Return how many functions the account may run at once, by its client of Lambda."""
    return int(account.get_account_settings()["AccountLimit"]["ConcurrentExecutions"])


def main() -> None:
    arguments = sys.argv[1:]
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    if is_given(arguments, context):
        return
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--profile")
    profile = parser.parse_known_args(arguments)[0].profile
    try:
        quota = quota_of(session_of(profile).client("lambda"))
    except (ClientError, BotoCoreError) as error:
        print(_UNKNOWN.format(problem=error), file=sys.stderr)
        return
    print(f"Deploying for {quota:,} functions at once, the account's quota. {_MORE}", file=sys.stderr)
    print(f"-c {SETTING}={max(SMALLEST_ACCOUNT, quota)}")


if __name__ == "__main__":
    main()
