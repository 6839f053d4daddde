"""The site that `make site` builds: it has every page, and a broken link fails the build."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import smdebug
from smdebug.cli.commands import COMMANDS
from tests.docs.pages import ROOT, without_fences
from tests.reports.browser import PROBE, Tab
from tests.support.looking import each

# What people look for, and a page that must be among the first results.
SEARCHED = {
    "install": "install",
    "compare": "findings",
    "GPU": "install",
    "Slack": "subscribe",
    "hyperparameters": "saving",
    "first run": "quick-start",
    "PyTorch": "quick-start",
    "own rule": "writing-a-rule",
    "TensorBoard": "saving",
    "stop automatically": "subscribe",
    "early stopping": "subscribe",
    "email": "subscribe",
    "DDP": "frameworks",
    "overhead": "frameworks",
    "write a rule": "writing-a-rule",
    "SaveConfig": "saving",
    "save more": "saving",
    "watch live": "watching",
    "resume": "trials",
}
# Types the words into the search field and resolves with the addresses of the results.
SEARCH = """new Promise((resolve) => {
  const meta = document.querySelector(".md-search-result__meta");
  const list = document.querySelector(".md-search-result__list");
  const field = document.querySelector(".md-search__input");
  const links = () => [...list.querySelectorAll("a.md-search-result__link")].map((a) => a.href);
  const look = () => {
    const marked = "h=" + "WORDS".split(" ")[0].toLowerCase();
    const current = links().filter((link) => link.toLowerCase().includes(marked));
    if (current.length) { watch.disconnect(); resolve(links()); }
    else if (/^No matching/.test(meta.innerText.trim())) { watch.disconnect(); resolve([]); }
  };
  const watch = new MutationObserver(look);
  watch.observe(list, { childList: true, subtree: true });
  watch.observe(meta, { childList: true, subtree: true, characterData: true });
  field.focus();
  field.value = "WORDS";
  field.dispatchEvent(new Event("keyup", { bubbles: true }));
})"""
LOADED = "document.readyState === 'complete' && location.protocol === 'file:'"


def build(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "book/mkdocs.yml"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the files that the book is built from."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in ("book", "docs", "examples"):
        shutil.copytree(ROOT / folder, root / folder)
    for folder in ("layers", "rules"):
        (root / folder).symlink_to(ROOT / folder)
    for name in ("ARCHITECTURE.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, root / name)
    return root


@pytest.fixture(scope="module")
def site(checkout) -> Path:
    """The book, built once."""
    done = build(checkout)
    assert done.returncode == 0, done.stderr
    return checkout / "build" / "site"


def test_every_page_is_in_the_book_with_all_its_headings(site):
    for page in [*(ROOT / "docs").glob("*.md"), ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"]:
        name = "index" if page.name == "README.md" else page.stem
        made = (site / f"{name}.html").read_text(encoding="utf-8")
        headings = re.findall(r"^#+ ", without_fences(page), re.MULTILINE)
        assert len(re.findall(r"<h[1-6] id=\"(?!__)", made)) == len(headings), page.name
    assert (site / "examples" / "custom_rule" / "sudden_jump.py").exists()


def test_the_book_loads_nothing_from_other_hosts(site):
    for page in each(site.glob("*.html"), at_least=30):
        made = page.read_text(encoding="utf-8")
        assert not re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"?(?:https?:)?//[^>]*", made)
    for sheet in each(site.rglob("*.css"), at_least=4):
        assert not re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//", sheet.read_text())


def test_the_reference_has_every_command_and_the_whole_api(site):
    commands = (site / "cli.html").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f'id="smdebug-{name}"' not in commands] == []
    api = (site / "api.html").read_text(encoding="utf-8")
    public = [name for name in smdebug.__all__ if name not in ("__version__", "modes")]
    public += ["service.connect", "rules.Rule.invoke_at_step", "exceptions.StepUnavailable"]
    assert [name for name in public if f'id="smdebug.{name}"' not in api] == []


@pytest.fixture(scope="module")
def tab(site):
    """A browser at the first page; `renew` shows another one."""
    with Tab(site / "index.html", ready=LOADED) as opened:
        yield opened


@pytest.mark.browser
def test_the_search_finds_what_people_look_for_without_a_server(site, tab):
    tab.renew((site / "index.html").as_uri())
    for words, page in SEARCHED.items():
        found = tab.value(SEARCH.replace("WORDS", words))
        pages = list(dict.fromkeys(Path(link.partition("?")[0]).stem for link in found))
        assert page in pages[:3], (words, pages)


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1250])
@pytest.mark.parametrize("dark", [False, True])
def test_the_book_is_legible_on_phone_and_desktop_in_light_and_dark(site, tab, width, dark):
    for page in ("index", "reports", "deploy", "cli"):
        tab.renew((site / f"{page}.html").as_uri(), width=width, dark=dark)
        assert tab.complaints == []
        theme = tab.value("document.body.getAttribute('data-md-color-scheme')")
        assert theme == ("slate" if dark else "default")
        seen = tab.value(PROBE)
        assert seen["wide"] == width, page
        assert len(seen["texts"]) > 40
        illegible = [text for text in seen["texts"] if text["contrast"] < 4.5 or text["size"] < 12]
        assert illegible == []


def test_every_broken_link_is_named_and_fails_the_build(checkout, tmp_path):
    links = ["saving.md#nowhere", "nowhere.md", "../examples/nowhere.py", "../elsewhere/"]
    shutil.copytree(checkout, tmp_path / "checkout", symlinks=True)
    page = tmp_path / "checkout" / "docs" / "rules-of-a-run.md"
    paragraphs = "".join(f"\n[there]({link})\n" for link in links)
    page.write_text(page.read_text(encoding="utf-8") + paragraphs, encoding="utf-8")
    done = build(tmp_path / "checkout")
    assert done.returncode != 0
    assert [link for link in links if link.strip("./") not in done.stderr] == []
