"""What a name says of its value: is `hub_token` a secret, is `pad_token`?"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum
from functools import lru_cache


class Secrecy(Enum):
    """What the name of a value says about it."""

    NONE = "none"
    """An ordinary name."""
    IF_RANDOM = "if random"
    """A name of keys of any kind: a secret if the value looks like one, as of `dataset_key`."""
    IF_TEXT = "if text"
    """A secret, unless the value is a number, a flag, a path or a token of a vocabulary."""
    ALWAYS = "always"
    """A secret, even if the value is a number."""


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PASSWORDS = word_set(
    "password passwords passwd passphrase passcode pwd psw pswd passwort kennwort contrasena senha mdp"
)
_SECRETS = word_set(
    "secret secrets credential credentials creds apikey apikeys apitoken authtoken accesstoken accesskey "
    "secretkey privatekey accountkey bearertoken webhook webhooks dsn cookie cookies bearer authorization "
    "oauth oauth2 jwt netrc htpasswd sessionid"
)
_KINDS = word_set("cookie cookies bearer oauth oauth2 jwt")  # `cookie_monster`
_GLUED = ("password", "passwd", "passphrase", "apikey", "secretkey", "accesskey", "privatekey", "secret")
_WEAKLY_GLUED = ("token", "key", "pwd", "passwort", "credentials")
#: `<word>_key` is a secret: what a key opens, and the services that give one out.
_KEYS_OF = word_set(
    "api access secret private account encryption license signing ssh sas auth hmac master storage admin "
    "subscription client consumer webhook integration routing instrumentation bot hub repo registry wandb "
    "wb openai anthropic claude hf huggingface comet neptune mlflow clearml azure aws gcp google gemini "
    "cohere mistral groq deepseek perplexity stripe sendgrid twilio mailgun slack discord telegram github "
    "gitlab sentry datadog dd newrelic rapidapi serp serpapi serper tavily pinecone weaviate qdrant "
    "kaggle roboflow ngc nvidia runpod labelbox pagerduty opsgenie pushover ntfy elevenlabs assemblyai "
    "deepgram langsmith langchain langfuse fireworks openrouter xai voyage s3 minio b2 r2 gcs supabase "
    "firebase algolia mapbox redis mongo mongodb postgres mysql"
)
#: Words before `token` that make it one of a vocabulary or of a model.
_TOKENS_OF_TEXT = word_set(
    "pad eos bos unk sep cls mask start end image audio video decoder encoder additional special extra "
    "max min num per first last next prev previous prefix suffix class register begin stop vision text "
    "time box boi eoi distill boa eoa sot eot padding unknown separator sub pre post n total avg mean "
    "target source src tgt lang language speech think thinking distillation cluster global visual query"
)
#: Words after `token` or another secret's name that make it a fact about one.
_ABOUT = word_set(
    "length len size sizes count counts num number min max limit limits type types index indices name "
    "names file files path paths dir directory folder location env var variable policy rules required "
    "enabled expiry expires expiration timeout ttl lifetime age attempts retries interval steps step "
    "epochs rate ratio dim dims dimension dimensions head heads dropout drop prob probability embedding "
    "embeddings ids mode format encoding strength provider manager store arn version classification "
    "merging mixing pooling budget level weight weights loss per field column header scheme method "
    "backend proj projection norm bias init scale mask map shape layer layers cache value_dim sharing "
    "hidden features states"
)
_ID = "id"
_HOOKS = word_set(
    "hook notify notification notifications notifier alert alerts alerting callback ping slack discord "
    "teams telegram mattermost pagerduty apprise sentry healthcheck healthchecks"
)
_SHORT = {
    "pin": Secrecy.IF_TEXT,
    "pass": Secrecy.IF_TEXT,
    "pw": Secrecy.IF_TEXT,
    "auth": Secrecy.IF_TEXT,
    "pat": Secrecy.IF_RANDOM,
}
_IN_QUERIES = word_set(
    "key sig signature token auth code pass pw pwd password secret apikey hmac sign ticket session sid "
    "nonce assertion credential credentials policy hash_key k access_token st"
)
_CONTAINERS = word_set("secrets credentials creds passwords cookies")
_OF_WHAT_IS_ABOVE = word_set("key keys value token pass pw")


def secrecy_of(name: str, not_secret: Collection[str] = ()) -> Secrecy:
    """Return what the name says: `db.password`, `--hub-token`, `WANDB_API_KEY`, but not `pad_token`.

    Names in `not_secret` (in any case, the whole name or its last part) say nothing.
    """
    if not_secret and is_listed(name, not_secret):
        return Secrecy.NONE
    return _secrecy_of(name[-_LONGEST_NAME:])


@lru_cache(maxsize=2048)
def _secrecy_of(name: str) -> Secrecy:
    *above, last = name.split(".")
    words = _words_in(last)
    if len(words) == 1 and above and words[0] in _OF_WHAT_IS_ABOVE:  # `wandb.key`, `token.value`
        words = _words_in(above[-1])[-2:] + words
    if not words:
        return Secrecy.NONE
    found = max((_secrecy_at(words, at) for at in range(len(words))), key=_ORDER.index)
    if found is Secrecy.NONE:
        inside = any(word in _CONTAINERS for part in above for word in _words_in(part))
        return Secrecy.IF_TEXT if inside and words[-1] not in _ABOUT else Secrecy.NONE
    return Secrecy.IF_RANDOM if words[-1] in _ABOUT else found


def is_listed(name: str, names: Collection[str]) -> bool:
    """Return whether the name, or its last part, is among these: `--Auth-Key` is `auth_key`."""
    lower = _plain(name)
    return any(lower == listed or lower.rpartition(".")[2] == listed for listed in map(_plain, names))


def _plain(name: str) -> str:
    return name.lower().lstrip("-+").replace("-", "_")


def _words_in(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def secrecy_in_query(name: str) -> Secrecy:
    """Return what the name of a query's parameter says: there, `key`, `sig` and `code` are secrets, too."""
    words = _words_in(name[-_LONGEST_NAME:])
    if words and (words[-1] in _IN_QUERIES or (words[-1] == _ID and "access" in words)):
        return Secrecy.ALWAYS
    return secrecy_of(name)


