"""Secrets to plant: names, forms and values, composed. Each has a number, by which it is found again."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

NAMES = [
    "token", "hub_token", "HF_TOKEN", "push_to_hub_token", "session_token", "accessToken", "auth_token",
    "wandb_api_key", "WANDB_API_KEY", "wandb_key", "openai-key", "OPENAI_API_KEY", "api-key", "apiKey",
    "APIKey", "api_keys", "password", "db.password", "userPassword", "PASSWORD", "Password", "passwd",
    "passphrase", "pwd", "db_pass", "pass", "pw", "auth", "secret", "client_secret", "clientSecret",
    "AWS_SECRET_ACCESS_KEY", "aws_access_key_id", "access_key", "private-key", "signing_key",
    "encryption_key", "AccountKey", "SharedAccessKey", "credentials", "logger.wandb.key", "secrets.db",
    "slack_webhook", "cookie", "dsn", "X-Api-Key", "X-Auth-Token", "mypassword", "hfapikey", "stripe_key",
    "azure_openai_api_key", "bearer",
]  # fmt: skip

#: How a value is written after a name, in any text.
PAIRS = [
    "{name}={value}",
    "{name}: {value}",
    "{name} = {value}",
    "--{name} {value}",
    "--{name}={value}",
    '"{name}": "{value}"',
    "'{name}': '{value}'",
    '{{"lr": 0.1, "{name}": "{value}", "n": 1}}',
    '"{{\\"{name}\\": \\"{value}\\", \\"n\\": 1}}"',
    "lr=0.1,{name}={value},n=1",
    "Server=db;{name}={value};Database=x",
    "Namespace(lr=0.1, {name}='{value}', n=1)",
    "python train.py --lr 1 --{name} {value} --n 1",
    "export {name}={value}; python train.py",
    "https://host/path?n=1&{name}={value}&m=2",
    "https://host/path?{name}={value}",
    "os.environ['{name}'] = '{value}'",
    "[('lr', 0.1), ('{name}', '{value}')]",
    "{{'name': '{name}', 'value': '{value}'}}",
    "first line\n{name}: {value}\nlast line",
    "lr: 0.1\n{name}: |\n  {value}\nn: 1",
    "{name}: >-\n    {value}\nn: 1",
    "a:\n  {name}:\n  - {value}\n  n: 1",
    "{name}: &anchor {value}",
    "{name}: !!str '{value}'",
    "Settings({name}=SecretStr('{value}'), n=1)",
    "&quot;{name}&quot;: &quot;{value}&quot;",
    "{{\\u0022{name}\\u0022:\\u0022{value}\\u0022}}",
    '<add key="{name}" value="{value}" />',
    "{name}\uff1a{value}",
]

#: Forms that say by themselves what is secret.
FORMS = [
    "Authorization: Bearer {value}",
    "curl -H 'Authorization: Basic {value}' https://host",
    "-H 'X-Api-Key: {value}'",
    "Authorization: token {value}",
    "got Bearer {value} from the server",
    "https://{value}@host/path",
    "https://me:{value}@host/path?n=1",
    "https://{value}:x-oauth-basic@github.com/org/repo.git",
    "git+https://{value}@github.com/org/repo@main",
    "postgres://me:{value}@db.host:5432/name",
    "postgresql+psycopg2://me:a/{value}@db.host/name",
    "mongodb+srv://me:a@b{value}@cluster.mongodb.net",
    "redis://:{value}@cache:6379/0",
    "amqp://me:{value}/x@mq.host",
    "me:{value}@db.host.com",
    "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=A&X-Amz-Signature={value}&X-Amz-Expires=9",
    "https://a.blob.core.windows.net/c?sv=2024&sig={value}",
    "https://host/x?signature={value}",
    "https://host/x?key={value}#top",
    "https://host/x#access_token={value}",
    "https://host/x?code={value}",
    "https://hooks.slack.com/services/T00/B00/{value}",
    "https://discord.com/api/webhooks/123/{value}",
    "https://discordapp.com/api/webhooks/123/{value}",
    "https://team.webhook.office.com/webhookb2/{value}/IncomingWebhook/x",
    "https://prod-1.westus.logic.azure.com:443/workflows/{value}/triggers",
    "https://api.telegram.org/bot123:{value}/sendMessage",
    "https://events.pagerduty.com/integration/{value}/enqueue",
    "https://hooks.zapier.com/hooks/catch/1/{value}/",
    "https://maker.ifttt.com/trigger/e/with/key/{value}",
    "https://chat.googleapis.com/v1/spaces/a/messages?key=a&token={value}",
    "https://ntfy.sh/{value}",
    "hooks.slack.com/services/T00/B00/{value}",
    "slack://T00/B00/{value}",
    "mailto://me:{value}@host",
    "tgram://123:{value}/chat",
    "hook_url={value_url}",
    "--notify {value_url}",
    '{{"webhook_url": "{value_url}"}}',
    "password: {value}",
    "the password is {value}.",
    "api key: {value}",
    "<password>{value}</password>",
    "-----BEGIN RSA PRIVATE KEY-----\n{value}\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\\n{value}\\n",
    "Cookie: session={value}; a=b",
    "wandb.login(key='{value}')",
    "redirect=https%3A%2F%2Fhost%3Ftoken%3D{value}",
    "next=https%3A%2F%2Fme%3A{value}%40host.example.org%2F",
    'Authorization: Hawk id="me", mac="{value}"',
    "Authorization: AWS4-HMAC-SHA256 Credential=me/2026, SignedHeaders=host, Signature={value}",
    "curl -u me:{value} https://host",
    "curl --user 'me:{value}' https://host",
    "postgresql://me:my {value}@db.host.com/name",
    "mysql://me:my'{value}@db.host.com/name",
    "setx HF_TOKEN {value}",
    "| api_key | {value} |",
    "mysql -u root -pa1{value} name",
    "Invalid API key provided: a1{value}",
    "tokens:\n  - a1{value}\n  - gpt2\nn: 1",
    "password: |\n  first\n  {value}\n\n  last\nn: 1",
    "password&#61;{value}",
    "token&colon;{value}",
    "api_key\\u003d{value}",
    "token\\x3d{value}",
    "password\\075{value}",
    'the passphrase "open {value} 9"',
    "the token is 'a1{value}'",
]

#: Tokens of well-known services, which need no name.
TOKENS = [
    "sk-proj-{core}abcdefgh", "sk-ant-api03-{core}abcdef", "hf_{core}abcdefghijkl",
    "ghp_{core}abcdefghijkl", "github_pat_{core}_abcdefghijk", "glpat-{core}abcdefgh", "xoxb-123-{core}",
    "AIza{core}abcdefghijklmnopqrst", "eyJhbGci{core}.eyJzdWIi.c2ln", "npm_{core}abcdefghijkl",
    "pypi-AgEIcHlwaS5vcmc{core}", "sk_live_{core}abc", "gsk_{core}abcdefghijklmn", "ya29.{core}abcdefghijk",
    "SG.{core}abcdefgh.xyz", "dckr_pat_{core}abcdefg", "me:$apr1$ab12cd34${core}/lmnop.",
    "$2y$05${core}abcdefgh", "$6$rounds=5000$salt${core}abcd", "$argon2id$v=19$m=65536,t=3,p=4${core}abcd",
    "{{SSHA}}{core}abcdefgh=", "Private-Lines: 2\nAAAA{core}\nBBBB\nPrivate-MAC: 12",
    "Private-Lines: 2\\nAAAA\\nBBBB{core}\\nPrivate-MAC: 12",
]  # fmt: skip
#: How a value is written after a name, in a command line.
SHAPES = [
    ["--{name}", "{value}"],
    ["--{name}={value}"],
    ["{name}={value}"],
    ["--{name}", "-{value}"],
    ["-e", "X=1,{name}={value}"],
    ["+{name}={value}"],
    ["sh", "-c", "train --{name} {value} --lr 1"],
    ["--env", "{name}={value}"],
    ["--{name}", "-{value}", "--lr", "1"],
]

#: Options whose values are secrets, although they are named in short.
OPTIONS = {
    **dict.fromkeys(["-p", "-pw", "--pw", "--pass", "--auth", "login"], "{value}"),
    **dict.fromkeys(["-u", "--user"], "me:{value}"),
    **dict.fromkeys(["--notify", "--hook-url", "--alerts"], "https://my.org/in/{value}"),
}
SENTENCES = [
    "{value}",
    "use {value} for it",
    "export X={value}",
    "https://host/a/{value}",
    '{{"x": ["{value}"]}}',
]

_CORE = re.compile(r"qZ\d{5}Xk9v|c0ffee\d{10}beef")


class Planted(NamedTuple):
    """A text that holds a secret, and the part of the secret that must not be found."""

    text: str
    core: str


def cores_in(content: str | bytes) -> set[str]:
    """Return the planted secrets that the content still holds."""
    text = content.decode(errors="replace") if isinstance(content, bytes) else content
    return set(_CORE.findall(text))


def values_of(core: str) -> list[str]:
    """Return secrets with that core: as a generator makes them, or as people invent them."""
    return [core, f"{core}/+x8==", f"hunter{core}", f"{core}-a.b_c~d"]


def planted() -> Iterator[Planted]:
    """Yield every name in every form, and every form that needs no name, with values of several kinds."""
    numbers = itertools.count()

    def new() -> str:
        return f"qZ{next(numbers):05}Xk9v"

    for at, (name, form) in enumerate(itertools.product(NAMES, PAIRS)):
        for kind in range(2):
            core = new()
            yield Planted(form.format(name=name, value=values_of(core)[(at + 2 * kind) % 4]), core)
    for form in FORMS:
        for kind in range(4):
            core = new()
            value = core if "ntfy" in form else values_of(core)[kind].replace("/+x8==", "Ab")
            yield Planted(form.format(value=value, value_url=f"https://my.org/in/{value}"), core)
    for token, sentence in itertools.product(TOKENS, SENTENCES):
        core = new()
        yield Planted(sentence.format(value=token.format(core=core)), core)
    for name in ("wandb_key", "WANDB_API_KEY", "api_key"):
        core = f"c0ffee{next(numbers):010}beef"
        yield Planted(f"{name}={core:0<40}", core)


def planted_arguments() -> Iterator[tuple[list[str], str]]:
    """Yield arguments of a command that hold a secret: options, pairs, and values that begin with `-`."""
    numbers = itertools.count(90000)
    for at, (name, shape) in enumerate(itertools.product(NAMES, SHAPES)):
        core = f"qZ{next(numbers):05}Xk9v"
        yield [part.format(name=name, value=values_of(core)[at % 4]) for part in shape], core
    for option, form in OPTIONS.items():
        for value in values_of(core := f"qZ{next(numbers):05}Xk9v"):
            yield [option, form.format(value=value)], core
