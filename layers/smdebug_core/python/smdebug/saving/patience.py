"""Asking a storage that may never answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from smdebug.exceptions import StorageError, StorageUnavailable

A = TypeVar("A")
ANSWERS_WITHIN = 20.0


def within(ask: Callable[[], A], place: str, seconds: float | None = None) -> A:
    """What `ask` returns, or its StorageError; any other failure, and no answer in time, is one too."""
    seconds = ANSWERS_WITHIN if seconds is None else seconds
    answers: list[A] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked
            errors.append(error)

    thread = threading.Thread(target=run, name="smdebug-asking", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is ending and starts no threads any more
        return ask()
    thread.join(seconds)
    if answers:
        return answers[0]
    try:
        if errors and isinstance(errors[0], StorageError):
            raise errors[0]
        if errors:
            why = f"{type(errors[0]).__name__}: {errors[0]}"
            raise StorageUnavailable(place, why) from errors[0]
    finally:
        errors.clear()  # it would hold this frame, and all that called, the training's tensors included
    raise StorageUnavailable(place, f"it has not answered for {seconds:g} s")
