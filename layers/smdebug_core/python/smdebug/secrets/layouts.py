"""Values that do not follow their name directly: YAML's blocks and lists, options of other programs.

Nothing is read again that an unlimited part has read.
"""

from __future__ import annotations

import re

from smdebug.secrets.names import Secrecy
from smdebug.secrets.values import LEFT_OUT, is_kept, is_random

_INDENT = re.compile(r"[ \t]{0,40}")
_REST_OF_LINE = re.compile(r"[^\n]*\n?")
_BLOCK = re.compile(r"[|>][-+\d]{0,3}[^\S\n]{0,8}\n")
_ITEM = re.compile(r"-[^\S\n]{1,8}")
#: `&anchor `, `!!str `: before a value of YAML.
_DECORATION = re.compile(r"(?:&\w{1,40}[^\S\n]{1,8}|!!?\w{1,20}[^\S\n]{1,8}){1,2}")
#: `SecretStr('`, `bytes(b"`: what wraps a text.
_WRAPPER = re.compile(r"[A-Za-z_][\w.]{0,60}\([bru]?(?=\\{0,8}[\"'])")
_PARAMETERS = re.compile(r"[^\S\n]?[\w\-]{1,40}=(?:\"[^\"\n]*+\"|[^\s\",]++)(?:,[^\S\n]?)?")
_ATTACHED = re.compile(r"(?<!\S)(-p)([^\s\"'`]{8,}+)")
_USER = re.compile(
    r"(?<!\S)(-[uU]|--(?:user|userpwd|proxy-user|login))([= ]{1,3}[\"']?)([\w.\-@]{1,64}):(?!//)([^\s\"'`]+)"
)
_ENCODED_USER = re.compile(
    r"(?i)(%3A%2F%2F(?:[\w.\-]|%(?!3A|40|2F)){0,64}+%3A)((?:[^\s%&\"']|%(?!40|2F)){1,200}+)(?=%40)"
)


def begin_of_value(text: str, start: int) -> int:
    """Return where the value begins, behind what YAML or Python puts before a text."""
    for before in (_DECORATION, _WRAPPER):
        if found := before.match(text, start):
            start = found.end()
    return start


def end_of_parameters(text: str, start: int) -> int:
    """Return where `Hawk id="…", mac="…"` ends; the start if it is no such header."""
    space = text.find(" ", start, start + 24)
    if space <= start or not text[start:space].replace("-", "").isalnum():
        return start
    at = space + 1
    while found := _PARAMETERS.match(text, at):
        at = found.end()
    return at if at > space + 1 else start


def lines_below(text: str, name_start: int, start: int, secrecy: Secrecy) -> tuple[int, int] | None:
    """Return where a value in the lines below its name begins and ends: a block, or items of a list."""
    block = _BLOCK.match(text, start)
    begin = block.end() if block else start + 1
    if not block and text[start : start + 1] != "\n":
        return None
    line = text.rfind("\n", max(0, name_start - 200), name_start) + 1
    depth = _indent(text, line)
    indent = _indent(text, begin)
    if block:
        first, end = _lines_deeper(text, begin, depth)
        return None if is_kept(secrecy, text[first:end]) else (first, end)
    if indent < depth or not _ITEM.match(text, begin + indent):
        return None
    end = at = begin
    is_secret = False
    while _indent(text, at) == indent and (item := _ITEM.match(text, at + indent)):
        found = _REST_OF_LINE.match(text, item.end())
        end = at = found.end() if found else len(text)
        is_secret = is_secret or not is_kept(secrecy, text[item.end() : end].strip())
    return (begin + indent, end - (text[end - 1] == "\n")) if is_secret else None


def _lines_deeper(text: str, begin: int, depth: int) -> tuple[int, int]:
    at = begin
    while at < len(text) and (text[at] == "\n" or _indent(text, at) > depth):
        found = _REST_OF_LINE.match(text, at)
        at = found.end() if found else len(text)
    first = begin + _indent(text, begin)
    return first, max(first, at - (text[at - 1] == "\n"))


def _indent(text: str, at: int) -> int:
    found = _INDENT.match(text, at)
    return len(found[0]) if found else 0


def without_options(text: str) -> str:
    """Return the text without the passwords of `mysql -pX`, `curl -u me:X`, and encoded addresses."""
    if "-p" in text:
        text = _ATTACHED.sub(_attached, text)
    if ":" in text and "-" in text:
        text = _USER.sub(_user, text)
    return _ENCODED_USER.sub(rf"\1{LEFT_OUT}", text) if "%" in text else text


def _attached(found: re.Match[str]) -> str:
    option, value = found.groups()
    is_password = is_random(value) and any(map(str.isdigit, value))
    return f"{option}{LEFT_OUT}" if is_password else found[0]


def _user(found: re.Match[str]) -> str:
    option, gap, user, password = found.groups()
    is_id = user.isdigit() and password.isdigit()  # of a user and a group
    return found[0] if is_id or not password.strip("*") else f"{option}{gap}{user}:{LEFT_OUT}"