def names_address(name: str) -> bool:
    """Return whether an address of that name is all that is needed to post, as of `hook_url`."""
    words = _words_in(name[-_LONGEST_NAME:].rpartition(".")[2])
    return not _HOOKS.isdisjoint(words)


_LONGEST_NAME = 120
_ORDER = list(Secrecy)


def _secrecy_at(words: list[str], at: int) -> Secrecy:
    """Return what the word at that place says, with those around it."""
    word = words[at]
    if word in _PASSWORDS:
        return Secrecy.ALWAYS
    if word in _SECRETS:
        is_about_one = word in _KINDS and at < len(words) - 1
        return Secrecy.IF_RANDOM if is_about_one else Secrecy.IF_TEXT
    if word in _SHORT:
        is_alone = len(words) == 1 or (at == len(words) - 1 and words[at - 1] not in _PASSES_OF)
        return _SHORT[word] if is_alone else Secrecy.NONE
    if word in ("token", "tokens"):
        return _secrecy_of_token(words, at)
    if word in ("key", "keys"):
        return _secrecy_of_key(words, at)
    if word in ("signature", "sig"):
        return Secrecy.IF_RANDOM
    if len(word) > 6 and word.endswith(_GLUED) and word not in _NOT_GLUED:
        return Secrecy.ALWAYS if word.endswith(("password", "passwd")) else Secrecy.IF_TEXT
    if len(word) > 6 and word.endswith(_WEAKLY_GLUED) and word not in _NOT_GLUED:
        return Secrecy.IF_RANDOM
    return Secrecy.NONE


_PASSES_OF = word_set("forward backward one two single multi first second num n per high low band all")
_NOT_GLUED = word_set("donkey monkey turkey hockey whiskey jockey keypass subtoken pretoken detoken")


def _secrecy_of_token(words: list[str], at: int) -> Secrecy:
    if words[at] == "tokens":
        return Secrecy.IF_RANDOM
    before, after = words[:at], words[at + 1 :]
    if _TOKENS_OF_TEXT.intersection(before):
        return Secrecy.IF_RANDOM if before[-1] not in _KEYS_OF and not after else Secrecy.NONE
    if after and after[-1] in (*_ABOUT, _ID):
        return Secrecy.NONE
    return Secrecy.IF_TEXT if not after or after[-1] in _VALUES else Secrecy.IF_RANDOM


_VALUES = word_set("value string str text secret plain raw b64 base64")


def _secrecy_of_key(words: list[str], at: int) -> Secrecy:
    if at and words[at - 1] in _KEYS_OF and (words[at] == "key" or words[at - 1] in _PLAINLY_SECRET):
        return Secrecy.IF_TEXT
    return Secrecy.IF_RANDOM if at == len(words) - 1 else Secrecy.NONE


_PLAINLY_SECRET = word_set("api access secret private signing encryption ssh")
