"""Every block of code in the documents of the original, and which test runs it.

`text/` holds the blocks, unchanged. `CHANGES` lists the edits that a block needs to run, `NOT_RUN` the
reasons for not running one, and a test declares with `@runs(...)` the blocks that it runs.
`python -m tests.seeds.table` writes `README.md` beside it from all three.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

TEXT = Path(__file__).parent / "text"

DOCUMENTS = {
    "000": "Tornasole Analysis (developer guide)",
    "001": "Debugging SageMaker Training Jobs with Tornasole: Writing Custom Rules (notebook)",
    "002": "Tensor analysis using Amazon SageMaker Debugger (notebook)",
    "003": "Programming model for analysis (smdebug)",
    "004": "Sagemaker Debugger (README)",
}


class Change(NamedTuple):
    """An edit of a block: `old` becomes `new`, because of `why`."""

    old: str
    new: str
    why: str


def _read() -> dict[str, str]:
    blocks = {}
    for document in DOCUMENTS:
        text = (TEXT / f"{document}.txt").read_text(encoding="utf-8")
        parts = re.split(r"^=== (\S+) line \d+\n", text, flags=re.MULTILINE)
        blocks.update(zip(parts[1::2], parts[2::2], strict=True))
    return blocks


BLOCKS = _read()

_OUR_RUN = "the path of a run made for the test"
_INDENTATION = "the document lost the indentation"
_VANISHING_GRADIENT_RULE = """\
from smdebug.rules import Rule
class VanishingGradientRule(Rule):
    def __init__(self, base_trial, threshold=0.0000001):
        super().__init__(base_trial, other_trials=None)
        self.threshold = float(threshold)
"""
_VANISHING_GRADIENT_CONDITION = """\
    def invoke_at_step(self, step):
        for tensorname in self.base_trial.tensors(collection='gradients'):
            tensor = self.base_trial.tensor(tensorname)
            abs_mean = tensor.reduction_value(step, 'mean', abs=True)
            if abs_mean < self.threshold:
                return True
            else:
                return False
"""

CHANGES: dict[str, tuple[Change, ...]] = {
    "000-03": (Change("'/home/ubuntu/tornasole_outputs/train'", "run_path", _OUR_RUN),),
    "000-22": (Change("trail.", "trial.", "a typing error"),),
    "002-11": (
        Change("value(step) < 0.001:", "value(step)) < 0.001:", "a missing parenthesis"),
        Change("\n    return False", "\n        return False", "a return that lacks indentation"),
    ),
    "002-12": (
        Change(
            "import utils\n",
            "from smdebug import plots as utils\n",
            "the library draws what the notebook's helper drew",
        ),
        Change("from IPython.display import Image", "", "it runs outside a notebook"),
    ),
    "003-02": (Change("'/home/ubuntu/smdebug_outputs/resnet'", "run_path", _OUR_RUN),),
    "003-29": (Change(BLOCKS["003-29"], _VANISHING_GRADIENT_RULE, _INDENTATION),),
    "003-30": (Change(BLOCKS["003-30"], _VANISHING_GRADIENT_CONDITION, _INDENTATION),),
    "003-32": (Change(BLOCKS["003-32"], "{" + BLOCKS["003-32"] + "}", "part of a request, put in braces"),),
    "003-36": (Change("\npass", "\n    pass", _INDENTATION),),
    "003-37": (Change("\npass", "\n    pass", _INDENTATION),),
    "004-06": (Change('"/tmp/mnist_job"', "out_dir", _OUR_RUN),),
    "004-11": (Change('"/tmp/mnist_job"', "out_dir", _OUR_RUN),),
}

_INSTALLS = "installs packages"
_SAGEMAKER = "needs an AWS account and SageMaker's SDK"
_PICTURE = "shows an image in a notebook, as `examples/tensor_analysis/story.ipynb` does"
_KERAS = "needs TensorFlow: `tests/frameworks/tensorflow/test_seed_004.py`"

NOT_RUN: dict[str, str] = {
    **dict.fromkeys(("000-01", "000-02", "001-01", "002-01", "004-02"), _INSTALLS),
    **dict.fromkeys(("001-02", "001-05", "001-06", "001-07", "001-08"), _SAGEMAKER),
    "001-09": "a form to fill in, not Python",
    **dict.fromkeys(
        (
            "002-03",
            "002-04",
            "002-05",
            "002-06",
            "002-07",
            "002-08",
            "002-34",
            "002-35",
            "002-36",
            "002-37",
            "003-31",
            "004-01",
        ),
        _SAGEMAKER,
    ),
    **dict.fromkeys(
        (
            "002-15",
            "002-18",
            "002-21",
            "002-26",
            "002-29",
            "002-32",
            "002-44",
            "002-50",
        ),
        _PICTURE,
    ),
    "004-03": _KERAS,
    "004-04": _KERAS,
}

RUN_BY: dict[str, str] = {}


def code_of(block: str) -> str:
    """Return the block with its changes."""
    code = BLOCKS[block]
    for change in CHANGES.get(block, ()):
        assert change.old in code, (block, change.old)
        code = code.replace(change.old, change.new)
    return code


def runs(*blocks: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare which blocks a test runs; the test fails if it does not run all of them."""

    def declare(test: Callable[..., None]) -> Callable[..., None]:
        for block in blocks:
            assert block in BLOCKS, block
            RUN_BY.setdefault(block, f"{test.__module__.rsplit('.', 1)[-1]}.py::{test.__name__}")

        @functools.wraps(test)
        def checked(*args: Any, **kwargs: Any) -> None:
            _executed.clear()
            test(*args, **kwargs)
            assert _executed >= set(blocks), set(blocks) - _executed

        return checked

    return declare


_executed: set[str] = set()


class Story:
    """Blocks that run in order in one namespace, like the cells of a notebook."""

    def __init__(self, /, **given: Any):
        self.names: dict[str, Any] = dict(given)

    def __getitem__(self, name: str) -> Any:
        return self.names[name]

    def run(self, *blocks: str) -> Any:
        """Run the blocks; return the value of the last one if it ends with an expression."""
        value = None
        for block in blocks:
            _executed.add(block)
            value = self._execute(code_of(block), block)
        return value

    def run_as_class(self, head: str, *methods: str) -> None:
        """Run a class whose methods are in separate blocks."""
        _executed.update((head, *methods))
        bodies = [code_of(block) for block in methods]
        bodies = [body if body.startswith("    ") else indent(body, "    ") for body in bodies]
        self._execute("\n".join([code_of(head), *bodies]), head)

    def _execute(self, code: str, block: str) -> Any:
        tree = ast.parse(code, f"<block {block}>")
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, f"<block {block}>", "exec"), self.names)
        return eval(compile(last, f"<block {block}>", "eval"), self.names) if last else None
