"""One call of an AWS service, with its errors as exceptions of `functions.ports`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from functions.ports import NotDone, TooMuch

Client = Callable[[], Any]

_LATER = (
    "Throttl",
    "TooMany",
    "RequestLimit",
    "ServiceUnavailable",
    "Internal",
    "SlowDown",
    "Timeout",
)


def ask(client: Client, operation: str, **request: Any) -> Mapping[str, Any]:
    """Return the response; `TooMuch` if a later call may succeed, and `NotDone` for any other error."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        answer: Mapping[str, Any] = getattr(client(), operation)(**request)
        return answer
    except ClientError as error:
        answer_error = error.response.get("Error", {})
        code, message = str(answer_error.get("Code", "")), str(answer_error.get("Message", ""))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        problem = f"{operation} was refused: {code}: {message}"
        if status >= 500 or any(word in code for word in _LATER):
            raise TooMuch(problem) from error
        raise NotDone(problem) from error
    except BotoCoreError as error:  # no connection, no answer, no credentials for now
        raise TooMuch(f"{operation} could not be called: {error}") from error
