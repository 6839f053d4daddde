"""Where the hooks of the tests save, what the library logs, and a storage that hangs."""

import logging

import pytest

from smdebug.logger import get_logger
from tests.support.faulty_storage import Blocking


@pytest.fixture
def out_dir(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def log_records():
    """The messages of the library's logger."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append
    get_logger().addHandler(handler)
    yield records
    get_logger().removeHandler(handler)


@pytest.fixture
def blocking():
    """A fault that hangs; whatever still hangs is let go at the end."""
    fault = Blocking()
    yield fault
    fault.release()
