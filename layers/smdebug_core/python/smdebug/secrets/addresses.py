"""Secrets in addresses: user information, parameters of the query, and the path of a webhook."""

from __future__ import annotations

import re

from smdebug.secrets.names import Secrecy, secrecy_in_query, word_set
from smdebug.secrets.values import LEFT_OUT, is_kept, is_random

_BEGIN = re.compile(r"(?:(?<![A-Za-z0-9+.-])|(?<=[-+.]))([A-Za-z][A-Za-z0-9+]{0,19})://")
_END = re.compile(r"[\s\"'`<>\\]")
#: `me:my pass@host`: a password in which a space or a quote ends what looks like the address.
_GOES_ON = re.compile(r"[^/?#@:\s]{0,64}:(?!\d{1,5}(?!\w))[^/?#@\s]{1,100}+")
_REST_OF_USER = re.compile(r"[ \"'`<>][^\s@/:\"'`<>]{1,60}+(?=@[\w-])")
_PARAMETER = re.compile(r"([?&;#])([\w.\-~%\[\]$]++)=([^&;#]*+)")
_HOST_AFTER = re.compile(
    r"(?:[\w-]{1,63}\.){1,8}[A-Za-z][\w-]{0,62}(?:[:/?#,]|$)|localhost\b|[\w-]{1,63}:\d{2,5}(?:[/?#,]|$)"
    r"|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]{2,40}\]"
)
_VERSION = re.compile(r"v?\d+(?:\.\d+)*[\w.-]{0,12}$")
_PORT = re.compile(r"\d{1,5}")
_WEB = frozenset(("http", "https", "ws", "wss", "git", "ftp", "ftps"))
#: Schemes whose part before the `@` is a user or a container, and no secret by itself.
_NAMES_A_USER = word_set(
    "ssh sftp scp rsync abfs abfss wasb wasbs hdfs adl gs s3 s3a s3n file postgres postgresql mysql "
    "mariadb mssql oracle sqlite mongodb clickhouse bigquery snowflake mailto svn smb nfs cifs"
)
#: Services of apprise: the rest of the address is a token, in one order or another.
_ALERTS = word_set(
    "slack discord tgram telegram msteams teams workflows mmost mmosts pover pbul pushbullet ntfy ntfys "
    "gchat twilio signal signals whatsapp ifttt pagerduty pagertree opsgenie rocket rockets gotify "
    "gotifys hassio lark feishu dingtalk wxteams webex spush join prowl schan zulip sendgrid mailgun "
    "sparkpost mailto mailtos office365 o365 sns ses line bark splunk victorops threema vonage nexmo "
    "messagebird plivo clicksend matrix matrixs guilded revolt mastodon reddit twitter bluesky fcm "
    "onesignal pushed pushover pushy simplepush notifico ryver streamlabs synology wecombot apprise "
    "apprises signl4 spike chanify"
)
_BUCKETS = ("s3", "s3a", "s3n", "gs", "file")  # an `@` is a letter of a key
_HARMLESS_USERS = frozenset(("git", "user", "username", "$user", LEFT_OUT))
#: `$SLACK_TOKEN`, `user:$PASSWORD@host`: the environment has the secret.
_FILLED_IN_LATER = re.compile(r"(?:[\w.-]+:)?\$(?:\{[A-Z_][A-Z0-9_]*\}|[A-Z_][A-Z0-9_]*)(?:@[\w.-]+)?[,.;)]*")
_HOOK_PATH = re.compile(r"(?i)/(?:hooks?|webhooks?|incoming-?webhooks?|bot|ping|trigger)/(?!\*\*\*)")
_OPAQUE = re.compile(r"(?i)[0-9a-f-]{16,}|[A-Za-z0-9]{20,}")


