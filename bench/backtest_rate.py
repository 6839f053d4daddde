"""`make bench-backtest-rate`: how fast a backtest judges runs, beside processes that only `evaluate` them.

Both take all cores. The default rules judge runs of 200 steps as the default plan saves them, 30 of them. A
rule of one's own reads a statistic of seven tensors at 200 saved steps. The processor time of all processes
is compared, with the start of the command and of its processes, as other programs may be running.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

import smdebug
from bench.default_rules import write_run
from smdebug.backtesting.pool import cores
from smdebug.logger import get_logger
from smdebug.runs import evaluate

PROMISED = 0.9
"""The share of the rate of `evaluate` that a backtest reaches."""
_RULE = """
from smdebug.rules import Rule


class LargeGradient(Rule):
    def invoke_at_step(self, step):
        names = self.base_trial.tensor_names(step=step, collection="gradients")
        tensors = map(self.base_trial.tensor, names)
        return max(tensor.reduction_value(step, "mean", abs=True) for tensor in tensors) > 1e3
"""
_EVALUATES = "import sys; from bench.backtest_rate import evaluate_all; evaluate_all(*sys.argv[1:])"


class Taken(NamedTuple):
    """Seconds by the clock, and those of all processors."""

    seconds: float
    computing: float


def main() -> int:
    """Print what was measured; return 1 if a promise is not held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    os.environ["SMDEBUG_LOG_LEVEL"] = "error"
    is_slow = False
    with tempfile.TemporaryDirectory() as folder:
        rule = Path(folder, "rule.py")
        rule.write_text(_RULE, encoding="utf-8")
        for what, write, options in (
            ("the default rules", write_default_run, ("--rule", "default")),
            ("a rule of one's own", write_statistics, ("--rule-file", str(rule))),
        ):
            runs = Path(folder, options[0])
            write(runs / "0")
            for number in range(1, asked.runs):
                shutil.copytree(runs / "0", runs / str(number))
            rounds = [(evaluated(runs, options), backtested(runs, options)) for _ in range(asked.rounds)]
            shares = [bare.computing / ours.computing for bare, ours in rounds]
            by_clock = [bare.seconds / ours.seconds for bare, ours in rounds]
            alone = median(bare.computing for bare, _ in rounds)
            in_all = median(ours.computing for _, ours in rounds)
            print(
                f"{what}: {1000 * alone / asked.runs:.1f} ms of one core for each run by `evaluate`, "
                f"{1000 * in_all / asked.runs:.1f} in a backtest: {median(shares):.0%} of its rate "
                f"(promised: {PROMISED:.0%}), by the clock {median(by_clock):.0%}",
                flush=True,
            )
            is_slow |= median(shares) < PROMISED
    return is_slow


def evaluated(runs: Path, options: tuple[str, str]) -> Taken:
    """Evaluate all runs in as many processes as there are cores; importing does not count."""
    share = [[sys.executable, "-c", _EVALUATES, str(runs), str(at), *options] for at in range(cores())]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in share]
    said = [[float(part) for part in process.communicate()[0].split()] for process in processes]
    return Taken(max(seconds for seconds, _ in said), sum(computing for _, computing in said))


def evaluate_all(runs: str, at: str, option: str, rule: str) -> None:
    """Evaluate the share of one process, and print the seconds that it took."""
    get_logger().setLevel("CRITICAL")
    rules, file = (("default",), None) if option == "--rule" else (("LargeGradient",), rule)
    mine = sorted(Path(runs).iterdir())[int(at) :: cores()]
    evaluate(mine[0], rules, file=file, jobs=1, own_process=False)  # what is imported on the way
    begun, computed = time.perf_counter(), time.process_time()
    for run in mine:
        evaluate(run, rules, file=file, jobs=1, own_process=False)
    print(time.perf_counter() - begun, time.process_time() - computed)


def backtested(runs: Path, options: tuple[str, str]) -> Taken:
    """Judge all runs with the command."""
    command = [sys.executable, "-m", "smdebug", "backtest", str(runs), *options]
    with tempfile.TemporaryDirectory() as folder:
        begun, computed = time.perf_counter(), _of_children()
        subprocess.run(
            [*command, "--journal", str(Path(folder, "journal"))], stdout=subprocess.DEVNULL, check=True
        )
        return Taken(time.perf_counter() - begun, _of_children() - computed)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_default_run(place: Path) -> None:
    """Write a run as the default plan saves it."""
    write_run(str(place), steps=30, tensors=18)


def write_statistics(place: Path) -> None:
    """Write the statistics of seven gradients at 200 steps."""
    config = smdebug.ReductionConfig(reductions=["mean"], abs_reductions=["mean"])
    every_step = smdebug.SaveConfig(save_interval=1)
    random = np.random.default_rng(0)
    with smdebug.Hook(
        str(place), save_config=every_step, include_collections=["all"], reduction_config=config
    ) as hook:
        for step in range(200):
            with hook.step():
                hook.record("loss", 0.97**step)
                for layer in range(7):
                    gradient = random.normal(size=(32, 8)).astype(np.float32)
                    hook.save_tensor(f"gradient/{layer}", gradient, collections_to_write=("gradients",))


if __name__ == "__main__":
    sys.exit(main())
