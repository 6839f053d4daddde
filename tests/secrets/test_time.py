"""The time is in proportion to the text, also of hostile text."""

import subprocess
import sys

import pytest

SIZE = 100_000
HOSTILE = [
    "a", "-", ".", ":", "=", "'", "\\", "\n", " ", "a:", "a.", "a://", "://", "http://a@b:c/", "://:@/",
    "@", "me:x@", "token='", 'token=\\"', "token=,", "token=[", "token=", "token ", "token\t", "'token',",
    "'token", "<token>", "eyJ-", "sk-", "sk-a", "AKIA", "ghp_", "hf_", "-----BEGIN PRIVATE KEY-----",
    "Bearer ", "password:\n", "password:", "password is ", "key:", "--api-key -", "http://h/?a=&",
    "http://h/hooks/", "hooks.slack.com/", "{'name':'", "password={", "login ", "%3D", "token%3D", "1", "A",
    "Ab", "a_", "X=1,", "a;b=", "\u00e9", "((", "12345678:AA",
    "token: |\n a", "token:\n- a\n", "token:\n", " -p", " -p1abcdefg", " -u a:", "%3A%2F%2F", "%3A", "token,",
    "token|", "&quot;", "token: &a ", "token: a(", "\\u0022", 'name="a" ', "token a b: ", "://a:b ",
    "Private-Lines: 1\nAAAA\n", "AAAA\n", "$2y$", "machine a login b ", "machine ", "$2y$a", "{SHA}",
    "token&#61;", "password 'a1", "password is ", "token is 'a1b' ", "\\075",
]  # fmt: skip
PROGRAM = """
import sys
from smdebug.secrets.arguments import redacted_argument, redacted_command
from smdebug.secrets.texts import redacted

for piece in eval(sys.stdin.read()):
    assert isinstance(redacted(piece * ({size} // len(piece))), str)
    text = piece * ({size} // 10 // len(piece))
    for hostile in ("token=" + text, "https://" + text, "x=1 " + text, "Authorization: x " + text):
        assert isinstance(redacted(hostile), str)
        assert isinstance(redacted_argument(hostile), str)
    assert len(redacted_command(["--api-key", "-" + text])) == 2
    print(repr(piece))
"""


@pytest.mark.parametrize("part", range(4))
def test_hostile_text_of_many_letters_is_read_in_the_end(part):
    """A pattern that reads again what it has read would need hours."""
    pieces = HOSTILE[part::4]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(size=SIZE)],
        input=repr(pieces),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.splitlines() == [repr(piece) for piece in pieces]


def test_a_megabyte_of_everything_is_read_in_the_end():
    text = "".join(HOSTILE * (1_000_000 // len("".join(HOSTILE)) + 1))
    program = "import sys; from smdebug.secrets.texts import redacted; print(len(redacted(sys.stdin.read())))"
    done = subprocess.run(
        [sys.executable, "-c", program], input=text, capture_output=True, text=True, timeout=300, check=True
    )
    assert 0 < int(done.stdout) < len(text)
