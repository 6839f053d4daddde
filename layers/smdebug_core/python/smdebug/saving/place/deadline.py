"""Calls to a storage that may never answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from smdebug.exceptions import StorageError, StorageUnavailable

A = TypeVar("A")
ANSWERS_WITHIN = 20.0


def within(call: Callable[[], A], location: str, seconds: float | None = None) -> A:
    """Return what `call` returns; raise its StorageError, or StorageUnavailable if it fails or hangs."""
    seconds = ANSWERS_WITHIN if seconds is None else seconds
    answers: list[A] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            errors.append(error)

    thread = threading.Thread(target=run, name="smdebug-asking", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is shutting down and starts no more threads
        return call()
    thread.join(seconds)
    if answers:
        return answers[0]
    try:
        if errors and isinstance(errors[0], StorageError):
            raise errors[0]
        if errors:
            reason = f"{type(errors[0]).__name__}: {errors[0]}"
            raise StorageUnavailable(location, reason) from errors[0]
    finally:
        errors.clear()  # it would keep this frame and its callers alive, the training's tensors included
    raise StorageUnavailable(location, f"no answer within {seconds:g} s")
