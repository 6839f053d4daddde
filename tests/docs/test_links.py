"""Every relative link of the documentation has a target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, name_of, text_of, without_fences
from tests.support.looking import each

EVERY_PAGE = [*PAGES, *sorted(ROOT.glob("tests/golden/**/*.md"))]


def relative_links(page: Path) -> Iterator[str]:
    prose = re.sub(r"`[^`\n]*`", "", without_fences(page))
    for target in re.findall(r"\]\(([^()\s]+)\)", prose):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", without_fences(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", EVERY_PAGE, ids=name_of)
def test_every_relative_link_has_a_file_and_a_heading(page):
    broken = []
    for link in relative_links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_of_the_folder_is_in_its_index():
    index = ROOT / "docs" / "README.md"
    listed = {link.partition("#")[0] for link in relative_links(index)}
    assert {page.name for page in index.parent.glob("*.md")} - {"README.md"} <= listed


def test_the_readme_links_to_the_book_and_the_guides_of_its_sections():
    links = {link.partition("#")[0] for link in relative_links(ROOT / "README.md")}
    assert {"ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"} <= links
    named = (
        "README",
        "install",
        "quick-start",
        "deploy",
        "subscribe",
        "writing-a-rule",
        "migrating",
    )
    assert {f"docs/{name}.md" for name in named} <= links


# What new users want to do, a word of its row in the first page's table, and where the link leads.
TASKS = {
    "first time": "quick-start.md",
    "PyTorch": "quick-start.md",
    "rule of your own": "writing-a-rule.md",
    "TensorBoard": "saving.md#tensorboard",
    "Slack": "watching.md#by-the-training-itself",
    "automatically": "subscribe.md#stop-a-training-automatically",
    "compare": "findings.md#compare-with-a-run-that-works",
    "save more": "saving.md#collections-which-tensors",
    "live": "watching.md",
    "hyperparameters": "saving.md#where-a-run-comes-from",
}


@pytest.mark.parametrize(("words", "link"), TASKS.items(), ids=TASKS)
def test_the_first_page_leads_to_each_task_with_one_click(words, link):
    rows = [row for row in text_of(ROOT / "docs" / "README.md").splitlines() if row.startswith("|")]
    (row,) = [row for row in rows if words in row.split("|")[1]]
    assert f"]({link})" in row  # the test above holds that the heading exists


def test_no_page_names_a_path_of_a_particular_machine():
    for page in each(PAGES, at_least=80):
        assert not re.search(r"/(home|Users|root|work)/", text_of(page)), name_of(page)


def test_every_page_is_in_the_contents_of_the_book():
    contents = (ROOT / "book" / "mkdocs.yml").read_text(encoding="utf-8").split()
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 60
    assert [page for page in pages if page not in contents] == []