def without_address_secrets(text: str) -> str:
    """Return the text with the secrets of its addresses left out."""
    if "://" not in text:
        return text
    begins = list(_BEGIN.finditer(text))
    parts: list[str] = []
    done = 0
    for number, begin in enumerate(begins):
        start = begin.end()
        end = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        found = _END.search(text, start, end)
        end = found.start() if found else end
        if found and _GOES_ON.fullmatch(text, start, end) and (rest := _REST_OF_USER.match(text, end)):
            parts += [text[done:start], LEFT_OUT]
            done = rest.end()
            continue
        parts += [text[done:start], _redacted(begin[1].lower(), text[start:end])]
        done = end
    return "".join([*parts, text[done:]])


def only_host(address: str) -> str:
    """Return the address as far as its host, if it goes on: the rest is all that is needed to post."""
    scheme, found, rest = address.partition("://")
    if not found:
        return address
    if scheme.lower() in _ALERTS:
        return f"{scheme}://{LEFT_OUT}"
    host, slash, path = rest.rpartition("@")[2].partition("/")
    host, asks, query = host.partition("?")
    more = path or query
    return f"{scheme}://{host}{slash or asks}{LEFT_OUT if more else ''}"


def _redacted(scheme: str, address: str) -> str:
    """Return what stands after `://`, without its secrets."""
    before, _, after = scheme.partition("+")  # `git+https`, `postgresql+psycopg2`
    scheme = after if before in ("git", "hg", "svn") and after else before
    if scheme in _ALERTS and any(map(str.isalnum, address)):
        return address if _FILLED_IN_LATER.fullmatch(address) else LEFT_OUT
    at = _end_of_user(scheme, address)
    if at is not None:
        address = f"{_user(scheme, address[:at])}@{address[at + 1 :]}"
    address = _PARAMETER.sub(_parameter, address)
    if scheme in _WEB and (hook := _HOOK_PATH.search(address)):
        path = re.split(r"[/?&=#]", address[hook.end() :])
        is_secret = any(is_random(part) or _OPAQUE.fullmatch(part) for part in path)
        return address[: hook.end()] + LEFT_OUT if is_secret else address
    return address


def _end_of_user(scheme: str, address: str) -> int | None:
    """Return where the `@` stands that ends the user information; None if there is none."""
    if "@" not in address:
        return None
    authority = re.split(r"[/?#]", address, maxsplit=1)[0]
    before_query = re.split(r"[?#]", address, maxsplit=1)[0]
    first = authority.rfind("@")
    last = before_query.rfind("@")
    last = last if last >= 0 else address.rfind("@")
    if last == first:
        return first
    goes_on = address[last + 1 :]
    is_host = bool(_HOST_AFTER.match(goes_on)) and not _VERSION.match(goes_on)
    if first >= 0:  # `me:p@w/x@host` or `me:pw@host/repo@main`
        return last if is_host and ":" in authority[:first] else first
    name, colon, after = authority.partition(":")
    if colon and not _PORT.fullmatch(after):
        return last if after or is_host else None  # a password with a `/` in it
    is_token = scheme in _WEB and not colon and "." not in name and name != "localhost"
    return last if is_host and (colon or is_token) and scheme not in _BUCKETS else None


def _user(scheme: str, user: str) -> str:
    name, colon, password = user.partition(":")
    if not colon:
        kept = scheme in _NAMES_A_USER or name.lower() in _HARMLESS_USERS
        return name if kept else LEFT_OUT
    if _FILLED_IN_LATER.fullmatch(password):
        return user
    if not password:
        return user if name.lower() in _HARMLESS_USERS else f"{LEFT_OUT}:"
    if scheme in _WEB or scheme in _BUCKETS:
        return LEFT_OUT  # the name may be the token: `https://TOKEN:x-oauth-basic@host`
    return f"{name}:{LEFT_OUT}"


def _parameter(found: re.Match[str]) -> str:
    begin, name, value = found.groups()
    if secrecy_in_query(name) is Secrecy.NONE or is_kept(secrecy_in_query(name), value):
        return found[0]
    return f"{begin}{name}={LEFT_OUT}"
