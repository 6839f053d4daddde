"""The site that `make site` builds: it has every page, and a broken link fails the build."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, without_fences
from tests.reports.browser import PROBE, Tab


def build(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "book/mkdocs.yml"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the files that the book is built from."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in ("book", "docs", "examples"):
        shutil.copytree(ROOT / folder, root / folder)
    (root / "layers/smdebug_core/python/smdebug/files/proto").mkdir(parents=True)
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
        assert len(re.findall(r"<h[1-6] id=", made)) == len(headings), page.name
    assert (site / "examples" / "custom_rule" / "sudden_jump.py").exists()


def test_the_book_loads_nothing_from_other_hosts(site):
    for page in site.glob("*.html"):
        made = page.read_text(encoding="utf-8")
        assert not re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"?(?:https?:)?//[^>]*", made)


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1250])
@pytest.mark.parametrize("dark", [False, True])
def test_the_book_is_legible_on_phone_and_desktop_in_light_and_dark(site, width, dark):
    there = "document.readyState === 'complete' && location.protocol === 'file:'"
    for page in ("index", "reports", "deploy"):
        file = site / f"{page}.html"
        with Tab(file, width=width, dark=dark, ready=there) as tab:
            # The search is a worker, which browsers refuse to a page from a file.
            assert [line for line in tab.complaints if "search/worker.js" not in line] == []
            theme = tab.value("document.documentElement.getAttribute('data-bs-theme')")
            assert theme == ("dark" if dark else "light")
            seen = tab.value(PROBE)
        assert seen["wide"] == width, page
        assert len(seen["texts"]) > 40
        illegible = [text for text in seen["texts"] if text["contrast"] < 4.5 or text["size"] < 12]
        assert illegible == []


@pytest.mark.parametrize(
    "link", ["saving.md#nowhere", "nowhere.md", "../examples/nowhere.py", "../nowhere/"]
)
def test_a_broken_link_fails_the_build(checkout, tmp_path, link):
    shutil.copytree(checkout, tmp_path / "checkout")
    page = tmp_path / "checkout" / "docs" / "rules-of-a-run.md"
    page.write_text(page.read_text(encoding="utf-8") + f"\n[there]({link})\n", encoding="utf-8")
    done = build(tmp_path / "checkout")
    assert done.returncode != 0
    assert link.removeprefix("../").rstrip("/") in done.stderr
