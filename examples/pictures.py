"""Make the pictures of the documentation: a report in Chromium, and a terminal.

    python examples/pictures.py

It needs what the tests need, and Chromium.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
COMMANDS = (
    "smdebug inspect failing --no-values",
    "smdebug evaluate failing --rule VanishingGradient --rule ExplodingTensor",
    "smdebug verify failing",
)
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--virtual-time-budget=10000"),
)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        train = [
            sys.executable,
            str(ROOT / "examples" / "train_numpy.py"),
            "--out-dir",
            "failing",
            "--failing",
        ]
        call([*train, "--steps", "300", "--save-interval", "6"], folder)
        report = [sys.executable, "-m", "smdebug", "report", "failing", "--rule", "usual"]
        report += ["-o", "report.html"]
        call(report, folder, may_fail=True)  # it ends with 1: a problem is detected
        page = (folder / "report.html").read_text(encoding="utf-8")
        page = page.replace(f"{folder.resolve()}/failing", "s3://my-bucket/failing")
        (folder / "report.html").write_text(page, encoding="utf-8")
        of_page(folder / "report.html", IMAGES / "report.png")
        of_terminal(folder, IMAGES / "terminal.svg")
    for image in sorted(IMAGES.iterdir()):
        print(f"{image.relative_to(ROOT)}: {image.stat().st_size / 1000:.0f} KB")


def call(command: list[str], folder: Path, *, may_fail: bool = False) -> str:
    environment = {**os.environ, "SMDEBUG_LOG_LEVEL": "error", "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, check=not may_fail, capture_output=True, text=True
    )
    return done.stdout


def of_page(page: Path, to: Path) -> None:
    """Write the upper part of the page as a picture with few colours."""
    from PIL import Image

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("This needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile:
        shot = Path(profile) / "shot.png"
        subprocess.run(
            [
                *(browser, *_QUIET, f"--user-data-dir={profile}", "--window-size=1180,1750"),
                *(f"--screenshot={shot}", f"{page.as_uri()}#all"),
            ],
            check=True,
            capture_output=True,
        )
        Image.open(shot).convert("RGB").quantize(160).save(to, optimize=True)


def of_terminal(folder: Path, to: Path) -> None:
    """Commands and their answers, as text that stays text."""
    lines: list[tuple[str, str]] = []
    for command in COMMANDS:
        words = [sys.executable, "-m", *command.split()]
        answer = call(words, folder, may_fail=True).replace(f"{folder.resolve()}/", "").splitlines()
        lines += [("prompt", f"$ {command}"), *(("answer", line) for line in answer[:14])]
        if len(answer) > 14:
            lines.append(("faint", f"… {len(answer) - 14} more lines"))
        lines.append(("answer", ""))
    height = 17 * len(lines) + 24
    colours = {"prompt": "#82b1ff", "answer": "#e8eaee", "faint": "#a4abb8"}
    rows = "".join(
        f'<text x="14" y="{26 + 17 * at}" fill="{_colour(kind, line, colours)}">{escape(_shown(line))}</text>'
        for at, (kind, line) in enumerate(lines)
    )
    to.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {height}" role="img" '
        'aria-label="smdebug in a terminal" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
        'font-size="12.5" style="white-space: pre">'
        f'<rect width="900" height="{height}" rx="8" fill="#15171b"/>{rows}</svg>\n',
        encoding="utf-8",
    )


def _shown(line: str, most: int = 112) -> str:
    """As much as fits; browsers fold spaces in a picture unless they may not break."""
    cut = line if len(line) <= most else f"{line[: most - 1]}…"
    return cut.replace("  ", "\u00a0\u00a0")


def _colour(kind: str, line: str, colours: dict[str, str]) -> str:
    if line.startswith("✗"):
        return "#ff9a91"
    return "#7fd79c" if line.startswith(("✓", "The run is sound")) else colours[kind]


if __name__ == "__main__":
    main()
