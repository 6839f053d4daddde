"""Secrets that are recognised by their form: tokens of well-known services, keys in PEM, webhooks.

No pattern asks for anything after an unlimited part, so each takes time in proportion to the text.
"""

from __future__ import annotations

import re

from smdebug.secrets.values import LEFT_OUT

_BEGIN = r"(?<![A-Za-z0-9])"
_TOKENS = re.compile(
    _BEGIN
    + r"(?:"
    + "|".join(
        (
            r"sk-(?=[\w-]{0,60}\d)[\w-]{16,}",  # OpenAI, Anthropic and many others
            r"sk-[A-Za-z0-9]{16,}",
            r"(?:sk|rk|pk)_(?:live|test|prod)_\w{8,}",  # Stripe
            r"whsec_[\w+/=]{16,}",
            r"hf_[A-Za-z0-9]{16,}",
            r"api_org_[A-Za-z0-9]{16,}",
            r"gh[pousr]_[A-Za-z0-9]{16,}",
            r"github_pat_\w{16,}",
            r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas)-[\w.-]{16,}",
            r"xox[a-z]-[\w-]{10,}",
            r"xapp-\d-[\w-]{10,}",
            r"(?:A[KS]IA|AROA|AIDA|AGPA|ABIA|ACCA)[A-Z0-9]{16}"
            r"(?:[:,/ ]{1,2}[A-Za-z0-9/+=]{40}(?![A-Za-z0-9/+=]))?",  # and the secret beside it
            r"AIza[\w-]{30,}",
            r"ya29\.[\w-]{20,}",
            r"GOCSPX-[\w-]{16,}",
            r"eyJ[\w-]{10,}(?:\.[\w-]+){0,4}",  # JSON web tokens
            r"npm_[A-Za-z0-9]{16,}",
            r"pypi-(?=[\w-]{0,60}\d)[\w-]{16,}",
            r"pypi-AgE[\w-]{16,}",
            r"SG\.[\w-]{16,}(?:\.[\w-]+)?",
            r"SK[0-9a-f]{32}",
            r"key-[0-9a-f]{32}",
            r"(?:gsk|r8|pcsk|rpa|jina|lsv2|shpat|shpss|shppa|glsa|figd|dop_v1|doo_v1|lin_api|hvs|hvb|pul|fw|"
            r"sntrys|sntryu|wandb_v\d|phc|phx|re|sbp|nfp|vcp|ATATT)[_.](?=\w{0,60}\d)[\w-]{20,}",
            r"(?:nvapi|tvly|pplx|xai|csk|PMAK|NRAK|NRJS|dckr_pat|sq0atp|sq0csp)-"
            r"(?=[\w-]{0,60}\d)[\w-]{16,}",
            r"dckr_pat_[\w-]{16,}",
            r"dapi[0-9a-f]{32}",
            r"ATATT[\w=-]{20,}",
            r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
            r"\d{8,10}:AA[\w-]{30,}",  # bots of Telegram
            r"[MNO][A-Za-z0-9]{23,27}\.[\w-]{6}\.[\w-]{27,}",  # bots of Discord
        )
    )
    + ")"
)
#: The path of such an address is all that is needed to post. With or without a scheme.
_WEBHOOKS = re.compile(
    r"(?i)(?<![a-z0-9])("
    + "|".join(
        (
            r"hooks\.slack(?:-gov)?\.com",
            r"(?:canary\.|ptb\.)?discord(?:app)?\.com/api(?:/v\d{1,2})?/webhooks",
            r"outlook\.office(?:365)?\.com/webhook[\w-]{0,8}",
            r"webhook\.office(?:365)?\.com",
            r"logic\.azure\.com(?::\d{1,5})?",
            r"powerplatform\.com(?::\d{1,5})?",
            r"api\.telegram\.org",
            r"events(?:\.eu)?\.pagerduty\.com",
            r"hooks\.zapier\.com",
            r"hook\.(?:[a-z0-9]{2,4}\.)?(?:make|integromat)\.com",
            r"maker\.ifttt\.com",
            r"ntfy\.sh",
            r"open\.(?:feishu\.cn|larksuite\.com)",
            r"oapi\.dingtalk\.com",
            r"qyapi\.weixin\.qq\.com",
            r"chat\.googleapis\.com",
            r"hooks\.chime\.aws",
            r"hc-ping\.com",
            r"cronitor\.link",
            r"webhook\.site",
            r"api\.flock\.com/hooks",
            r"webexapis\.com/v1/webhooks",
            r"events\.(?:eu\.)?opsgenie\.com",
            r"api\.pushbullet\.com",
            r"api\.pushover\.net",
            r"alert\.victorops\.com",
            r"(?:in|hooks)\.(?:airtable|tines|pipedream)\.(?:com|net)",
        )
    )
    + r")/(?!\*\*\*)[^\s\"'`<>\\]+"
)
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
#: Lines of base64 after how many there are, and what guards them, as in a file of PuTTY.
_BREAK = r"(?:\r?\n|\\{1,8}r|\\{1,8}n|[^\S\n])"
_KEY_LINES = re.compile(
    rf"(Private-Lines:[^\S\n]{{0,4}}\d{{1,4}}{_BREAK}{{1,4}})"
    rf"[A-Za-z0-9+/=]{{4,100}}+(?=[\s\\]|$)(?:{_BREAK}{{1,4}}+[A-Za-z0-9+/=]{{4,100}}+(?=[\s\\]|$))*+"
)
_KEY_GUARD = re.compile(r"(Private-(?:MAC|Hash):[^\S\n]{0,4})[0-9a-f]{16,}")
#: Passwords as `crypt` and LDAP keep them, which can be guessed: `$2y$05$…`, `{SSHA}…`.
_HASHED = re.compile(
    r"\$(?:apr1|[1567y]|gy|2[abxy]?|scrypt|bcrypt|argon2(?:id?|d)|pbkdf2[\w-]{0,12}|sha1|md5)\$[\w./$=,+-]{16,}"
    r"|\{(?:S?(?:SHA|MD5)\d{0,3}|CRYPT)\}[A-Za-z0-9./$+=]{16,}"
)
_NETRC = re.compile(r"(\bmachine\s{1,4}\S{1,200}\s{1,4}login\s{1,4}\S{1,200}\s{1,4}password\s{1,4})\S{1,400}")
_LOGIN = re.compile(r"(?<![a-z])(login\b[^\n]{0,30}?\b)[0-9a-f]{40}\b")


def without_known_forms(text: str) -> str:
    """Return the text without tokens of well-known services, private keys and paths of webhooks."""
    if "PRIVATE KEY" in text:
        text = _without_keys(text)
    if "Private-" in text:
        text = _KEY_GUARD.sub(rf"\1{LEFT_OUT}", _KEY_LINES.sub(rf"\1{LEFT_OUT}", text))
    if "$" in text or "{" in text:
        text = _HASHED.sub(LEFT_OUT, text)
    text = _TOKENS.sub(LEFT_OUT, text)
    if "/" in text:
        text = _WEBHOOKS.sub(rf"\1/{LEFT_OUT}", text)
    if "login" in text:
        text = _NETRC.sub(rf"\1{LEFT_OUT}", _LOGIN.sub(rf"\1{LEFT_OUT}", text))
    return text


def _without_keys(text: str) -> str:
    parts: list[str] = []
    at = 0
    while begin := _PEM.search(text, at):
        end = _PEM_END.search(text, begin.end())
        parts += [text[at : begin.start()], LEFT_OUT]
        at = end.end() if end else len(text)
    return "".join([*parts, text[at:]])
