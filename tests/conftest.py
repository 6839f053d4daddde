"""Settings of every test: the same examples of Hypothesis, no repeated log messages, slow tests first."""

import gc
import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from smdebug.logger import DuplicateLogFilter, get_logger

with suppress(ImportError):  # the framework environments do not have it
    from hypothesis import HealthCheck, settings

    # Tests must not fail because the machine is busy, and try the same examples in every run. To search
    # further: make test ARGS="--hypothesis-profile=random".
    unhurried = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("repeatable", derandomize=True, database=None, **unhurried)
    settings.register_profile("random", **unhurried)
    settings.load_profile("repeatable")

# Rooms with tests that take many seconds each. A process that began one of them at the end of a run
# would keep the others waiting; begun first, they leave the many quick tests to fill the gaps.
SLOW_ROOMS = ("e2e", "local_aws", "docs", "smoke", "infra", "faults", "ui")
TESTS = Path(__file__).parent
# What `make test` leaves to `make test-system`, besides what needs a browser: a whole stack, a built site,
# each block of the documentation run as it stands.
SYSTEM = ("docs/test_blocks.py", "docs/test_site.py", "e2e", "infra/test_lint.py", "local_aws", "smoke")


def pytest_xdist_auto_num_workers():
    """Three processes for two processors: many tests wait for a process, a browser or a timeout."""
    has_affinity = hasattr(os, "sched_getaffinity")
    processors = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return processors + processors // 2


def pytest_configure(config):
    """Keep the settings of whoever runs the tests out of them: their AWS accounts, their fonts."""
    if hasattr(config, "workerinput"):
        return  # it has the environment of the process that started it
    folder = tempfile.TemporaryDirectory(prefix="smdebug-tests-")
    config.add_cleanup(folder.cleanup)
    for name in [name for name in os.environ if name.startswith("AWS_") and name != "AWS_CA_BUNDLE"]:
        del os.environ[name]
    os.environ["AWS_CONFIG_FILE"] = str(Path(folder.name) / "config")
    os.environ["AWS_SHARED_CREDENTIALS_FILE"] = str(Path(folder.name) / "credentials")
    os.environ["MPLCONFIGDIR"] = folder.name


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Mark the tests of the whole. Begin with the slow rooms; tests of one keep their order and fixtures."""
    for item in items:
        if item.get_closest_marker("browser") or is_of_the_whole(item.path):
            item.add_marker("system")
    items.sort(key=lambda item: room_order(item.path))


def pytest_collection_finish():
    """Let the garbage collector pass over what was imported and collected, again and again, no more."""
    gc.collect()
    gc.freeze()


@cache
def is_of_the_whole(path):
    return any(path.is_relative_to(TESTS / place) for place in SYSTEM)


@cache
def room_order(path):
    """The place of a test's room among the slow ones, or the place after them all."""
    room = path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""
    return SLOW_ROOMS.index(room) if room in SLOW_ROOMS else len(SLOW_ROOMS)


@pytest.fixture(autouse=True)
def no_message_logged_yet():
    """Forget the messages of earlier tests: the logger drops what it has logged three times.

    A test that left the logger changed would silence those that its process runs after it.
    """
    logger = get_logger()
    for message_filter in logger.filters:
        if isinstance(message_filter, DuplicateLogFilter):
            message_filter.seen.clear()
    before = _settings_of(logger)
    yield
    assert _settings_of(logger) == before, "this test leaves the library's logger changed"


def _settings_of(logger):
    # pytest adds handlers of its own, other ones for each phase of a test.
    handlers = [handler for handler in logger.handlers if not type(handler).__module__.startswith("_pytest")]
    return logger.level, logger.disabled, handlers, list(logger.filters)
