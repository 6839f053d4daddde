"""The permissions of a custom rule while it runs: read the runs that it evaluates, write its own state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from functions.decisions.messages import bucket_and_prefix
from smdebug.exceptions import SMDebugError
from smdebug.files.names import END_MARKER

LENT_FOR = 900  # seconds: the shortest session of STS
LONGEST_POLICY = 2048  # characters that STS accepts
_LISTED = ("events/", "index/", "collections/", END_MARKER)
_READ = ("events/*", "index/*", "collections/*", END_MARKER)


class TooManyRuns(SMDebugError):
    """The rule reads more runs than a session policy has room for."""


def session_policy(
    run: str,
    state: str,
    others: Sequence[str] = (),
    *,
    source: str | None = None,
    partition: str = "aws",
) -> dict[str, Any]:
    """Return the session policy: read the files of these runs, keep state below `state`.

    Only files that trainings write can be read, not those that the application keeps beside a run. Of the run
    itself not those of runs in folders below it either: whoever writes to a folder makes it a run.
    """

    def arn(place: str) -> str:
        return f"arn:{partition}:s3:::{place}"

    runs = list(dict.fromkeys(f"{place.strip('/')}/" for place in (run, *others)))
    own, compared = runs[0], runs[1:]
    own_state = arn(f"{_literal(run.strip('/'))}/{_literal(state)}*")
    sources = [arn(_literal(source.removeprefix("s3://")))] if source else []
    by_bucket: dict[str, list[str]] = {}
    for place in runs:
        bucket, prefix = bucket_and_prefix(place.rstrip("/"))
        folders = _LISTED if place == own else ("",)
        by_bucket.setdefault(bucket, []).extend(f"{_literal(prefix)}{folder}*" for folder in folders)
    statements: list[dict[str, Any]] = [
        {
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": [
                *(arn(f"{_literal(own)}{kind}") for kind in _READ),
                own_state,
                *(arn(f"{_literal(place)}*") for place in compared),
                *sources,
            ],
        },
        {
            "Effect": "Deny",
            "Action": "s3:GetObject",
            "NotResource": [*(arn(f"*/{kind}") for kind in _READ), own_state, *sources],
        },
        {"Effect": "Allow", "Action": "s3:PutObject", "Resource": own_state},
        *(
            {
                "Effect": "Allow",
                "Action": "s3:ListBucket",
                "Resource": arn(bucket),
                "Condition": {"StringLike": {"s3:prefix": prefixes}},
            }
            for bucket, prefixes in by_bucket.items()
        ),
        {
            # The role itself allows only the stack's own keys.
            "Effect": "Allow",
            "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
            "Resource": "*",
            "Condition": {"StringLike": {"kms:ViaService": "s3.*"}},
        },
    ]
    policy = {"Version": "2012-10-17", "Statement": statements}
    if len(as_text(policy)) > LONGEST_POLICY:
        raise TooManyRuns(
            f"The rule reads {len(runs)} runs, and credentials cannot be restricted to so many: name "
            "fewer in other_trials, or runs with shorter prefixes."
        )
    return policy


def as_text(policy: dict[str, Any]) -> str:
    """Return the policy as STS accepts it."""
    return json.dumps(policy, separators=(",", ":"))


def _literal(text: str) -> str:
    """Return the text with the wildcards of policies escaped."""
    return "".join(f"${{{letter}}}" if letter in "*?$" else letter for letter in text)
