"""For code written against smdebug: the error agent lives in `smdebug.saving.error_agent`."""

from smdebug.saving.error_agent import BASE_ERROR_MESSAGE, ErrorHandlingAgent

__all__ = [
    "BASE_ERROR_MESSAGE",
    "ErrorHandlingAgent",
]
