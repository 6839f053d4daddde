"""Which value is a secret, given what its name says."""

from __future__ import annotations

import re
from typing import Final

from smdebug.secrets.names import Secrecy, word_set

LEFT_OUT: Final = "***"
"""What stands in the place of a secret."""

_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?")
_NOTHING = word_set("none null nil true false yes no on off [] {} () n/a") | {""}
_CHOICES = _NOTHING | word_set(
    "auto default basic bearer digest oauth oauth2 iam kerberos gssapi ldap ssl tls token password required "
    "optional disabled enabled env environment prompt keyring anonymous any all str int string text bytes "
    "float bool object undefined missing unset"
)
#: `$NAME`, `${NAME}`, `{{ name }}`, `<name>`, `[MASK]`, `</s>`, `<|end|>`: what stands for something else.
_STANDS_FOR = re.compile(
    r"\$\{?[A-Z_][A-Z0-9_]{0,80}\}?|\$?\{\{[\w. ]{1,80}\}\}"
    r"|<[/|]?[\w |.-]{1,40}[|/]?>|\[[A-Z_]{1,24}\]|\*{2,20}"
)
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HASH = re.compile(r"(?i)(?:sha\d{1,3}:)?[0-9a-f]{7,128}")
_PART = r"(?:[A-Za-z]+\d{0,4}|\d+[A-Za-z]{0,4})"
_ORDINARY = re.compile(rf"[-_./:,+~@]*{_PART}(?:[-_./:,+~@=]+{_PART})*[-_./]*")
#: The place of a file, which may hold the secret.
_PLACE = re.compile(
    r"(?:\.{0,2}/|~/|s3a?://|gs://|file://|hdfs://|ssm:/|arn:aws|[A-Za-z]:[/\\])\S*|[^\s=]*\.\w{2,5}"
)
#: A key of an object, as names of storage have it: an id may stand in it.
_PATH = re.compile(r"[\w.\-/:=@]*/[\w.\-=@]*\.\w{2,8}|(?:s3|gs|file)://[\w.\-/=@]+")
_SHORTEST = 8


def is_kept(secrecy: Secrecy, value: str) -> bool:
    """Return whether the value may be shown, although its name is of that secrecy."""
    if secrecy is Secrecy.NONE or not value:
        return True
    plain = value.strip().strip("\"'`,;")
    lower = plain.lower()
    if lower in _NOTHING or not plain.strip("*") or not any(map(str.isalnum, plain)):
        return True
    if secrecy is Secrecy.ALWAYS:
        return False
    if _NUMBER.fullmatch(plain) or lower in _CHOICES or _STANDS_FOR.fullmatch(plain):
        return True
    if secrecy is Secrecy.IF_TEXT:
        return bool(_PLACE.fullmatch(plain)) and not is_random(plain)
    return not is_random(plain) or bool(_PATH.fullmatch(plain))


def is_random(text: str) -> bool:
    """Return whether the text looks drawn by lot: long, and no number, hash, id, path or words."""
    if len(text) < _SHORTEST or any(map(str.isspace, text)):
        return False
    known = (_NUMBER, _UUID, _HASH, _ORDINARY, _STANDS_FOR)
    return not any(form.fullmatch(text) for form in known)
