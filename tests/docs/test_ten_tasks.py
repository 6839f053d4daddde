"""What people want to do first: one click from the first page to the section that answers it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.docs.test_links import relative_links

FIRST_PAGE = ROOT / "docs" / "README.md"
# The row of the first page's table, the section it leads to, and what the reader must find there.
TASKS = {
    "first run": ("see it work for the first time", "quick-start.md", "smdebug evaluate my-run"),
    "PyTorch hook": ("watch a PyTorch training", "quick-start.md", 'smdebug.start("my-run")'),
    "save more": (
        "save more: whole tensors, other steps",
        "saving.md#collections-which-tensors",
        "include_collections=",
    ),
    "watch live": ("watch it live", "watching.md", "smdebug watch "),
    "Slack": (
        "get a message in Slack, or by mail",
        "watching.md#by-the-training-itself",
        "slack://",
    ),
    "stop automatically": (
        "stop a failing training automatically",
        "subscribe.md#stop-a-training-automatically",
        "stoptraining",
    ),
    "compare": (
        "compare two runs",
        "findings.md#compare-with-a-run-that-works",
        "smdebug compare ",
    ),
    "own rule": ("write a rule of your own", "writing-a-rule.md", "--rule-file"),
    "TensorBoard": ("look at it in TensorBoard", "saving.md#tensorboard", "export_tensorboard="),
    "hyperparameters": (
        "record hyperparameters, and search runs by them",
        "saving.md#where-a-run-comes-from",
        "config=",
    ),
}


def section(page: Path, anchor: str) -> str:
    """Return the text of the section with this anchor, or of the page without one."""
    text = page.read_text(encoding="utf-8")
    fences = [found.span() for found in re.finditer(r"(?ms)^```.*?^```", text)]
    headings = [
        found
        for found in re.finditer(r"(?m)^(#+) (.+)$", text)
        if not any(start <= found.start() < stop for start, stop in fences)
    ]
    if not anchor:
        return text
    for number, heading in enumerate(headings):
        if re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-") == anchor:
            later = (item.start() for item in headings[number + 1 :] if item[1] <= heading[1])
            return text[heading.start() : next(later, len(text))]
    raise AssertionError(f"{page.name} has no section {anchor}")


@pytest.mark.parametrize("task", TASKS)
def test_one_link_of_the_first_page_leads_to_the_section_that_answers(task):
    row, link, answer = TASKS[task]
    lines = FIRST_PAGE.read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith(f"| {row} |"))
    links = re.findall(r"\]\(([^()\s]+)\)", line)
    assert links[0] == link
    page, _, anchor = link.partition("#")
    assert answer in section(ROOT / "docs" / page, anchor)


def test_the_readme_leads_to_the_table_and_to_the_first_run():
    links = set(relative_links(ROOT / "README.md"))
    assert {"docs/README.md", "docs/quick-start.md"} <= links
