"""`make verdicts`: what the default rules say of healthy trainings, and of trainings with known faults.

Each training runs in a child process, watched from outside by `smdebug.start`. Recorded runs are kept, and
are recorded again only when the code that saves them has changed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from corpus.measuring import page, publish
from corpus.measuring.judging import NOTHING_RECORDED, Judged, judge
from corpus.measuring.recording import ROOT, Recorded, commit, is_recorded, record
from corpus.measuring.scores import Scores, Verdict
from corpus.measuring.ways import CHOOSING, DEFAULT, WAYS
from corpus.measuring.zoo import SEEDS, Trained, at_random, trainings
from smdebug.cli.answers.progress import Progress


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m corpus",
        description="Measure the false alarms of the default rules, and the faults that they find.",
    )
    half = made.add_mutually_exclusive_group()
    half.add_argument("--tuning", dest="half", action="store_const", const="tuning", help="only this half")
    half.add_argument(
        "--held-out", dest="half", action="store_const", const="held out", help="only this half"
    )
    half.add_argument(
        "--random",
        type=int,
        metavar="N",
        help="N healthy trainings drawn at random in place of the programs; list their alarms",
    )
    made.add_argument("--only", metavar="NAME", help="only programs whose name contains NAME")
    made.add_argument(
        "--kind", choices=list(SEEDS), help="only healthy programs, faulty trainings or their twins"
    )
    made.add_argument("--seeds", type=int, metavar="N", help="trainings of each (5 if healthy, 3 of faults)")
    made.add_argument(
        "--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes (one per core)"
    )
    made.add_argument("--rejudge", action="store_true", help="use recorded runs even if the code has changed")
    made.add_argument(
        "--kept",
        action="store_true",
        help="judge kept recordings alone, whatever code made them: a few minutes for all",
    )
    made.add_argument(
        "--saved",
        choices=list(WAYS),
        default=DEFAULT,
        help="save as the default plan does (default), or chosen tensors every 10 steps: the usual "
        "collections, or all of them (PyTorch and Keras)",
    )
    made.add_argument("--rules", metavar="SET", help="judge with this set of rules, such as `all` (default)")
    made.add_argument("--alarms", action="store_true", help="list every alarm")
    made.add_argument(
        "--publish",
        action="store_true",
        help="keep the results for docs/verdicts.md, in the place of earlier ones of these trainings; "
        "those of fewer --seeds are kept beside",
    )
    made.add_argument("--json", metavar="FILE", help="write every verdict to FILE")
    made.add_argument(
        "--keep",
        type=Path,
        default=ROOT / "build" / "verdicts",
        metavar="DIR",
        help="folder of the recorded runs (build/verdicts)",
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; return 1 if a training failed to run."""
    options = parser().parse_args(argv)
    chosen = [trained for trained in _asked(options) if options.kind in (None, trained.kind)]
    if options.saved != DEFAULT:
        options.keep = Path(options.keep) / "saved" / options.saved
        chosen = [trained for trained in chosen if trained.case.framework in CHOOSING]
    if options.publish and options.random:
        parser().error("--publish keeps the results of the programs: leave --random out")
    if options.kept:
        chosen = [
            each
            for each in chosen
            if is_recorded(each, options.seeds or SEEDS[each.kind], Path(options.keep))
        ]
    if not chosen and options.kept:
        parser().error(f"no recordings are kept in {options.keep}: leave --kept out")
    if not chosen:
        parser().error(f"no program matches {options.only!r}")
    begun = time.monotonic()
    verdicts, failures = measure(chosen, options)
    scores = Scores.of(verdicts)
    if options.alarms:
        print("\n".join([*page.alarms(verdicts), ""]))
    print("\n".join(page.whole(scores)))
    print(f"{len(verdicts)} runs in {(time.monotonic() - begun) / 60:.1f} minutes")
    if options.publish:
        publish.write(_name_of(options), publish.judged_by(scores.tallies, commit()))
    if options.json:
        Path(options.json).write_text(json.dumps([_plain(verdict) for verdict in verdicts]))
    for failure in failures:
        print(f"FAILED {failure.trained.name}: {failure.error}", file=sys.stderr)
    return 1 if failures else 0


def _name_of(options: argparse.Namespace) -> str:
    """Return the name of the results: by their rules, or by the way of saving."""
    if options.saved != DEFAULT:
        return f"saved: {options.saved}"
    if options.seeds:
        return publish.AGAIN
    return str(options.rules or "default")


def _asked(options: argparse.Namespace) -> Iterable[Trained]:
    if options.random is None:
        return trainings(options.half, options.only)
    options.alarms, options.seeds = True, options.seeds or 1
    return at_random(options.random)


def measure(chosen: Sequence[Trained], options: argparse.Namespace) -> tuple[list[Verdict], list[Recorded]]:
    """Record and judge; return the verdicts, and the trainings that failed to run."""
    keep = Path(options.keep).absolute()
    bar = Progress("judging", sum(options.seeds or SEEDS[each.kind] for each in chosen))
    verdicts: list[Verdict] = []
    failures: list[Recorded] = []
    context = multiprocessing.get_context("spawn")
    with (
        ThreadPoolExecutor(options.jobs) as recorders,
        ProcessPoolExecutor(options.jobs, mp_context=context) as judges,
    ):
        recording = [
            recorders.submit(
                record,
                trained,
                options.seeds or SEEDS[trained.kind],
                keep,
                way=options.saved,
                stale_is_fine=options.rejudge or options.kept,
            )
            for trained in chosen
        ]
        judging: dict[Future[Judged], tuple[Recorded, int]] = {}
        for recorded in (future.result() for future in as_completed(recording)):
            if recorded.error:
                failures.append(recorded)
            for seed, place in recorded.runs:
                judging[judges.submit(judge, place, options.rules)] = (recorded, seed)
            verdicts += [
                Verdict(
                    recorded.trained.case,
                    recorded.trained.kind,
                    seed,
                    NOTHING_RECORDED,
                    recorded.commit,
                )
                for seed in recorded.missing
                if not recorded.error
            ]
            verdicts += _finished(judging, bar, wait=False)
        verdicts += _finished(judging, bar, wait=True)
    bar.clear()
    order = {id(trained.case): number for number, trained in enumerate(chosen)}
    verdicts.sort(key=lambda verdict: (order[id(verdict.case)], verdict.kind, verdict.seed))
    return verdicts, failures


def _finished(
    judging: dict[Future[Judged], tuple[Recorded, int]], bar: Progress, *, wait: bool
) -> Iterator[Verdict]:
    """Take the verdicts that are there, or all of them."""
    for future in list(judging):
        if wait or future.done():
            recorded, seed = judging.pop(future)
            trained = recorded.trained
            yield Verdict(trained.case, trained.kind, seed, future.result(), recorded.commit)
            bar.advance(1)


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "name": verdict.case.name,
        "kind": verdict.kind,
        "seed": verdict.seed,
        "held_out": verdict.case.held_out,
        "framework": verdict.case.framework,
        "cause": getattr(verdict.case, "cause", None),
        "right": bool(verdict.right),
        "first_visible_step": verdict.is_prompt,
        **verdict.judged.to_dict(),
    }


if __name__ == "__main__":
    sys.exit(main())
