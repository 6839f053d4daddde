"""Make the pictures of the documentation in docs/images: `make pictures`.

Two trainings, of which one fails, as the commands show them in a terminal of 80 columns, and the report of
the failing one in Chromium, in light and dark. The trainings of pages on one kind of training, as reports.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Sequence
from html import escape
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
# Pages on one kind of training: the run that `train.py` saves, and the sections of its page that are shown.
STORIES = {
    "fine-tuning": ("runs/adapters", ("Diagnosis", "Loss and metrics")),
    "mixtures": ("runs/mixture", ("Layers by steps",)),
}
COLUMNS = 80
FAILING, HEALTHY = "runs/lr-0.1", "runs/lr-0.02"
MOST_LINES = 30  # of the answer of one command
# The commands of each picture of a terminal.
TERMINALS = {
    "evaluate": [f"smdebug evaluate {FAILING}"],
    "watch": ["smdebug watch runs --once"],
    "inspect": [f"smdebug inspect {FAILING}"],
    "compare": [f"smdebug compare {HEALTHY} {FAILING}", "smdebug runs runs --failing"],
    "gate": [f"smdebug gate {HEALTHY} --ended --max-age 1h", f"smdebug gate {FAILING} --ended --max-age 1h"],
    "prometheus": [f"smdebug export prometheus {FAILING} --tensors ^loss$ -o -"],
    "json-lines": [f"smdebug export jsonl {FAILING} --tensors ^loss$ --no-rules -o -"],
    "cloudwatch": [f"smdebug export cloudwatch {FAILING} --tensors ^loss$ --step 700 --step 799 -o -"],
}
TRAINING = """
import argparse

import smdebug
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--warmup", type=int, default=400)
options = parser.parse_args()
smdebug.start(f"runs/lr-{options.lr:g}", config=vars(options))

torch.manual_seed(0)
blocks = [nn.Sequential(nn.Linear(32, 32), nn.ReLU()) for _ in range(4)]
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), *blocks, nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / options.warmup))
teacher = torch.randn(16, 1)
for step in range(800):
    inputs = torch.randn(64, 16)
    targets = torch.relu(inputs @ teacher) + 0.1 * torch.randn(64, 1)
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warmup.step()
"""
GROUND, TEXT, FAINT, PROMPT = "#16191f", "#e6e8ec", "#9aa3b2", "#82b1ff"
# Select Graphic Rendition: the codes that commands print, as attributes of SVG.
STYLES = {
    "1": {"font-weight": "bold"},
    "2": {"fill": FAINT},
    "31": {"fill": "#ff9a91"},
    "32": {"fill": "#7fd79c"},
}
LETTER, LINE, MARGIN = 7.8, 18, 16
NO_BREAK = "\u00a0"  # browsers fold other spaces


def main(argv: Sequence[str] | None = None) -> int:
    """Train, and write the pictures."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument("--to", type=Path, default=IMAGES, help="write to this folder")
    parser.add_argument("--runs", type=Path, help="a folder whose runs/ are used, or else made")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.runs or Path(temporary)).resolve()
        if not (folder / "runs").is_dir():
            train(folder)
        for name, commands in TERMINALS.items():
            (options.to / f"{name}.svg").write_text(terminal(commands, folder), encoding="utf-8")
        report = ["report", FAILING, "--compare", HEALTHY, "-o", "report.html"]
        page = reported(report, folder)
        of_page(page, options.to / "report.png", dark=False)
        of_page(page, options.to / "report-dark.png", dark=True)
        for name, (run, sections) in STORIES.items():
            page = story(name, run, folder)
            of_sections(page, options.to / f"{name}.png", sections, dark=False)
            of_sections(page, options.to / f"{name}-dark.png", sections, dark=True)
    return 0


def story(name: str, run: str, folder: Path) -> Path:
    """Run the training of a page of the documentation; return the report of its run."""
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    (folder / "train.py").write_text(text.split("```python\n")[1].split("```")[0], encoding="utf-8")
    command = ["python", "train.py"]
    subprocess.run(command, cwd=folder, env=environment(), check=True)
    return reported(["report", run, "-o", "report.html"], folder)


def reported(words: Sequence[str], folder: Path) -> Path:
    """Return the page that the command writes, without the name of the folder."""
    subprocess.run(
        [sys.executable, "-m", "smdebug", *words],
        cwd=folder,
        env=environment(),
        check=False,  # it ends with 1: a problem is detected
        stdout=subprocess.DEVNULL,
    )
    page = folder / "report.html"
    page.write_text(page.read_text(encoding="utf-8").replace(f"{folder}/", ""), encoding="utf-8")
    return page


