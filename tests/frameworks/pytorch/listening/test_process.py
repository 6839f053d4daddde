"""Functions of PyTorch are watched wherever a script has taken them from before."""

import functools
import pickle
import sys
from types import ModuleType

from torch import nn
from torch.nn import functional as F  # noqa: N812

from smdebug.pytorch.listening import process


def a_script(monkeypatch):
    """A module that has imported a function before it is watched, under a name of its own."""
    script = ModuleType("a_script")
    script.criterion = F.celu
    exec("def fit(x, criterion=criterion, epochs=3):\n    return criterion(x)", vars(script))
    monkeypatch.setitem(sys.modules, "a_script", script)
    return script


def test_functions_that_a_script_has_imported_before_are_replaced_as_well(monkeypatch):
    script = a_script(monkeypatch)
    monkeypatch.setattr(F, "celu", F.celu)  # which restores it afterwards

    def watched(x):
        return "watched", x

    process._replace({"celu": watched})
    assert F.celu is watched
    assert script.criterion(1) == ("watched", 1)
    assert script.fit(1) == ("watched", 1)
    assert script.fit.__defaults__ == (watched, 3)


def test_a_model_that_holds_a_function_from_before_can_be_saved(monkeypatch):
    model = nn.Module()
    model.activation = F.celu
    monkeypatch.setattr(F, "celu", F.celu)

    @functools.wraps(F.celu)
    def watched(x):
        return x

    process._replace({"celu": watched})
    assert pickle.loads(pickle.dumps(model)).activation is watched


def test_other_functions_of_a_script_stay_as_they_are(monkeypatch):
    script = a_script(monkeypatch)
    defaults = script.fit.__defaults__
    monkeypatch.setattr(F, "selu", F.selu)
    process._replace({"selu": print})
    assert script.fit.__defaults__ is defaults
