"""No planted secret stays in a text, whatever its name and form, and ordinary text stays as it is."""

from argparse import Namespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.config.hyperparameters import flat_config
from smdebug.secrets.arguments import redacted_argument, redacted_command
from smdebug.secrets.data import redacted_data, without_secret
from smdebug.secrets.texts import redacted
from smdebug.secrets.values import LEFT_OUT
from tests.secrets import held_out
from tests.secrets.held_out import ORDINARY, SECRET_NAMES
from tests.secrets.ordinary import COMMANDS, CONFIG, TEXTS
from tests.secrets.planted import PAIRS, cores_in, planted

PLANTED = list(planted())
ORDINARY_CONFIG = {**CONFIG, **ORDINARY}


def test_there_are_thousands_of_planted_secrets_and_each_can_be_found():
    assert len(PLANTED) > 2300
    assert all(cores_in(text) == {core} for text, core in PLANTED)


@pytest.mark.parametrize(
    "shown",
    [
        redacted,
        redacted_argument,
        lambda text: redacted_command(["--note", text])[1],
        lambda text: without_secret("note", text),
        lambda text: flat_config({"note": [text]})["note"][0],
        lambda text: str(redacted_data({"a": [{text: text}]})),
        lambda text: str(flat_config(Namespace(notes={"first": text}))),
    ],
    ids=["text", "argument", "after an option", "value", "list", "data", "configuration"],
)
def test_no_planted_secret_is_kept(shown):
    kept = [text for text, core in PLANTED if core in shown(text)]
    assert kept == []


def test_what_is_left_says_where_a_secret_was_and_stays_the_same():
    once = [redacted(text) for text, _ in PLANTED]
    assert [text for text in once if LEFT_OUT not in text] == []
    assert [redacted(text) for text in once] == once


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_of_secrets_that_the_tables_were_not_made_from(name):
    kept = [form for form in PAIRS if cores_in(redacted(form.format(name=name, value="qZ99999Xk9v")))]
    assert kept == []


@pytest.mark.parametrize(("text", "secret"), held_out.TEXTS)
def test_text_that_the_forms_were_not_made_from(text, secret):
    assert secret not in redacted(text)


def test_the_rest_of_a_text_stays():
    assert redacted("postgres://me:pw@host/db") == f"postgres://me:{LEFT_OUT}@host/db"
    assert redacted("use hf_" + "a" * 30) == f"use {LEFT_OUT}"
    assert redacted("lr=0.1 token=abc, steps=5") == f"lr=0.1 token={LEFT_OUT}, steps=5"
    assert redacted("f(token='a\\'b', lr=1)") == f"f(token='{LEFT_OUT}', lr=1)"
    assert redacted("Server=a;Password=b;Database=c") == f"Server=a;Password={LEFT_OUT};Database=c"
    assert redacted("https://h/x?n=1&sig=abc&m=2#top") == f"https://h/x?n=1&sig={LEFT_OUT}&m=2#top"
    assert redacted('the passphrase "open 9 doors" is old') == f'the passphrase "{LEFT_OUT}" is old'
    assert redacted("Private-Lines: 1\nAAAA9\nComment: x") == f"Private-Lines: 1\n{LEFT_OUT}\nComment: x"
    assert redacted("ada:$apr1$ab12cd34$qZ00001Xk9v/lmn:x") == f"ada:{LEFT_OUT}:x"
    assert redacted("api_keys: ['a', 'b'], lr: 1") == f"api_keys: {LEFT_OUT}, lr: 1"


@pytest.mark.parametrize(
    "token",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AIzaSyA-1234567890abcdefghijklmnopqrstu",
        "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N",
        "AGE-SECRET-KEY-1QQPQZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
        "dapi0123456789abcdef0123456789abcdef",
    ],
)
def test_a_token_of_a_known_form_needs_no_name(token):
    assert redacted(f"note {token} here") == f"note {LEFT_OUT} here"
    assert redacted(token) == LEFT_OUT


@pytest.mark.parametrize("name", ORDINARY_CONFIG)
def test_an_ordinary_value_stays_readable_in_any_form(name):
    value = ORDINARY_CONFIG[name]
    assert flat_config({name: value}) == {name: value}
    command = [f"--{name}", str(value), f"--{name}={value}", f"{name}={value}"]
    assert redacted_command(command) == command
    texts = [f"{name}={value}", f"{name}: {value}", f"--{name} {value}", f"saved with {name}={value}, lr=1"]
    assert [redacted(text) for text in texts] == texts


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_ordinary_command_line_stays_readable(command):
    assert redacted_command(command) == command
    assert redacted(" ".join(command)) == " ".join(command)


@pytest.mark.parametrize("text", TEXTS)
def test_an_ordinary_sentence_stays_readable(text):
    assert redacted(text) == text


def test_there_are_enough_ordinary_values():
    assert len(CONFIG) + len(COMMANDS) + len(TEXTS) >= 200


WORDS = (
    'token password --api-key :// https:// Bearer abc9 \\" %3D *** key eyJ AKIA is None '
    "-----BEGIN_PRIVATE_KEY-----"
)
PIECES = st.sampled_from(
    [*"'\"\\=:,;&()[]{}<>|@/?#%$-. \n\t", *(word.replace("_", " ") for word in WORDS.split())]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=30).map("".join))
def test_any_text_is_read_and_nothing_is_invented(text):
    shown = redacted(text)
    rest = iter(text)
    assert all(piece in rest for piece in shown.replace(LEFT_OUT, "").replace("*", ""))
    assert isinstance(redacted_argument(text), str)


@given(st.text(alphabet="abcXYZ019_-+/.~!@#%^*", min_size=6, max_size=30), st.sampled_from(PAIRS))
def test_a_password_of_any_letters_is_left_out(value, form):
    """Of the letters that people and generators use, but those that end a value in an address or a list."""
    secret = f"qZ{value}Xk9v" if form.startswith(("https", "lr=")) else value
    if not any(map(str.isalnum, secret)) or any(c in secret for c in "@#" if "https" in form):
        return
    shown = redacted(form.format(name="password", value=secret))
    assert LEFT_OUT in shown
    assert secret not in shown
