"""Names say what a value is: a secret, one if it looks drawn by lot, or nothing of the kind."""

import pytest

from smdebug.secrets.data import redacted_data, without_secret
from smdebug.secrets.names import Secrecy, secrecy_of
from smdebug.secrets.values import LEFT_OUT
from tests.secrets.planted import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_text_of_that_name_is_left_out(name):
    assert without_secret(name, "s3cr3t") == LEFT_OUT


@pytest.mark.parametrize(
    "name",
    [
        "pad_token",
        "eos_token",
        "mask_token",
        "tokenizer",
        "max_tokens",
        "token_type",
        "monkey",
        "key",
        "keyboard",
        "author",
        "num_attention_heads",
        "passes",
        "cookiecutter",
    ],
)
def test_a_hyperparameter_of_that_name_is_kept(name):
    assert without_secret(name, "value") == "value"


def test_a_key_of_any_kind_is_a_secret_if_it_looks_drawn_by_lot():
    assert secrecy_of("dataset_key") is Secrecy.IF_RANDOM
    assert without_secret("dataset_key", "squad_v2") == "squad_v2"
    assert (
        without_secret("dataset_key", "4f2c81aa03bd5a6ef0c1d2b3a4958677")
        == "4f2c81aa03bd5a6ef0c1d2b3a4958677"
    )
    assert without_secret("backup_key", "x9Qz7LpT2vWk") == LEFT_OUT


def test_numbers_are_no_secrets_but_of_a_password():
    assert without_secret("token", 3) == 3
    assert without_secret("use_token", True) is True
    assert without_secret("password", 12345678) == LEFT_OUT
    assert without_secret("password_length", 12) == 12
    assert without_secret("password", None) is None


def test_what_stands_for_a_secret_is_kept():
    for value in (
        "$HF_TOKEN",
        "${HF_TOKEN}",
        "{{ secrets.TOKEN }}",
        "none",
        "true",
        "/run/secrets/token",
        "",
    ):
        assert without_secret("hub_token", value) == value


def test_a_name_is_read_with_what_is_above_it():
    assert secrecy_of("wandb.key") is Secrecy.IF_TEXT
    assert secrecy_of("credentials.aws.user") is Secrecy.IF_TEXT
    assert secrecy_of("tokenizer.pad.token") is not Secrecy.IF_TEXT
    assert secrecy_of("image.key") is Secrecy.IF_RANDOM


def test_names_on_the_list_are_no_secrets_and_the_form_still_counts():
    listed = ["auth_key"]
    assert without_secret("auth_key", "Zx81-kappa", listed) == "Zx81-kappa"
    assert without_secret("model.AUTH_KEY", "Zx81-kappa", listed) == "Zx81-kappa"
    assert without_secret("auth_key", "hf_" + "a" * 30, listed) == LEFT_OUT
    assert without_secret("other_auth_key", "Zx81-kappa", listed) == LEFT_OUT


def test_data_of_any_depth_is_searched():
    deep = {"a": [{"env": {"WANDB_API_KEY": "abc"}}, ["--token", "abc"]], "lr": 0.1, "note": "password: abc"}
    assert redacted_data(deep) == {
        "a": [{"env": {"WANDB_API_KEY": LEFT_OUT}}, ["--token", LEFT_OUT]],
        "lr": 0.1,
        "note": f"password: {LEFT_OUT}",
    }
    endless: list = []
    endless.append(endless)
    assert LEFT_OUT in str(redacted_data(endless))
