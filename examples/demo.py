"""The whole idea in half a minute: a training saves its tensors, a rule reads them while it runs.

`make demo` runs this. Two networks train in processes of their own, one healthy and one that cannot learn.
Each saves what it does to a folder; here, the rule VanishingGradient watches both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STEPS, SAVE_INTERVAL, PAUSE = 160, 20, 0.02


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--keep", metavar="FOLDER", help="leave the two runs there, to look at")
    asked = arguments.parse_args()
    # Quiet: this shows the rule's findings itself.
    os.environ["SMDEBUG_LOG_LEVEL"] = os.environ.get("SMDEBUG_LOG_LEVEL", "error")
    with runs_folder(asked.keep) as folder:
        print(INTRODUCTION)
        verdicts = {kind: watch(kind, folder / kind) for kind in ("ill", "healthy")}
        show_gradients(folder)
        print(closing_words(verdicts, asked.keep))
    return 0 if verdicts == {"ill": True, "healthy": False} else 1


def watch(kind: str, out_dir: Path) -> bool:
    """Train in another process; look at each step as it arrives. Did the rule find anything?"""
    from smdebug.exceptions import NoMoreData
    from smdebug.rules.generic import VanishingGradient
    from smdebug.rules.rule_invoker import evaluations
    from smdebug.trials import create_trial

    print(f"\n{bold(f'The {kind} one')} trains in a process of its own and saves to {out_dir}")
    print(dim("  step   loss     VanishingGradient says"))
    found = 0
    with training(kind, out_dir):
        trial = create_trial(str(out_dir), name=kind)
        try:
            for evaluation in evaluations(VanishingGradient(trial)):
                if evaluation.missing is not None:
                    continue
                loss = float(trial.tensor("loss").value(evaluation.step)[0])
                findings = evaluation.findings
                found += bool(findings)
                others = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
                verdict = red(f"{findings[0]}{others}") if findings else green("nothing found")
                print(f"  {evaluation.step:>4}   {loss:.4f}   {verdict}", flush=True)
        except NoMoreData:
            print(dim(f"  the training has ended; {found} of its saved steps had a finding"))
    return found > 0


@contextmanager
def training(kind: str, out_dir: Path) -> Iterator[None]:
    command = [sys.executable, str(Path(__file__).with_name("train_numpy.py"))]
    command += ["--out-dir", str(out_dir), "--steps", str(STEPS), "--pause", str(PAUSE)]
    command += ["--save-interval", str(SAVE_INTERVAL), *(["--ill"] if kind == "ill" else [])]
    process = subprocess.Popen(command)
    try:
        yield
        if process.wait(timeout=60):
            raise SystemExit(f"The training failed: {' '.join(command)}")
    finally:
        process.kill()
        process.wait()


def show_gradients(folder: Path) -> None:
    """How large the gradients of each layer are, at the last saved step."""
    from smdebug.trials import create_trial

    trials = {kind: create_trial(str(folder / kind)) for kind in ("ill", "healthy")}
    print(f"\n{bold('Why:')} the mean |gradient| of each layer's weights, at the last saved step")
    print(dim(f"  {'':18}{'ill':<34}healthy"))
    for name in trials["ill"].tensor_names(regex="^gradient/.*weight"):
        row = f"  {name.removeprefix('gradient/'):<18}"
        for kind, trial in trials.items():
            last = trial.steps()[-1]
            mean = float(trial.tensor(name).reduction_value(last, "mean", abs=True))
            bar = "█" * max(1, round(18 + 1.5 * log10(mean)))
            colour = red if mean < 1e-7 else green
            row += f"{mean:8.1e} {colour(bar)}{' ' * (25 - len(bar)) if kind == 'ill' else ''}"
        print(row)


def closing_words(verdicts: dict[str, bool], kept: str | None) -> str:
    said = {True: "fires", False: "stays silent"}
    ill, healthy = said[verdicts["ill"]], said[verdicts["healthy"]]
    lines = [
        "",
        f"{bold('VanishingGradient')} {ill} on the ill network and {healthy} on the healthy one.",
        "The ill network's first layers get no gradient, so they never learn: its loss stays at 0.69,",
        "which is chance. A loss curve alone shows that something is wrong; the tensors show what.",
    ]
    if kept:
        look = f"python -m smdebug.rules.rule_invoker --trial-dir {kept}/ill"
        lines += ["", f"Look for yourself:  {look} --rule-name VanishingGradient"]
    return "\n".join(lines)


@contextmanager
def runs_folder(kept: str | None) -> Iterator[Path]:
    if kept:
        folder = Path(kept)
        if any((folder / kind).exists() for kind in ("ill", "healthy")):
            raise SystemExit(f"{folder} already holds runs: choose another folder, or remove them")
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="smdebug-demo-") as temporary:
            yield Path(temporary)


def log10(x: float) -> float:
    from math import log10

    return log10(x) if x > 0 else -18


def _painted(code: str, text: str) -> str:
    plain = os.environ.get("NO_COLOR") or not sys.stdout.isatty()
    return text if plain else f"\033[{code}m{text}\033[0m"


def bold(text: str) -> str:
    return _painted("1", text)


def dim(text: str) -> str:
    return _painted("2", text)


def red(text: str) -> str:
    return _painted("31", text)


def green(text: str) -> str:
    return _painted("32", text)


INTRODUCTION = f"""
{bold("smdebug: what is going wrong inside a training, while it runs")}

Two networks learn to tell points inside a circle from those outside. They differ in their activations and
in how their weights begin. A hook saves loss, weights and gradients every {SAVE_INTERVAL} steps; a rule
reads them as they arrive.
""".rstrip()

if __name__ == "__main__":
    begin = time.monotonic()
    code = main()
    print(dim(f"({time.monotonic() - begin:.0f} s)"))
    sys.exit(code)
