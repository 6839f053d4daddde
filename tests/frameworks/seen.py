"""What the default plan sees in each framework: `python -m tests.frameworks.seen` writes the table.

Each framework trains something small that has every kind of tensor and fact, and the table lists the contents
of its run.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from smdebug import modes
from smdebug.trials import create_trial

PAGE = Path(__file__).parents[2] / "docs" / "frameworks.md"
_TABLE = re.compile(r"(?<=\n)\| seen \|.*?\n(?=\n)", re.DOTALL)

Seen = Callable[[Any], bool]


def _kind(kind: str) -> Seen:
    return lambda trial: bool(trial.observations.steps(kind=kind))


def _facts(trial: Any) -> dict[str, Any]:
    """The facts of the last step of the training that has any. XGBoost's steps have no mode."""
    mode = modes.TRAIN if trial.steps(modes.TRAIN) else modes.GLOBAL
    facts: dict[str, Any] = trial.facts(max(trial.observations.steps(mode)), mode)
    return facts


def _fact(*names: str) -> Seen:
    return lambda trial: not _facts(trial).keys().isdisjoint(names)


def _series(pattern: str) -> Seen:
    return lambda trial: any(re.search(pattern, name) for name in trial.observations.series_names())


def _is_of_every_step(trial: Any) -> bool:
    losses = [name for name in trial.observations.series_names() if name.endswith("loss")]
    kept = [trial.series(name) for name in losses]
    return any(len(series.of(mode)) >= 12 for series in kept for mode in (modes.TRAIN, modes.GLOBAL))


def _has_balance(trial: Any) -> bool:
    facts = _facts(trial)
    terms = (facts.get("loss") or {}).get("terms") or [facts.get("data", {}).get("labels", {})]
    return "largest_share" in terms[0]


ROWS: dict[str, Seen] = {
    "loss of every step": _is_of_every_step,
    "metrics, or what is logged": _series(r"acc|auc|grad_norm"),
    "learning rate": _series("^learning_rate"),
    "parameters": _kind("parameters"),
    "gradients": _kind("gradients"),
    "updates": _kind("updates"),
    "outputs of layers, predictions": _kind("outputs"),
    "the batch, or labels": _kind("inputs"),
    "feature importance": _kind("importance"),
    "validation": lambda trial: bool(trial.steps(modes.EVAL) or trial.series_of_validation),
    "classes of modules": _fact("modules"),
    "frozen parameters": _fact("frozen"),
    "mode of the model": _fact("training"),
    "optimizer and its parameters": _fact("optimizers"),
    "shape and equal rows": _fact("shapes", "data"),
    "what the loss was computed from": _fact("loss"),
    "balance of the labels": _has_balance,
    "arguments": _fact("arguments"),
}


def _pytorch(place: str, folder: Path) -> None:
    import torch

    import smdebug

    torch.manual_seed(0)
    inputs = torch.randn(20, 4)
    labels = (inputs[:, 0] > 0).long()
    with smdebug.start(place):
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(12):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            torch.nn.functional.cross_entropy(model(inputs), labels)


def _keras(place: str, folder: Path) -> None:
    from tests.frameworks.tensorflow.test_default_plan import watched

    watched(place)


def _keras_on(backend: str) -> Callable[[str, Path], None]:
    """Train in a process of its own: one that has imported Keras keeps its backend."""

    def train(place: str, folder: Path) -> None:
        from tests.frameworks.scripts import ROOT, python

        module = "tests.frameworks.tensorflow.backend"
        done = python("-m", module, backend, folder / "everything", place, cwd=ROOT)
        assert done.returncode == 0, done.stderr

    return train


def _session(place: str, folder: Path) -> None:
    import smdebug.tensorflow as smd
    from tests.frameworks.tensorflow.test_session import dropping

    with smd.SessionHook(place) as hook:
        dropping(hook)


def _mxnet(place: str, folder: Path) -> None:
    from tests.frameworks.mxnet.test_default_plan import train

    train(place)


def _xgboost(place: str, folder: Path) -> None:
    from tests.frameworks.xgboost.test_default_plan import everything, watched

    watched(place, **everything())


