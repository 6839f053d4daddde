"""Command lines keep their options, and lose the values of secret ones."""

from smdebug.secrets.arguments import redacted_command
from smdebug.secrets.values import LEFT_OUT
from tests.secrets.planted import cores_in, planted_arguments


def test_a_command_line_keeps_the_names_of_secrets_alone():
    given = ["python", "t.py", "--token=abc", "--api-key", "k", "--lr", "1", "DB_PASSWORD=x", "--secret"]
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


def test_an_option_after_an_option_is_no_value_but_a_secret_may_begin_with_a_dash():
    assert redacted_command(["--token", "--lr", "1"]) == ["--token", "--lr", "1"]
    assert redacted_command(["--api-key", "-Xk29", "--lr"]) == ["--api-key", LEFT_OUT, "--lr"]
    assert redacted_command(["--api-key", "--9aFk", "--lr"]) == ["--api-key", LEFT_OUT, "--lr"]


def test_an_option_of_many_secrets_takes_all_that_follow():
    assert redacted_command(["--api-keys", "a", "b", "--lr", "1"]) == [
        "--api-keys",
        LEFT_OUT,
        LEFT_OUT,
        "--lr",
        "1",
    ]


def test_no_planted_secret_of_a_command_line_is_kept():
    planted = list(planted_arguments())
    assert len(planted) > 400
    kept = [arguments for arguments, core in planted if cores_in(" ".join(redacted_command(arguments)))]
    assert kept == []


def test_a_command_line_that_was_redacted_stays_the_same():
    once = [redacted_command(arguments) for arguments, _ in planted_arguments()]
    assert once
    assert [redacted_command(arguments) for arguments in once] == once
