"""Secrets do not reach the files of a run, and what only resembles one does."""

import pytest

from smdebug.config.secrets import LEFT_OUT, redacted, redacted_command, without_secret


@pytest.mark.parametrize(
    "name",
    [
        "hub_token",
        "token",
        "HF_TOKEN",
        "push_to_hub_token",
        "wandb_api_key",
        "apiKey",
        "APIKey",
        "password",
        "db.password",
        "userPassword",
        "client_secret",
        "AWS_SECRET_ACCESS_KEY",
        "aws_access_key_id",
        "private-key",
        "slack_webhook",
        "credentials",
        "session_token",
    ],
)
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


def test_numbers_are_not_secrets():
    assert without_secret("token", 3) == 3
    assert without_secret("use_token", True) is True


def test_a_command_line_keeps_the_names_of_secrets_alone():
    given = [
        "python",
        "t.py",
        "--token=abc",
        "--api-key",
        "k",
        "--lr",
        "1",
        "DB_PASSWORD=x",
        "--secret",
    ]
    assert redacted_command(given) == [
        "python",
        "t.py",
        f"--token={LEFT_OUT}",
        "--api-key",
        LEFT_OUT,
        "--lr",
        "1",
        f"DB_PASSWORD={LEFT_OUT}",
        "--secret",
    ]
    assert redacted_command(["--token", "--lr", "1"]) == ["--token", "--lr", "1"]


def test_passwords_in_addresses_and_tokens_of_known_forms_are_left_out():
    assert redacted("postgres://me:pw@host/db") == f"postgres://me:{LEFT_OUT}@host/db"
    assert redacted("use hf_" + "a" * 30) == f"use {LEFT_OUT}"
    assert redacted("s3://bucket/run and https://host/a@b") == "s3://bucket/run and https://host/a@b"
