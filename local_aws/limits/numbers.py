"""The numbers themselves; a test may lower those that it could not reach on a laptop."""

from __future__ import annotations

from dataclasses import dataclass

KB, MB = 1024, 1024 * 1024


class BeyondLimit(Exception):
    """AWS would refuse this; `kind` is the name of its error."""

    def __init__(self, kind: str, message: str):
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True)
class Limits:
    """The limits of an account for which no increase was requested."""

    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
    item_bytes: int = 400 * KB
    expression_bytes: int = 4 * KB
    transaction_actions: int = 100
    table_writes: int = 4000  # units per second, of a new on-demand table
    table_reads: int = 12_000
    key_writes: int = 1000
    # https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
    state_bytes: int = 256 * KB
    express_seconds: float = 300
    # https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    concurrency: int = 10  # of a new account
    environment_bytes: int = 4 * KB
    code_bytes: int = 250 * MB
    answer_bytes: int = 6 * MB
    asynchronous_bytes: int = 256 * KB
    hops: int = 16  # https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
    message_bytes: int = 256 * KB
    # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevent-size.html
    event_bytes: int = 256 * KB
    events_bytes: int = MB
