"""The source of a custom rule's code: a file deployed in its own function, or an object in S3.

Only objects below allowed prefixes are loaded, and a run keeps the version that it began with.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any, NamedTuple

from functions.decisions.tenants import Tenants
from functions.world import World
from smdebug.exceptions import AccessDenied, ObjectMissing, SMDebugError, SMDebugValueError
from smdebug.service.records import RuleConfiguration
from smdebug.storage import ByteSpan

LARGEST_SOURCE = 1 << 20
LARGEST_INLINE = 80_000
OWN_SOURCES = "rule-sources/"


class SourceRefused(SMDebugError):
    """The rule's code cannot be run; the message says why, and what to do."""


class Source(NamedTuple):
    """The function that runs the rule, and the code to give it; None if the code is deployed with it."""

    function: str
    handed: dict[str, Any] | None = None
    digest: str = ""


def source_of(world: World, run: str, configuration: RuleConfiguration, pinned: str = "") -> Source:
    """Return what to run; `SourceRefused` if the code may not be run."""
    uri = configuration.source
    if uri is None:
        function = world.settings.custom_functions.get(configuration.rule)
        if function is None:
            raise SourceRefused(
                f"The rule {configuration.rule} is no longer deployed: put its file back into "
                "rules/custom/ and deploy, or give the rule a source (s3://bucket/rule.py)."
            )
        return Source(function)
    if not world.settings.sandbox:
        raise SourceRefused(f"{uri} cannot be run: this stack has no function for rules from S3.")
    refuse_elsewhere(uri, allowed(world.settings.rule_sources, run, world.settings.tenants))
    text = _read(world, uri)
    digest = sha256(text).hexdigest()
    if pinned and digest != pinned:
        raise SourceRefused(
            f"{uri} was changed while the rule was watching this run (sha256 {pinned[:12]}… became "
            f"{digest[:12]}…). A run keeps to the code it began with: upload changed rules under another "
            "key, and name that in rules.json."
        )
    handed = {"uri": uri, "sha256": digest}
    inline = inlined(text)
    if len(inline) <= LARGEST_INLINE:
        handed["text"] = inline
    return Source(world.settings.sandbox, handed, digest)


def allowed(prefixes: tuple[str, ...], run: str, tenants: Tenants | None = None) -> tuple[str, ...]:
    """Return the prefixes for rules: those of the stack and of the run's tenant.

    Without either, it is one in the run's bucket.
    """
    if tenants is not None and tenants.prefixes:
        return (*prefixes, *tenants.source_prefixes_of(run))
    return prefixes or (f"s3://{run.partition('/')[0]}/{OWN_SOURCES}",)


def refuse_elsewhere(uri: str, prefixes: tuple[str, ...]) -> None:
    """Raise `SourceRefused` for a URI outside the prefixes."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    plain = uri.startswith("s3://") and bucket and key
    if not plain or not {"", ".", ".."}.isdisjoint(key.split("/")):
        raise SourceRefused(f"{uri!r} is not the address of a file: write s3://bucket/path/rule.py")
    if not any(uri.startswith(prefix.rstrip("/") + "/") for prefix in prefixes):
        raise SourceRefused(
            f"Rules are not loaded from {uri}: this run may use {', '.join(prefixes) or 'none'}. Upload the "
            "file there, or allow its prefix in the settings of the stack (rule_sources, tenants)."
        )


def inlined(text: bytes) -> str:
    """Return the code as a text for a job."""
    return b64encode(zlib.compress(text, 9)).decode("ascii")


def text_in(inline: str) -> bytes:
    """Return the code in a job; `SMDebugValueError` if it cannot be unpacked."""
    try:
        opened = zlib.decompressobj()
        text = opened.decompress(b64decode(inline, validate=True), LARGEST_SOURCE + 1)
    except (ValueError, zlib.error) as error:
        raise SMDebugValueError(f"The rule's source cannot be unpacked: {error}") from error
    return text


def _read(world: World, uri: str) -> bytes:
    place, _, name = uri.rpartition("/")
    try:
        text = world.open_run(place.removeprefix("s3://")).read(name, ByteSpan(0, LARGEST_SOURCE + 1))
    except ObjectMissing:
        raise SourceRefused(f"There is no {uri}: upload the rule, or correct its source.") from None
    except (AccessDenied, SMDebugValueError) as problem:
        raise SourceRefused(f"{uri} cannot be read: {problem}") from problem
    if not text:
        raise SourceRefused(f"{uri} is empty.")
    if len(text) > LARGEST_SOURCE:
        raise SourceRefused(
            f"{uri} has more than {LARGEST_SOURCE >> 20} MB, and a rule's file may have that much."
        )
    return text
