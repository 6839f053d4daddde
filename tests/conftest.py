"""Settings of every test: Hypothesis has no deadlines, and no log message counts as repeated."""

import logging
from contextlib import suppress

import pytest

from smdebug.logger import DuplicateLogFilter

with suppress(ImportError):  # the framework environments do not have it
    from hypothesis import HealthCheck, settings

    # Tests must not fail because the machine is busy.
    settings.register_profile(
        "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def no_message_logged_yet():
    """Forget the messages of earlier tests: the logger drops what it has logged three times."""
    for message_filter in logging.getLogger("smdebug").filters:
        if isinstance(message_filter, DuplicateLogFilter):
            message_filter.seen.clear()
