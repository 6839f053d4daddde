"""Secrets in hyperparameters and command lines, recognised by their names and left out."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Any

LEFT_OUT = "***"
"""What a run keeps instead of a secret."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRETS = frozenset(
    {
        "secret",
        "secrets",
        "password",
        "passwords",
        "passwd",
        "passphrase",
        "pwd",
        "credential",
        "credentials",
        "apikey",
        "apitoken",
        "authtoken",
        "accesskey",
        "secretkey",
        "privatekey",
        "webhook",
        "dsn",
        "cookie",
        "bearer",
        "authorization",
    }
)
_KEYS_OF = frozenset(
    {
        "api",
        "access",
        "secret",
        "private",
        "account",
        "encryption",
        "license",
        "signing",
        "ssh",
        "sas",
    }
)
# Tokens of a vocabulary, and counts of tokens; `pad_token` is text, too.
_TOKENS_OF_TEXT = frozenset(
    {
        "pad",
        "eos",
        "bos",
        "unk",
        "sep",
        "cls",
        "mask",
        "start",
        "end",
        "image",
        "audio",
        "video",
        "decoder",
        "additional",
        "special",
        "extra",
        "max",
        "min",
        "num",
        "per",
    }
)
_OF_A_VOCABULARY = frozenset(
    {
        "id",
        "ids",
        "type",
        "types",
        "index",
        "count",
        "limit",
        "length",
    }
)
_IN_AN_ADDRESS = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]+@")
_BY_FORM = re.compile(
    r"\b(sk-[\w-]{16,}|hf_\w{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}"
    r"|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)


def names_a_secret(name: str) -> bool:
    """Return whether a value of that name is a secret, as of `hub_token` but not of `pad_token`."""
    words = [word.lower() for word in _WORD.findall(name.rpartition(".")[2])]
    if _SECRETS.intersection(words):
        return True
    pairs = list(itertools.pairwise(words))
    if any(last in ("key", "keys") and first in _KEYS_OF for first, last in pairs):
        return True
    if "token" not in words:
        return False
    at = words.index("token")
    before, after = words[:at], words[at + 1 :]
    return not (_TOKENS_OF_TEXT.intersection(before) or _OF_A_VOCABULARY.intersection(after))


def without_secret(name: str, value: Any) -> Any:
    """Return the value, or its replacement if its name or form is that of a secret.

    Only texts are secrets: `push_token=True` says whether there is one.
    """
    if not isinstance(value, str) or not value:
        return value
    return LEFT_OUT if names_a_secret(name) else redacted(value)


def redacted(text: str) -> str:
    """Return the text with passwords in addresses, and tokens of known forms, left out."""
    return _BY_FORM.sub(LEFT_OUT, _IN_AN_ADDRESS.sub(rf"\1:{LEFT_OUT}@", text))


def redacted_command(arguments: Iterable[str]) -> list[str]:
    """Return a command line without the values of its secrets: `--token=x`, `--token x` and `TOKEN=x`."""
    shown: list[str] = []
    is_secret_next = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if is_secret_next and not argument.startswith("-"):
            shown.append(LEFT_OUT)
            is_secret_next = False
            continue
        secret = names_a_secret(name.lstrip("-")) and (equals or name.startswith("-"))
        is_secret_next = bool(secret) and not equals
        shown.append(f"{name}={LEFT_OUT}" if secret and equals else redacted(argument))
    return shown
