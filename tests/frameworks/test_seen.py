"""The table in docs/frameworks.md says what the default plan sees in each framework."""

import pytest

from tests.frameworks import seen

# Frameworks warn of each other; what we do has to be free of warnings.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.filterwarnings("error:::smdebug"),
]


# tensorflow/test_keras.py has such runs, of processes that take ten seconds to start.
TESTED_THERE = {"Keras on PyTorch", "Keras on JAX"}


@pytest.mark.parametrize("framework", [name for name in seen.FRAMEWORKS if name not in TESTED_THERE])
def test_the_table_says_what_a_training_shows(framework, tmp_path):
    if not seen.is_installed(framework):
        pytest.skip(f"{framework} is not installed")
    if framework == "Keras":
        import keras

        keras.backend.clear_session()
    found = seen.column(framework, tmp_path)
    assert found == seen.columns_of_the_page()[framework], "python -m tests.frameworks.seen writes it"


def test_the_table_has_all_frameworks_and_rows():
    columns = seen.columns_of_the_page()
    assert list(columns) == list(seen.FRAMEWORKS)
    assert all(list(column) == list(seen.ROWS) for column in columns.values())