def train(folder: Path) -> None:
    """Train both models, and remove traces of this machine."""
    (folder / "train.py").write_text(TRAINING, encoding="utf-8")
    for run in (FAILING, HEALTHY):
        rate = run.rpartition("-")[2]
        subprocess.run(
            ["python", "train.py", "--lr", rate],  # noqa: S607 - as the run will say
            cwd=folder,
            env=environment(),
            check=True,
        )
        origin = folder / run / "origin.json"
        content = json.loads(origin.read_text(encoding="utf-8"))
        content |= {"host": "laptop", "platform": "Linux-6.8.0-x86_64"}
        origin.write_text(json.dumps(content), encoding="utf-8")


def environment() -> dict[str, str]:
    """Return the environment of a command: colours, no log, the library of this checkout."""
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    library = [str(ROOT / "layers/smdebug_core/python"), str(ROOT / "rules")]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(library),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "SMDEBUG_LOG_LEVEL": "error",
        "OMP_NUM_THREADS": "1",
        "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS),
        "LINES": "60",
    }


def terminal(commands: Sequence[str], folder: Path) -> str:
    """Return an SVG of the commands and their answers; text stays text, on a grid."""
    lines: list[str] = []
    for command in commands:
        words = [sys.executable, "-m", *command.split()]
        answer = in_terminal(words, folder).replace(f"{folder}/", "").rstrip("\n").split("\n")
        lines += ["", f"\x1b[PROMPT]$ {command}\x1b[0m", *shown(answer)]
    return drawn(lines, "; ".join(commands))


def shown(answer: Sequence[str]) -> list[str]:
    """Return the first lines of an answer, as a terminal breaks them."""
    lines = list(wrapped(answer))
    left = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], f"\x1b[2m… {left} more lines\x1b[0m"] if left > 1 else lines


def drawn(lines: Sequence[str], label: str) -> str:
    """Return an SVG of the lines of a terminal."""
    width, height = COLUMNS * LETTER + 2 * MARGIN, len(lines) * LINE + MARGIN
    rows = "".join(row(line, MARGIN + LINE * at) for at, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(label)} in a terminal" '
        'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13">'
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{GROUND}"/>{rows}</svg>\n'
    )


def wrapped(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines as a terminal breaks them; one with colours is at most twice as wide as that."""
    for line in lines:
        excess = len(re.sub(r"\x1b\[[^m]*m", "", line)) - COLUMNS
        if excess <= 0:
            yield line
        elif "\x1b" in line:
            yield from [line[:-excess], line[-excess:]]
        else:
            yield from (line[at : at + COLUMNS] for at in range(0, len(line), COLUMNS))


def in_terminal(words: Sequence[str], folder: Path) -> str:
    """Return what a command prints on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    with subprocess.Popen(words, cwd=folder, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        printed = b"".join(read_all(ours))
    os.close(ours)
    return printed.decode("utf-8").replace("\r\n", "\n")


def read_all(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other side was closed
            return
        if not part:
            return
        yield part


def row(line: str, y: float) -> str:
    """Return one line as SVG: a text for each style, each on the grid of letters."""
    parts, column = [], 0
    style: dict[str, str] = {}
    for text, code in re.findall(r"([^\x1b]+)|\x1b\[([^m\]]*)[m\]]", line):
        if text:
            if text.strip():
                given = {"fill": TEXT, **style}
                attributes = " ".join(f'{name}="{value}"' for name, value in given.items())
                parts.append(
                    f'<text x="{MARGIN + column * LETTER:g}" y="{y:g}" {attributes} '
                    f'textLength="{len(text) * LETTER:g}">{escape(text).replace(" ", NO_BREAK)}</text>'
                )
            column += len(text)
        elif code == "PROMPT":
            style = {"fill": PROMPT, "font-weight": "bold"}
        else:
            style = {} if code in ("", "0") else {**style, **STYLES.get(code, {})}
    return "".join(parts)


DRAWN = "document.documentElement?.dataset.rest === 'yes'"


def of_page(page: Path, to: Path, *, dark: bool) -> None:
    """Write the upper part of the page as a picture with few colours."""
    from PIL import Image

    from tests.reports.browser import Tab

    with Tab(page, width=1180, height=1300, dark=dark, ready=DRAWN) as tab:
        Image.open(BytesIO(tab.picture())).convert("RGB").quantize(200).save(to, optimize=True)


def of_sections(page: Path, to: Path, titles: Sequence[str], *, dark: bool) -> None:
    """Write the part of the page from the first to the last of these sections as a picture."""
    from PIL import Image

    from tests.reports.browser import Tab

    with Tab(page, width=1180, height=1300, dark=dark, ready=DRAWN) as tab:
        box = tab.value(
            "(titles => [...document.querySelectorAll('section')]"
            ".filter(section => titles.includes(section.querySelector('h2')?.innerText))"
            ".map(section => section.getBoundingClientRect())"
            f".flatMap(box => [box.top, box.bottom]))({json.dumps(titles)})"
        )
        picture = Image.open(BytesIO(tab.picture(whole=True))).convert("RGB")
        shown = picture.crop((0, int(min(box)), picture.width, int(max(box))))
        shown.quantize(200).save(to, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
