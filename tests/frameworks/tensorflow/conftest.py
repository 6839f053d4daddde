"""Where the trainings of the tests save, and the seed that they begin with."""

import pytest


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def same_beginning():
    import keras  # here: pytest may load this file where Keras is not installed

    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
