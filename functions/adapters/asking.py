"""One call of a service of AWS, with its refusals in our words."""

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
    """The service's answer. `TooMuch` if it may be another one later, else `NotDone`."""
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
        raise TooMuch(f"{operation} could not be asked: {error}") from error
