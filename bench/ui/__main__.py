"""`make bench-ui`: the page of `smdebug ui` in headless Chromium, beside TensorBoard on the same values."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.ui import data, pages
from bench.ui.data import Size
from bench.ui.servers import Smdebug, TensorBoard
from bench.ui.table import Line, as_text, in_words
from smdebug.logger import get_logger
from smdebug.trials import create_trial
from tests.ui.written_runs import WrittenRun


def plan_lines(folder: Path, size: Size, tensorboard: Path | None) -> Iterator[Line]:
    """Measure the page of a run under the default plan: paints and frames."""
    run = data.long_run(folder, size)
    peer = peer_paints(folder, size, tensorboard)
    last = size.steps - 1
    name = f"{size.saved:,} saved steps"
    with tempfile.TemporaryDirectory(prefix="smdebug-bench-") as cache:
        with Smdebug([run], Path(cache)) as server, pages.blank_tab(server.origin) as tab:
            run_id = server.run(run.name)
            ours = pages.paints(server, tab, run_id)
            pages.seconds_until(tab, "document.documentElement.dataset.ready === 'yes'")
            rate = pages.frames(tab, last)
            charts = pages.frames_of_line_charts(server, tab, run_id, last)
            memory = server.peak
        yield Line(f"{name}: first paint", ours.first, "s", 3, peer=peer.first)
        yield Line(f"{name}: all read", ours.complete, "s", peer=peer.complete)
        yield Line(f"{name}: first paint, second time", ours.again, "s", 1, peer=peer.again)
        with Smdebug([run], Path(cache)) as server, pages.blank_tab(server.origin) as tab:
            again = pages.first_paint(server, tab, server.run(run.name))
        yield Line(f"{name}: first paint, server restarted", again, "s", 1)
    yield Line(f"{name}: memory of the server", memory, "MB", 500, peer=peer.memory)
    yield Line(
        "pan and zoom of the whole page",
        rate,
        "frames/s",
        30,
        at_least=True,
        peer=f"{size.tensors} line charts: {in_words(charts, 'frames/s')}",
        or_holds=rate >= 10 * charts,
    )
    yield Line("the same, times that of the line charts", rate / charts, "×", 10, True, or_holds=rate >= 30)


def every_step_lines(folder: Path, size: Size, peer_size: Size, tensorboard: Path | None) -> Iterator[Line]:
    """Measure the page of a run that saved every step."""
    run = data.long_run(folder, size)
    peer = peer_paints(folder, peer_size, tensorboard)
    name = f"{size.saved:,} of {size.steps:,} steps saved"
    seconds_to_read(run)  # so that nothing below waits for the disk
    once = seconds_to_read(run)
    with tempfile.TemporaryDirectory(prefix="smdebug-bench-") as cache:
        with Smdebug([run], Path(cache)) as server, pages.blank_tab(server.origin) as tab:
            ours = pages.paints(server, tab, server.run(run.name))
            memory = server.peak
        yield Line(f"{name}: first paint", ours.first, "s", 3, peer=peer.first)
        yield Line(f"{name}: all read", ours.complete, "s", once, peer=peer.complete)
        yield Line(f"{name}: first paint, second time", ours.again, "s", 1, peer=peer.again)
        with Smdebug([run], Path(cache)) as server, pages.blank_tab(server.origin) as tab:
            again = pages.first_paint(server, tab, server.run(run.name))
        yield Line(f"{name}: first paint, server restarted", again, "s", 1)
    yield Line(f"{name}: memory of the server", memory, "MB", 500, peer=peer.memory)


def many_lines(folder: Path, size: Size, number: int) -> Iterator[Line]:
    """Measure the list of many runs, and the memory with a long one open."""
    many, run = data.many_runs(folder, number), data.long_run(folder, size)
    with (
        tempfile.TemporaryDirectory(prefix="smdebug-bench-") as cache,
        Smdebug([many, run], Path(cache)) as server,
        pages.blank_tab(server.origin) as tab,
    ):
        listed = pages.list_paint(server, tab, number + 1)
        begun = time.perf_counter()
        while any(row["state"] in ("unknown", "reading") for row in server.ask("runs")["runs"]):
            time.sleep(0.2)
        summarised = time.perf_counter() - begun
        pages.paints(server, tab, server.run(run.name))
        memory, others = server.peak, server.peak_of_others
    yield Line(f"{number:,} runs in the list", listed, "s", 1)
    yield Line(f"{number:,} runs summarised", summarised, "s")
    yield Line(f"memory of the server, {number:,} runs and a long one open", memory, "MB", 500)
    yield Line("memory of the process that checks runs in the background", others, "MB")


def live_lines(size: Size) -> Iterator[Line]:
    """Measure how soon a new step is on the page."""
    with tempfile.TemporaryDirectory(prefix="smdebug-bench-") as name:
        folder = Path(name)
        saved = [*data.saved_steps(size), *range(size.steps, size.steps + 1000)]
        run = WrittenRun(folder / "live", tensors=size.tensors, saved=saved).write(size.steps)
        with (
            Smdebug([folder / "live"], folder / "cache") as server,
            pages.blank_tab(server.origin) as tab,
        ):
            found = pages.seconds_to_new_steps(server, tab, "live", run)
        run.hook.close()
    yield Line(f"a new step on the page, slowest of {len(found)}", max(found), "s", 1)
    yield Line("a new step on the page, median", sorted(found)[len(found) // 2], "s")


class Peer:
    """What TensorBoard needs, as the cells of a column; empty without it."""

    first = complete = again = memory = ""


def peer_paints(folder: Path, size: Size, tensorboard: Path | None) -> Peer:
    """Measure TensorBoard on the scalars of a run."""
    cells = Peer()
    if tensorboard is None:
        return cells
    events = data.event_files(folder, size, data.long_run(folder, size))
    with TensorBoard(tensorboard, events) as server:
        found = pages.paints_of_tensorboard(server, size)
        memory = server.peak + server.peak_of_others
    saved = f" ({size.saved:,} steps)"
    cells.first = f"TensorBoard {in_words(found.first, 's')}{saved}"
    cells.complete = f"TensorBoard {in_words(found.complete, 's')}{saved}"
    cells.again = f"TensorBoard {in_words(found.again, 's')}{saved}"
    cells.memory = f"TensorBoard {in_words(memory, 'MB')}{saved}"
    return cells


def seconds_to_read(run: Path) -> float:
    """Return how long the library takes to read the observations of every step once."""
    begun = time.perf_counter()
    trial = create_trial(str(run))
    with trial.refreshing(False):
        for step in trial.steps():
            seen = trial.observations.at(step)
            for series in seen.series_names:
                seen.series(series)
            seen.statistics("gradients")
    return time.perf_counter() - begun


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a budget does not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.ui", description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="steps of the long runs")
    parser.add_argument("--saved", type=int, default=1_100, help="saved under the default plan")
    parser.add_argument(
        "--saved-steps",
        type=int,
        default=100_000,
        metavar="N",
        help="steps of the run that saved every step; 0 leaves it out",
    )
    parser.add_argument(
        "--peer-saved-steps",
        type=int,
        default=5_000,
        metavar="N",
        help="of these, how many TensorBoard gets: 100,000 of them are 11 GB of event files",
    )
    parser.add_argument("--tensors", type=int, default=500, help="tensors of the long runs")
    parser.add_argument("--runs", type=int, default=1_000, help="runs in the list")
    parser.add_argument("--tensorboard", type=Path, help="the program; left out without it")
    parser.add_argument(
        "--data",
        type=Path,
        default=data.default_folder(),
        help="the folder of the runs, which stay there (default: %(default)s)",
    )
    parser.add_argument(
        "--only",
        choices=("plan", "every-step", "many", "live"),
        action="append",
        help="measure this part; can be repeated",
    )
    options = parser.parse_args(argv)
    plan = Size(options.steps, options.saved, options.tensors)
    every = Size(options.saved_steps, options.saved_steps, options.tensors)
    peer_steps = min(options.saved_steps, options.peer_saved_steps)
    peer = Size(peer_steps, peer_steps, options.tensors)
    parts: dict[str, Callable[[], Iterator[Line]]] = {
        "plan": lambda: plan_lines(options.data, plan, options.tensorboard),
        "every-step": lambda: every_step_lines(options.data, every, peer, options.tensorboard),
        "many": lambda: many_lines(options.data, plan, options.runs),
        "live": lambda: live_lines(Size(10_000, options.saved, options.tensors)),
    }
    lines: list[Line] = []
    for name, part in parts.items():
        if name in (options.only or parts) and (name != "every-step" or options.saved_steps):
            print(f"Measuring: {name} …", file=sys.stderr, flush=True)
            lines += part()
    print(as_text(lines))
    return 0 if all(line.holds for line in lines) else 1


if __name__ == "__main__":
    get_logger().setLevel(logging.ERROR)
    sys.exit(main())
