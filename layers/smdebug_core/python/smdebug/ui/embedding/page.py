"""The page as one file of HTML, which needs neither a server nor a network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from functools import cache
from html import escape
from importlib.resources import files

import smdebug
from smdebug.ui.embedding.content import Content
from smdebug.ui.embedding.modules import joined
from smdebug.ui.embedding.plain import headline, plain_text

_STYLES = ("vendored/uplot-1.6.32.min.css", "style.css")
_LICENCE = "vendored/uplot-LICENSE.txt"


def page_of(content: Content, *, made: datetime | None = None) -> str:
    """Return the page as text. The same content and time give the same page."""
    run, other = content.run, content.other
    moment = (made or datetime.now(UTC)).astimezone(UTC)
    data = {
        "made": moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
        "version": smdebug.__version__,
        "run": run["id"],
        "other": None if other is None else other["id"],
        "answers": content.answers,
    }
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    about = content.answers[f"run/{run['id']}/about"]
    return _filled(
        _shell(),
        title=escape(f"{content.name}: {headline(run['rules'])}"),
        digest=digest,
        style=page_style(),
        plain=plain_text(run, about),
        data=_as_json(data),
        script=script,
    )


def _as_json(data: object) -> str:
    """Return the data as text that cannot end the script element around it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _filled(shell: str, **parts: str) -> str:
    """Put each part in the place that has its name, once: a part may contain the name of another."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], shell)


@cache
def _shell() -> str:
    return _text("report.html")


@cache
def _script() -> str:
    licence = _text(_LICENCE).strip().replace("*/", "* /")
    code = f"/* With uPlot 1.6.32.\n\n{licence}\n*/\n{joined('app.js', _text)}"
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


@cache
def page_style() -> str:
    """Return the styles of the page, light and dark."""
    return "\n".join(_text(name) for name in _STYLES)


@cache
def _text(name: str) -> str:
    return files("smdebug.ui").joinpath("page", *name.split("/")).read_text(encoding="utf-8")
