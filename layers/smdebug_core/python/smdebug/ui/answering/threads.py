"""Work of a request in a thread that neither a stopping server nor the end of the process waits for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Return what `work` returns. It runs in a daemon thread, as storage may never answer."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if future.done():  # cancelled: nothing waits for the result
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        problem: BaseException | None = None
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            problem = error
        with suppress(RuntimeError):  # the server was stopped meanwhile
            loop.call_soon_threadsafe(deliver, result, problem)

    threading.Thread(target=run, name="smdebug-ui-request", daemon=True).start()
    return await future
