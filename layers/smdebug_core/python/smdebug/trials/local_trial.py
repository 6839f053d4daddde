"""A run in a local folder."""

from __future__ import annotations

import os
from typing import Any

from smdebug.storage import open_storage
from smdebug.trials.trial import Trial


class LocalTrial(Trial):
    """The run in folder `dirname`; `~` is the home.

    `parallel`, `check`, `index_mode` and `cache` are accepted for old code: everything is checked always.
    """

    def __init__(
        self,
        name: str,
        dirname: str | os.PathLike[str],
        range_steps: tuple[int | None, int | None] | None = None,
        parallel: bool = True,
        check: bool = False,
        index_mode: bool = True,
        cache: bool = False,
        **options: Any,
    ):
        path = os.path.expanduser(os.fspath(dirname))  # noqa: PTH111 - the path as it was given
        super().__init__(name, open_storage(path), path=path, range_steps=range_steps, **options)
