"""Secrets in command lines and lists of texts: `--token x`, `--api-key -x`, `TOKEN=x`, `-p x`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from enum import Enum

from smdebug.secrets.addresses import only_host
from smdebug.secrets.names import Secrecy, names_address, secrecy_of
from smdebug.secrets.texts import redacted
from smdebug.secrets.values import LEFT_OUT, is_kept, is_random

#: An option and nothing else: `--lr`, `--adam_beta1=0.9`, `-p`, but not `-Xk29` or `--9aF`.
_OPTION = re.compile(
    r"--[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*(?:=.*)?|-[A-Za-z](?:=.*)?|-[a-z]{2,12}|--", re.DOTALL
)
_PAIR = re.compile(r"(\+{0,2}[\w.\-@/]{1,120}|~?[\w.]{1,120})(=|:[^\S\n]{0,4}(?!//))")
_SHORT_PASSWORD = re.compile(r"[a-z]{1,4}\d{0,4}|\d+[a-z]?|\d+-mixed|[a-z]{1,12}(?:[-_][a-z]{1,12})*")
_LONGEST_CHECKED = 20_000


class _Next(Enum):
    """What the argument after an option may be, other than the value of a name."""

    MAYBE_A_PASSWORD = 1  # of `-p`, which is a port as often
    USER = 2  # of `-u`: `user:password`
    ADDRESS = 3  # of `--notify`
    LOGIN = 4  # after `wandb login`


def redacted_command(arguments: Iterable[str], not_secret: Collection[str] = ()) -> list[str]:
    """Return a command line, or another list of texts, with `***` in the place of its secrets."""
    shown: list[str] = []
    expected: Secrecy | _Next = Secrecy.NONE
    takes_many = False
    for argument in arguments:
        is_option = bool(_OPTION.fullmatch(argument[:_LONGEST_CHECKED]))
        if expected is not Secrecy.NONE and not is_option:
            shown.append(_after_option(expected, argument, not_secret))
            expected = expected if takes_many else Secrecy.NONE
            continue
        shown.append(redacted_argument(argument, not_secret))
        expected = _expected_after(argument, not_secret)
        takes_many = argument.endswith("s") and argument.startswith("-")
    return shown


def redacted_argument(argument: str, not_secret: Collection[str] = ()) -> str:
    """Return one argument, in which all that follows `NAME=` is its value, without its secrets."""
    pair = _PAIR.match(argument)
    if pair is None:
        attached = argument[2:]
        if argument.startswith("-p") and is_random(attached) and any(map(str.isdigit, attached)):
            return f"-p{LEFT_OUT}"
        return redacted(argument, not_secret)
    begin, value = argument[: pair.end()], argument[pair.end() :]
    name = pair[1].lstrip("-+~")
    if names_address(name) and "://" in value:
        return begin + redacted(only_host(value), not_secret)
    is_shown = is_kept(secrecy_of(name, not_secret), value)
    return redacted(argument, not_secret) if is_shown else begin + LEFT_OUT


def _expected_after(argument: str, not_secret: Collection[str]) -> Secrecy | _Next:
    """Return what the next argument is a value of."""
    if argument == "login":
        return _Next.LOGIN
    if argument.isidentifier() and "_" in argument:  # `configure set api_key …`
        is_name = secrecy_of(argument, not_secret) in (Secrecy.IF_TEXT, Secrecy.ALWAYS)
        return Secrecy.IF_RANDOM if is_name else Secrecy.NONE
    if not argument.startswith("-") or "=" in argument or any(map(str.isspace, argument)):
        return Secrecy.NONE
    if argument in ("-p", "-pw", "--p"):
        return Secrecy.ALWAYS if argument == "-pw" else _Next.MAYBE_A_PASSWORD
    if argument in ("-u", "--user", "-U", "--userpwd", "--proxy-user", "--credentials-pair", "--login"):
        return _Next.USER
    name = argument.lstrip("-")
    secrecy = secrecy_of(name, not_secret)
    if secrecy is Secrecy.NONE and names_address(name):
        return _Next.ADDRESS
    return secrecy


def _after_option(expected: Secrecy | _Next, argument: str, not_secret: Collection[str]) -> str:
    match expected:
        case _Next.MAYBE_A_PASSWORD:
            is_other = _SHORT_PASSWORD.fullmatch(argument) or is_kept(Secrecy.IF_TEXT, argument)
            return (
                redacted_argument(argument, not_secret)
                if is_other or ("/" in argument and not is_random(argument))
                else LEFT_OUT
            )
        case _Next.USER:
            user, colon, password = argument.partition(":")
            is_id = user.isdigit() and password.isdigit()  # of a user and a group
            is_pair = colon and password and "//" not in argument and not is_id
            return f"{user}:{LEFT_OUT}" if is_pair else redacted(argument, not_secret)
        case _Next.ADDRESS:
            return redacted(only_host(argument), not_secret)
        case _Next.LOGIN:
            is_key = is_random(argument) or re.fullmatch(r"[0-9a-f]{32,64}", argument)
            return LEFT_OUT if is_key else redacted_argument(argument, not_secret)
        case _:
            return redacted_argument(argument, not_secret) if is_kept(expected, argument) else LEFT_OUT
