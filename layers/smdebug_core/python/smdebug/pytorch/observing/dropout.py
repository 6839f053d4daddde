"""Dropout in evaluation, that of models beside the trained one, such as a teacher, and that of high rates."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary
from zlib import crc32

import torch
from torch import nn

from smdebug.mode_keys import ModeKeys
from smdebug.pytorch.listening.process import PROCESS
from smdebug.pytorch.modules.names import class_name, name_of
from smdebug.pytorch.observing.structure import Structure
from smdebug.pytorch.tensors.on_device import fetched
from smdebug.saving.observations.step_observations import StepObservations
from smdebug.saving.recording.recorder import Recorder

STRONG = 0.85
"""From this rate on, the module that drops values is noted."""
_MOST_FRAMES = 400
_MOST_PARAMETERS, _MOST_VALUES = 8, 4
_CALL = nn.Module._call_impl.__code__


_Place = tuple[int, ...]
"""A module that drops values, by its id, and the instructions that lead to it."""


class _Call(NamedTuple):
    """A call of a model that drops values."""

    model: nn.Module
    place: _Place
    shape: list[int]
    """The shape of the first tensor that it was given."""


class ObservedHook(Protocol):
    """What observing dropout needs from the hook."""

    recorder: Recorder

    @property
    def mode(self) -> ModeKeys: ...
    def leave_out(self, error: Exception) -> None: ...


class Dropout:
    """The dropout of steps that are saved, where it may not be wanted."""

    def __init__(self, hook: ObservedHook, observations: StepObservations):
        self._hook = hook
        self._recorder = hook.recorder
        self._observations = observations
        self._structure: Structure | None = None
        self._drops: _Place | None = None
        """Where a model beside the trained one first dropped values at this step."""
        self._calls = [0]
        self._strongest = 0.0
        """The highest rate that was noted at this step."""
        self._copies: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
        PROCESS.add(self)

    def begin_step(self, structure: Structure) -> None:
        """Forget what the step before has shown."""
        if structure is not self._structure:
            self._structure = structure
            self._copies = WeakKeyDictionary()
        self._drops, self._calls, self._strongest = None, [0], 0.0

    def before_dropout(self, rate: float, values: Any) -> None:
        """Note dropout in evaluation, of a high rate, or in a model beside the trained one."""
        if not self._recorder.due:
            return
        mode = self._hook.mode
        if mode is ModeKeys.EVAL:
            called = _outermost()
            if called is None or not called.training:  # another model may be in training mode on purpose
                self._observations.note(dropout_in_evaluation=rate)
        elif mode is not ModeKeys.PREDICT and self._structure is not None:
            self._note_teacher(rate, self._structure)
            if rate >= STRONG and rate > self._strongest:
                self._note_strong(rate, values, self._structure)

    def fail(self, error: Exception) -> None:
        """Log what went wrong; that is left out, and the rest is saved."""
        self._hook.leave_out(error)

    def _note_strong(self, rate: float, values: Any, structure: Structure) -> None:
        """Note which module drops most of what a layer has computed: the batch itself may be masked."""
        module = _called()
        if id(module) not in structure.module_ids or not getattr(values, "requires_grad", False):
            return
        self._strongest = rate
        name = name_of(module) or class_name(module)
        self._observations.note(strong_dropout={"module": name, "rate": float(rate)})

    def _note_teacher(self, rate: float, structure: Structure) -> None:
        call = _call_of_another(structure.module_ids)
        if call is None:
            return
        if self._drops is not None:
            self._calls[0] += call.place == self._drops
            return
        model, parameters = call.model, list(call.model.parameters())
        if not parameters:
            return
        self._drops, self._calls = call.place, [1]
        calls = self._calls
        path = next((path for path, module in model.named_modules() if id(module) == call.place[0]), "")
        facts = {
            "model": class_name(model),
            "module": path,
            "rate": float(rate),
            "shape": call.shape,
            "is_copy": self._is_copy(model, parameters, structure),
        }
        values = _values_of(parameters)
        self._observations.note(
            teacher=lambda: {**facts, "calls": calls[0], "values": crc32(values().tobytes())}
        )

    def _is_copy(self, model: nn.Module, parameters: list[nn.Parameter], structure: Structure) -> bool:
        """Whether the model has the shapes of the trained one, as a target network or a reference has."""
        known = self._copies.get(model)
        if known is None:
            trained = [value.shape for value in structure.values()]
            known = self._copies[model] = trained == [parameter.shape for parameter in parameters]
        return known


def _called() -> nn.Module | None:
    """The module in which values are dropped now, which is the dropout itself or calls a function."""
    return next(_calls(), None)


def _outermost() -> nn.Module | None:
    """The model in whose call values are dropped now."""
    *_, outermost = None, *_calls()
    return outermost


def _calls() -> Iterator[nn.Module]:
    """The modules that are being called, the innermost first."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _CALL:
            module: nn.Module = frame.f_locals["self"]
            yield module
        frame = frame.f_back


def _call_of_another(trained: frozenset[int]) -> _Call | None:
    """The call of a model in which values are dropped now; None if that is one of the trained modules."""
    calls: list[tuple[nn.Module, dict[str, Any], int]] = []
    lines: list[int] = []
    frame: Any = sys._getframe(2)
    while frame is not None and len(lines) < _MOST_FRAMES:
        if frame.f_code is _CALL:
            known = frame.f_locals
            if id(known["self"]) in trained:
                return None
            calls.append((known["self"], known, len(lines)))
        lines.append(frame.f_lasti)
        frame = frame.f_back
    if not calls:
        return None
    model, known, depth = calls[-1]
    given = _first_tensor(known)
    return _Call(model, (id(calls[0][0]), *lines[:depth]), [] if given is None else list(given.shape))


def _first_tensor(known: dict[str, Any]) -> torch.Tensor | None:
    values = (*known.get("args", ()), *known.get("kwargs", {}).values())
    return next((value for value in values if isinstance(value, torch.Tensor)), None)


def _values_of(parameters: list[nn.Parameter]) -> Callable[[], Any]:
    """Copy some values, which show whether anything moves the parameters."""
    every = -(-len(parameters) // _MOST_PARAMETERS)
    some = [parameter.detach().reshape(-1)[:_MOST_VALUES].float() for parameter in parameters[::every]]
    values = torch.cat([value for value in some if value.device == some[0].device])
    return fetched(values) if values.is_cuda else lambda: values.cpu().numpy()
