"""A hook of `mkdocs.yml` that renders the pages as GitHub does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import reference
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("ARCHITECTURE.md", "CHANGELOG.md")  # pages of the book outside docs/
# Guides come before generated pages and reasons in the results of the search.
BOOSTS = {
    **dict.fromkeys(("api.md", "ARCHITECTURE.md", "CHANGELOG.md"), 0.3),
    **dict.fromkeys(("cli.md", "events.md", "file-format.md", "reliability.md", "verdicts.md"), 0.6),
    **dict.fromkeys(("quick-start.md", "findings.md", "watching.md", "subscribe.md"), 2.5),
    "install.md": 2.5,
    **dict.fromkeys(("writing-a-rule.md", "trials.md"), 1.6),
}
_LINK = re.compile(r"\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s#:]+)\)")
_BLOCK = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


def on_config(config: Any) -> Any:
    """Give headings the anchors that GitHub gives them."""
    config["mdx_configs"]["toc"] = {
        **config["mdx_configs"].get("toc", {}),
        "permalink": True,
        "toc_depth": 3,
        "slugify": anchor_of,
    }
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, those outside docs/, and the files that pages link to."""
    for name, page_of in reference.PAGES.items():
        files.append(File.generated(config, name, content=page_of()))
    for name in BESIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for page in Path(config["docs_dir"]).glob("*.md"):
        for link in _LINK.finditer(page.read_text(encoding="utf-8")):
            name = link["target"].removeprefix("../")
            source = ROOT / name
            wanted = link["target"].startswith("../") and name not in BESIDE
            if wanted and source.is_file() and files.get_file_from_path(name) is None:
                files.append(File.generated(config, name, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links into the book; a link to a folder of the checkout becomes text."""
    is_decision = page.file.src_uri.startswith("decisions/")
    if boost := 0.3 if is_decision else BOOSTS.get(page.file.src_uri):
        page.meta["search"] = {"boost": boost}
    # GitHub ignores words after the language of a fence; Python-Markdown then sees no fence.
    markdown = re.sub(r"^```(\w+) .*$", r"```\1", markdown, flags=re.MULTILINE)
    prose = _BLOCK.split(markdown)
    if page.file.src_uri in BESIDE:
        prose[::2] = [part.replace("](docs/", "](") for part in prose[::2]]
    else:
        folder = "../" * page.file.src_uri.count("/")
        prose[::2] = [_LINK.sub(lambda link: _in_the_book(link, folder), part) for part in prose[::2]]
    return "".join(prose)


def anchor_of(title: str, separator: str) -> str:
    """Return the anchor as GitHub forms it: words and dashes, each space a dash."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", separator)


def _in_the_book(link: re.Match[str], folder: str) -> str:
    """Return the link as the book has it: what is outside docs/ is at its root. `folder` leads to docs/."""
    target = link["target"]
    if (ROOT / "docs" / target.removeprefix(folder)).is_dir():
        return link["text"]
    outside = target.startswith(f"{folder}../")
    return f"[{link['text']}]({target.removeprefix('../') if outside else target})"
