"""Secrets in any text: a note, a line of a log, an error, JSON, a command in one piece.

Each pattern begins where a word begins, and nothing is read again that an unlimited part has read: the time
is in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from smdebug.secrets.addresses import only_host, without_address_secrets
from smdebug.secrets.forms import without_known_forms
from smdebug.secrets.layouts import begin_of_value, end_of_parameters, lines_below, without_options
from smdebug.secrets.names import Secrecy, names_address, secrecy_of, word_set
from smdebug.secrets.values import LEFT_OUT, is_kept, is_random

_GAP: Final = r"[^\S\n]{0,40}"
_TYPED: Final = rf":{_GAP}(?:str|bytes|SecretStr|Optional\[str\]){_GAP}="
#: A quote, as JSON in JSON, HTML and JavaScript write it.
_MARK: Final = r"\\{0,8}[\"'`]|&quot;|&#3[49];|\\{1,8}u002[27]"
#: `=` or `:`, as addresses, HTML, JavaScript and C write them.
_ENCODED: Final = (
    r"%3[ADad]|&#(?:61|58|[xX]3[ADad]);|&(?:equals|colon);|\\{1,8}(?:u003|x3)[ADad]|\\{1,8}07[25]"
)
#: A name with what separates it from its value: `NAME=`, `name: `, `"name": `, `['name'] = `, `name%3D`.
_NAME = re.compile(
    r"(?<![\w.\-])(?P<name>(?:[^\WA-Za-z]|[.\-])*+[A-Za-z][\w.\-]*+)(?:"
    rf"(?P<quote>{_MARK})?(?:\])?(?:{_GAP}(?:{_TYPED}|=>|:=|==?|:|\uff1a){_GAP}|{_ENCODED})"
    rf"|(?P<comma>\\{{0,8}}[\"']){_GAP},{_GAP}(?=\\{{0,8}}[\"'])"
    r"|(?P<space>[^\S\n]{1,8}(?=[^\s|])|[^\S\n]{0,8}[|,][^\S\n]{0,8}(?=[^\s\"'`]))|(?P<tag>>))"
)
_QUOTE = re.compile(
    r"[bBrRuUfF]{0,2}(\\{0,8}(?:\"\"\"|'''|[\"'`]))|(&quot;|&#3[49];|\\{1,8}u002[27])|(?:%22)"
)
_WORD = re.compile(r"(?:[^\s,;&\"'`<>|)\]}]++|[,;&|)\]}](?![\s,;&)\]}\"'`]|$|[\w.\-]{1,60}\s{0,3}[=:]))++")
_CELL = re.compile(r"[^\s,;|\"'`]*+")
_LINE = re.compile(r"[^\n\"'`\\]++")
_INDENT = re.compile(r"[ \t]{0,40}")
_BRACKETS = re.compile(r"[\[\](){}]")
_CREDENTIAL_KINDS = word_set("bearer basic token digest negotiate apikey api-key key ntlm")
_HEADERS = ("authorization", "cookie", "cookies", "proxy-authorization", "set-cookie")
#: After `--token`, in prose.
_PROSE = word_set(
    "to or and is in for the with if was as option options must needs need a an of from not has are can it "
    "that which when will should may argument value values on at by instead be"
)
_BEARER = re.compile(r"(?i)(?<![\w-])(bearer|basic|negotiate)([^\S\n]{1,4})([\w+/=.~:\-]{6,}+)")
_SAID = re.compile(
    r"(?i)(?<![\w-])(pass(?:word|wort|phrase|code)|token|secret|(?:api|access|secret)[ _-]key|pin|pw)"
    r"(\s{1,3}(?:is|was|ist|are)\s{1,3}|\s{1,3})([^\s\"'`]+)"
)
#: `passphrase "two words"`, `token is 'a1b2'`.
_QUOTED = re.compile(
    r"(?i)(?<![\w-])((?:pass(?:word|wort|phrase|code)|(?:token|secret|(?:api|access|secret)[ _-]key|pin|pw)"
    r"\s{1,3}(?:is|was|ist))(?:\s{1,3}(?:is|was|ist))?\s{1,3})([\"'`])([^\"'`\n]{4,200})\2"
)
#: `Invalid API key provided: …`
_PROVIDED = re.compile(
    r"(?i)(?<![\w-])(?:pass(?:word|wort|phrase|code)|token|secret|(?:api|access|secret)[ _-]key)"
    r"(?:\s[a-z]{2,12}){1,3}\s?[:=]\s{0,3}[\"'`]?(?P<value>[^\s\"'`]{8,200})"
)
_BARE_USER = re.compile(
    r"(?<![\w.\-:@/])([\w.\-]{1,64}):([^\s@:/\"'`*]{1,200})@(?=(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,}|localhost|tcp\(|\d{1,3}\.\d{1,3}\.)"
)
_NAMED_VALUE = re.compile(
    r"(?i)([\"'](?:name|key)[\"']\s{0,4}:\s{0,4}[\"']|(?<!\w)(?:name|key|id)=[\"'])([\w.\-]{1,120})"
    r"([\"']\s{0,4},\s{0,4}[\"']value[\"']\s{0,4}:\s{0,4}[\"']|[\"']\s{1,4}value=[\"'])"
    r"([^\"'\n]*)"
)


def redacted(text: str, not_secret: Collection[str] = ()) -> str:
    """Return the text with `***` in the place of its secrets; names in `not_secret` name none.

    >>> redacted("curl -H 'Authorization: Bearer abc' https://me:pw@host/?sig=x&n=1")
    "curl -H 'Authorization: ***' https://***@host/?sig=***&n=1"
    """
    if len(text) < _SHORTEST:
        return text
    text = without_address_secrets(without_known_forms(text))
    if ":" in text and "@" in text:
        text = _BARE_USER.sub(rf"\1:{LEFT_OUT}@", text)
    if "value" in text or "Value" in text:
        text = _NAMED_VALUE.sub(_named_value, text)
    if _MAY_HOLD_A_PAIR.search(text):
        text = _without_pairs(text, not_secret)
    text = _BEARER.sub(_bearer, without_options(text))
    text = _PROVIDED.sub(_provided, text)
    return _SAID.sub(_said, _QUOTED.sub(_quoted, text))


def redacted_line(error: BaseException) -> str:
    """Return the message of an error in one line, without secrets."""
    return redacted(" ".join(str(error).split()))


_SHORTEST = 5
_MAY_HOLD_A_PAIR = re.compile(r"[=:,>|\uff1a]|%3|&#|&equals|&colon|\\[ux0]|(?<![\w.\-])-|[A-Za-z]_[A-Za-z]")


def _without_pairs(text: str, not_secret: Collection[str]) -> str:
    """Return the text without the values of secret names."""
    parts: list[str] = []
    done = at = 0
    while found := _NAME.search(text, at):
        at = found.end()
        secret = _secret_after(text, found, not_secret)
        if secret is not None:
            start, end = secret
            parts += [text[done:start], LEFT_OUT]
            done = at = end
    return "".join([*parts, text[done:]])


def _secret_after(text: str, found: re.Match[str], not_secret: Collection[str]) -> tuple[int, int] | None:
    """Return where the value after that name begins and ends; None if it may stay."""
    name = found["name"]
    is_option = name.startswith("-")
    if found["tag"] is not None and (found.start() == 0 or text[found.start() - 1] != "<"):
        return None
    plain = name.lstrip("-")
    if found.start() and text[found.start() - 1] == "%":
        plain = plain[2:]  # of `%3Ftoken%3D`
    secrecy = secrecy_of(plain, not_secret)
    if secrecy in (Secrecy.NONE, Secrecy.IF_RANDOM) and plain.lower() in ("key", "keys"):
        before = text[max(0, found.start() - 12) : found.start()]  # `api key: …`
        secrecy = max(secrecy, secrecy_of(before.rstrip().rpartition(" ")[2] + "_key"), key=_ORDER.index)
    if name == "-p":
        secrecy = Secrecy.IF_RANDOM  # a port as often
    if found["space"] is not None and not is_option and secrecy is Secrecy.IF_RANDOM:
        return None
    if secrecy is Secrecy.NONE:
        is_address = names_address(plain) and (found["space"] is None or is_option)
        return _address(text, found) if is_address else None
    if ":" in found[0] and (below := lines_below(text, found.start(), found.end(), secrecy)):
        return below
    start, end = _value(text, found, plain.lower(), secrecy)
    value = text[start:end]
    if found["space"] is not None and (value.lower().rstrip(".,:") in _PROSE or _OPTION.fullmatch(value)):
        return None
    if found["space"] is not None and not is_option:  # `set HF_TOKEN …`, or prose
        return (start, end) if is_random(value) and any(map(str.isdigit, value)) else None
    if found["comma"] is not None and not _looks_drawn(value):
        return None  # the names of two things
    return None if is_kept(secrecy, value) else (start, end)


_ORDER = list(Secrecy)
_OPTION = re.compile(r"--?[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*(?:=.*)?|-[A-Za-z0-9]")


def _value(text: str, found: re.Match[str], name: str, secrecy: Secrecy) -> tuple[int, int]:
    """Return where the value begins and ends: in quotes, in brackets, a word, or the rest of the line."""
    start = found.end()
    if found["tag"] is not None:
        end = text.find("<", start)
        return start, len(text) if end < 0 else end
    if found["space"] is not None and found[0].rstrip()[-1] in "|," and (cell := _CELL.match(text, start)):
        return start, cell.end()
    start = begin_of_value(text, start)
    quote = _QUOTE.match(text, start)
    if quote:
        return quote.end(), _end_of_quoted(text, quote.end(), quote[1] or quote[2] or "%22")
    if text[start : start + 1] in ("[", "(", "{"):
        return (start, start) if secrecy is Secrecy.IF_RANDOM else (start, _end_of_brackets(text, start))
    inside = found["quote"] is not None
    is_header = name.rpartition(".")[2] in _HEADERS
    begins_line = found.start() == 0 or text[found.start() - 1] == "\n"
    is_password = secrecy is Secrecy.ALWAYS and ":" in found[0] and begins_line
    if not inside and (is_header or is_password) and (line := _LINE.match(text, start)):
        return start, max(line.end(), end_of_parameters(text, start) if is_header else 0)
    end = _end_of_word(text, start)
    if end == start and secrecy is Secrecy.ALWAYS and text[start : start + 1] == "\n":
        start += 1 + len(_INDENT.match(text, start + 1)[0])  # type: ignore[index]
        end = _end_of_word(text, start)
    if text[start:end].lower() in _CREDENTIAL_KINDS and text[end : end + 1] == " ":
        end = _end_of_word(text, end + 1)
    return start, end


def _end_of_word(text: str, start: int) -> int:
    word = _WORD.match(text, start)
    return word.end() if word else start


def _end_of_quoted(text: str, start: int, quote: str) -> int:
    """Return where the quote is closed; the end of the text if it is not."""
    at = start
    while (at := text.find(quote, at)) >= 0:
        before = at
        while before > start and text[before - 1] == "\\":
            before -= 1
        if (at - before) % 2 == 0 or quote.startswith("\\"):
            return at
        at += 1
    return len(text)


def _end_of_brackets(text: str, start: int) -> int:
    depth = 0
    for bracket in _BRACKETS.finditer(text, start):
        depth += 1 if bracket[0] in "[({" else -1
        if depth == 0:
            return bracket.end()
    return len(text)


def _address(text: str, found: re.Match[str]) -> tuple[int, int] | None:
    """Return where the path of the address begins and ends that a name such as `hook_url` has."""
    quote = _QUOTE.match(text, found.end())
    start = quote.end() if quote else found.end()
    end = _end_of_quoted(text, start, quote[1] or quote[2] or "%22") if quote else _end_of_word(text, start)
    address = text[start:end]
    if "://" not in address[:40]:
        return None
    shown = only_host(address)
    if shown == address or not shown.endswith(LEFT_OUT):
        return None
    return start + len(shown) - len(LEFT_OUT), end


def _bearer(found: re.Match[str]) -> str:
    kind, gap, value = found.groups()
    is_word = value.rstrip(".:").isalpha() and value.islower() and len(value) < 20
    return found[0] if is_word or not _looks_drawn(value) else f"{kind}{gap}{LEFT_OUT}"


def _said(found: re.Match[str]) -> str:
    """Leave out what `password is …` says, if it has digits or signs: words may go on."""
    name, verb, value = found.groups()
    value = value.rstrip(".,;:!?)")
    if not verb.strip():
        is_said = is_random(value) and bool(re.search(r"\d", value)) and not value.startswith(("(", "<", "["))
    else:
        is_said = _looks_drawn(value)
    return f"{name}{verb}{LEFT_OUT}{found[3][len(value) :]}" if is_said else found[0]


def _quoted(found: re.Match[str]) -> str:
    """Leave out what is quoted after `password`, if it has digits or signs."""
    said, quote, value = found.groups()
    return f"{said}{quote}{LEFT_OUT}{quote}" if _looks_drawn(value) else found[0]


def _looks_drawn(value: str) -> bool:
    has_digit = any(map(str.isdigit, value))
    has_letter = any(map(str.isalpha, value))
    return (
        len(value) >= 20
        or (has_digit and has_letter)
        or (has_letter and not value.isalpha() and "-" not in value)
    )


def _named_value(found: re.Match[str]) -> str:
    begin, name, between, value = found.groups()
    return found[0] if is_kept(secrecy_of(name), value) else f"{begin}{name}{between}{LEFT_OUT}"


def _provided(found: re.Match[str]) -> str:
    """Leave out what an error quotes, if it looks drawn by lot."""
    value = found["value"].rstrip(".,;:!?)")
    if not (is_random(value) and any(map(str.isdigit, value))):
        return found[0]
    at = found.start("value") - found.start()
    return f"{found[0][:at]}{LEFT_OUT}{found[0][at + len(value) :]}"