def _transformers(place: str, folder: Path) -> None:
    from smdebug.huggingface import Callback
    from tests.frameworks.huggingface.test_callback import train

    callback = Callback(place)
    train(folder, callback, steps=15, evaluate=True)
    callback.close()


def _lightning(place: str, folder: Path) -> None:
    from smdebug.lightning import Callback
    from tests.frameworks.lightning.test_callback import fit

    callback = Callback(place)
    fit(folder, callback, epochs=5)
    callback.close()


def _jax(place: str, folder: Path) -> None:
    from tests.frameworks.jax.test_default_plan import classify

    classify(place, also=lambda hook: hook.record_all({"learning_rate": 0.5, "accuracy": 0.5}))


def _any_loop(place: str, folder: Path) -> None:
    import smdebug

    with smdebug.Hook(place) as hook:
        for mode in [modes.TRAIN] * 12 + [modes.EVAL]:
            with hook.step(mode):
                hook.record_loss(1.0, np.eye(3), np.arange(3), criterion="cross entropy")
                hook.record_all({"accuracy": 0.5, "learning_rate": 0.1})
                hook.record_batch(np.ones((3, 2)))
                for name in ("weight", "gradient/weight", "update/weight", "dense_output_0"):
                    hook.record(name, np.ones(3))


#: The columns: what has to be installed, and what trains.
FRAMEWORKS: dict[str, tuple[list[str], Callable[[str, Path], None]]] = {
    "PyTorch": (["torch"], _pytorch),
    "Keras": (["keras", "tensorflow"], _keras),
    "Keras on PyTorch": (["keras", "tensorflow", "torch"], _keras_on("torch")),
    "Keras on JAX": (["keras", "tensorflow", "jax"], _keras_on("jax")),
    "sessions": (["tensorflow"], _session),
    "XGBoost": (["xgboost"], _xgboost),
    "transformers": (["transformers", "torch"], _transformers),
    "Lightning": (["lightning", "torch"], _lightning),
    "JAX": (["jax"], _jax),
    "MXNet": (["mxnet"], _mxnet),
    "`smdebug.Hook`": ([], _any_loop),
}


def is_installed(framework: str) -> bool:
    """Whether the framework can be tested here."""
    return all(map(find_spec, FRAMEWORKS[framework][0]))


def column(framework: str, folder: Path) -> dict[str, str]:
    """Train with the framework, and return what is seen of each row."""
    place = str(folder / "run")
    FRAMEWORKS[framework][1](place, folder)
    return rows_of(place)


def rows_of(place: str) -> dict[str, str]:
    """Return what is seen of each row in the run."""
    trial: Any = create_trial(place)
    names = trial.observations.series_names()
    trial.series_of_validation = [name for name in names if name.startswith("val")]
    return {row: "yes" if is_seen(trial) else "" for row, is_seen in ROWS.items()}


def columns_of_the_page() -> dict[str, dict[str, str]]:
    """Return the columns of the table as the page has them."""
    found = _TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None, f"{PAGE} has no table that begins with | seen |"
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[0].splitlines()]
    return {framework: {row[0]: row[place] for row in rows} for place, framework in enumerate(head) if place}


def table(columns: dict[str, dict[str, str]]) -> str:
    """Return the table in Markdown."""
    lines = [f"| seen | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row in ROWS:
        cells = " | ".join(column[row] for column in columns.values())
        lines.append(f"| {row} | {cells} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the table into the page.

    A framework that is not installed keeps its column: MXNet has its own venv.
    """
    columns = columns_of_the_page()
    for framework in FRAMEWORKS:
        if not is_installed(framework):
            continue
        with tempfile.TemporaryDirectory() as folder:
            columns[framework] = column(framework, Path(folder))
    nothing = dict.fromkeys(ROWS, "")
    columns = {framework: columns.get(framework, nothing) for framework in FRAMEWORKS}
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLE.sub(lambda _: table(columns), text), encoding="utf-8")


if __name__ == "__main__":
    main()
