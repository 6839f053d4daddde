"""Computes a step twice, where the user asks for it, and compares all bits.

Its forward and backward pass are computed again here; its update, and what is stored, `stored` compares.
A device that is defective computes something else from the same numbers, without an error. Nothing that is
measured once can show a small such difference.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn

from smdebug.pytorch.listening.callbacks import AGAIN, Callback, in_backward
from smdebug.pytorch.listening.process import PROCESS
from smdebug.pytorch.modules.layers import Layered
from smdebug.pytorch.modules.names import class_name, name_of, unwrapped
from smdebug.pytorch.ranks import rank_and_size
from smdebug.pytorch.repeating.compared_digests import Digests, compared
from smdebug.pytorch.repeating.forward_state import ForwardState
from smdebug.pytorch.repeating.repeatable import COMPILED, has_bits, reason_against
from smdebug.pytorch.repeating.stored import Stored, together
from smdebug.pytorch.tensors.rows import digest_of
from smdebug.saving.observations.step_observations import StepObservations
from smdebug.saving.planning.default_plan import due_before
from smdebug.saving.recording.recorder import Recorder

FIRST = 3
"""How many of the first saved steps are computed twice in any case. They say what is usual."""
REPLAYS = 5
"""How often a pass that has given something else is computed again, to tell a moment from a defect."""

Noted = list[tuple[str, torch.Tensor]]
"""Digests in the order in which they were computed, each with the name of its module or gradient."""


class ObservedHook(Protocol):
    """What computing twice needs from the hook."""

    recorder: Recorder

    def tensors_in(self, values: Any) -> Iterator[Any]: ...
    def leave_out(self, error: Exception) -> None: ...


class ComputedTwice:
    """Computes some steps of one training twice: once in so many steps, at one that is saved anyway."""

    def __init__(self, hook: ObservedHook, observations: StepObservations, every: int):
        self._hook = hook
        self._observations = observations
        self._every = every
        self._next = 0
        self._done = 0
        self._ranks = rank_and_size()[1]
        self._open: _Pass | None = None
        self._stored = Stored()
        self._parameters: Sequence[tuple[str, torch.Tensor]] = ()
        """Those of a step that is computed twice, until another one is saved."""
        self._found: dict[str, Any] = {}
        PROCESS.add(self)

    def begin_step(
        self,
        structure: Layered,
        model: nn.Module | None,
        step: int,
        parameters: Sequence[tuple[str, torch.Tensor]],
        in_graph: bool = False,
    ) -> None:
        """Prepare for a step to be computed twice, if it is time for that."""
        self._leave_passes()
        self._parameters, self._found = (), {}
        if model is None or not step or not torch.is_grad_enabled() or not self._is_time(step):
            self._stored.forget()
            return
        self._next, self._done = (step // self._every + 1) * self._every, self._done + 1
        self._parameters = parameters
        reason = COMPILED if in_graph else reason_against(model, structure, self._ranks)
        if reason is not None:
            self._note({"not": reason})
            return
        self._open = _Pass(unwrapped(model), self._hook)

    def _is_time(self, step: int) -> bool:
        """Whether to compute this step twice. Ranks do that at the same steps: they may need each other."""
        if self._ranks > 1 and due_before(step - self._hook.recorder.first_step) % 10:
            return False
        return self._done < FIRST or step >= self._next

    def after_backward(self) -> None:
        """Compute again what the passes that have ended have computed."""
        if self._parameters and self._hook.recorder.due:
            self._stored.keep_gradients(self._parameters)
        passed = self._open
        self._leave_passes()
        if passed is not None:
            found = passed.repeated()
            if found is not None:
                self._note(found)

    def before_update(self, optimizer: Any, names: Mapping[int, str]) -> None:
        """Compare what an optimizer is about to use, if its step is computed twice."""
        if self._parameters:
            try:
                self._note(self._stored.before_update(optimizer, names))
            except Exception as error:  # noqa: BLE001
                self._hook.leave_out(error)

    def after_update(self, optimizer: Any, names: Mapping[int, str], step: int, *, has_closure: bool) -> None:
        """Compare what an optimizer has given, and keep it, if the next step is computed twice.

        A closure computes the gradients within the update: they were not known before.
        """
        recorder = self._hook.recorder
        if self._parameters and recorder.due and not has_closure:
            self._note(self._stored.after_update(optimizer, names))
        if recorder.next_may_be_due and self._is_time(step + 1):
            self._stored.keep(optimizer, names)

    def _note(self, found: Mapping[str, Any]) -> None:
        if found:
            self._found = together(self._found, found)
            self._observations.note(computed_twice=self._found)

    def close(self) -> None:
        """Leave the model alone."""
        self._leave_passes()
        self._stored.forget()
        self._parameters = ()

    def _leave_passes(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def fail(self, error: Exception) -> None:
        """Log what went wrong; that is left out, and the rest is saved."""
        self._hook.leave_out(error)


class _Digests(NamedTuple):
    """The digests of one computation."""

    outputs: Digests
    gradients: Digests


class _Precision(NamedTuple):
    """What autocast does on a kind of device."""

    kind: str
    dtype: torch.dtype
    is_on: bool
    caches: bool

    @classmethod
    def now(cls, kind: str) -> _Precision:
        """What it does now."""
        try:
            dtype, is_on = torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)
        except (AttributeError, TypeError):  # PyTorch before 2.4
            on_gpu = kind == "cuda"
            dtype = torch.get_autocast_gpu_dtype() if on_gpu else torch.get_autocast_cpu_dtype()
            is_on = torch.is_autocast_enabled() if on_gpu else torch.is_autocast_cpu_enabled()
        return cls(kind, dtype, is_on, torch.is_autocast_cache_enabled())

    def again(self) -> contextlib.AbstractContextManager[Any]:
        """Let it do the same."""
        if not self.is_on:
            return contextlib.nullcontext()
        again: contextlib.AbstractContextManager[Any] = torch.autocast(
            self.kind, dtype=self.dtype, cache_enabled=self.caches
        )
        return again


class _Call(NamedTuple):
    """How the model was called."""

    args: Any
    kwargs: Any
    versions: list[int]
    precision: _Precision


class _Pass:
    """A forward of the model and the backward pass after it."""

    def __init__(self, root: nn.Module, hook: ObservedHook):
        self._root = root
        self._hook = hook
        self._name = name_of(root) or class_name(root)
        self._modules = [(name_of(module) or path, module) for path, module in root.named_modules() if path]
        self._parameters = [
            (f"gradient/{self._name}_{path}", parameter)
            for path, parameter in root.named_parameters()
            if parameter.requires_grad
        ]
        self._device = self._parameters[0][1].device if self._parameters else torch.device("cpu")
        self._before = ForwardState(root, self._device)
        self._versions = self._parameter_versions()
        self._call: _Call | None = None
        self._calls = 0
        self._outputs: Noted = []
        self._gradients: Noted = []
        self._given: dict[int, torch.Tensor] = {}
        """The gradients of the model's outputs, by the places of these."""
        self._inside = self._listen(self._outputs)
        self._handles = [root.register_forward_hook(_AfterModel(self), with_kwargs=True)]
        self._handles += [
            parameter.register_hook(partial(self._note, self._gradients, name))
            for name, parameter in self._parameters
        ]

    def close(self) -> None:
        """Take everything off the model."""
        _remove(self._inside)
        _remove(self._handles)

    def called(self, args: Any, kwargs: Any, output: Any) -> None:
        """Keep what is needed to compute this once more; the training continues whatever goes wrong."""
        self._calls += 1
        if self._calls > 1:
            return
        _remove(self._inside)
        try:
            self._keep(args, kwargs, output)
        except Exception as error:  # noqa: BLE001
            self._call = None
            self._hook.leave_out(error)

    def _keep(self, args: Any, kwargs: Any, output: Any) -> None:
        self._note(self._outputs, self._name, output)
        given = [each for each in self._hook.tensors_in((args, kwargs)) if isinstance(each, torch.Tensor)]
        self._call = _Call(args, kwargs, [each._version for each in given], _Precision.now(self._device.type))
        for place, tensor in enumerate(self._with_graph(output)):
            self._handles.append(tensor.register_hook(partial(self._given.__setitem__, place)))

    def repeated(self) -> dict[str, Any] | None:
        """Compute both passes again, and say what is equal; None if the model was not called."""
        if self._call is None:
            return None
        given = self._hook.tensors_in((self._call.args, self._call.kwargs))
        if [each._version for each in given if isinstance(each, torch.Tensor)] != self._call.versions:
            return {"not": "the inputs of the model are changed in place"}
        if self._parameter_versions() != self._versions:
            return {"not": "parameters have changed before its backward pass has ended"}
        if self._calls > 1:  # both calls have a share in the gradients
            self._gradients = []
        first = _fetched(self._outputs, self._gradients)
        after = ForwardState(self._root, self._device, copied=False)
        try:
            again = [self._once_more()]
            if not self._gradients:
                first = first._replace(gradients=[])
            if again[0] != first:
                again += [self._once_more() for _ in range(REPLAYS - 1)]
        finally:
            after.put()
        found: dict[str, Any] = {}
        for name in _Digests._fields:
            before = getattr(first, name)
            if before:
                found[name] = compared(before, [getattr(each, name) for each in again])
        return found

    def _once_more(self) -> _Digests:
        assert self._call is not None
        args, kwargs, _, precision = self._call
        outputs: Noted = []
        gradients: Noted = []
        self._before.put()
        handles = self._listen(outputs)
        AGAIN.runs = True
        try:
            with torch.enable_grad(), precision.again():
                output = self._root.forward(*args, **kwargs)
                self._note(outputs, self._name, output)
            if self._gradients:
                self._differentiate(output, gradients)
        finally:
            AGAIN.runs = False
            _remove(handles)
        return _fetched(outputs, gradients)

    def _differentiate(self, output: Any, gradients: Noted) -> None:
        """Compute the gradients of the parameters, in the order in which they were computed before."""
        of_name = dict(self._parameters)
        names = [name for name, _ in self._gradients]
        tensors = self._with_graph(output)
        places = _last([tensors[place] for place in self._given], [*self._given])
        try:
            found = torch.autograd.grad(
                [tensors[place] for place in places],
                [of_name[name] for name in names],
                [self._given[place] for place in places],
                allow_unused=True,
            )
        except RuntimeError:  # activations are kept by a way that does not allow this
            self._gradients = []
            return
        for name, gradient in zip(names, found, strict=True):
            if gradient is not None:
                self._note(gradients, name, gradient)

    def _listen(self, noted: Noted) -> list[Any]:
        return [
            module.register_forward_hook(_AfterModule(partial(self._note, noted, path)))
            for path, module in self._modules
        ]

    def _note(self, noted: Noted, path: str, values: Any) -> None:
        """Note the digests of all tensors in these values; the training continues whatever goes wrong."""
        try:
            with torch.no_grad():
                whole = filter(has_bits, self._hook.tensors_in(values))
                noted.extend((path, digest_of(each.detach())) for each in whole)
        except Exception as error:  # noqa: BLE001
            self._hook.leave_out(error)

    def _with_graph(self, output: Any) -> list[torch.Tensor]:
        tensors = [each for each in self._hook.tensors_in(output) if isinstance(each, torch.Tensor)]
        return [tensor for tensor in tensors if tensor.requires_grad]

    def _parameter_versions(self) -> list[int]:
        return [parameter._version for _, parameter in self._parameters]


class _AfterModel(Callback):
    """Called after the forward that is to be computed twice."""

    def __init__(self, passed: _Pass):
        self._passed = passed

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if not in_backward():
            self._passed.called(args, kwargs, output)


class _AfterModule(Callback):
    """Called after the forward of each of its modules."""

    def __init__(self, note: Any):
        self._note = note

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        if not in_backward():  # which computes activations anew that were not kept
            self._note(output)


def _remove(handles: list[Any]) -> None:
    for handle in handles:
        handle.remove()
    handles.clear()


def _last(tensors: list[torch.Tensor], places: list[int]) -> list[int]:
    """The places of those from which no other one was computed, as a loss is from the logits beside it."""
    if len(tensors) < 2:
        return places
    results = {tensor.grad_fn for tensor in tensors}
    sources: set[Any] = set()
    waiting = [source for result in results if result is not None for source, _ in result.next_functions]
    while waiting:
        source = waiting.pop()
        if source is not None and source not in sources:
            sources.add(source)
            waiting += [further for further, _ in source.next_functions]
    return [place for tensor, place in zip(tensors, places, strict=True) if tensor.grad_fn not in sources]


def _fetched(outputs: Noted, gradients: Noted) -> _Digests:
    """The digests, copied to the host together."""
    noted = [*outputs, *gradients]
    if not noted:
        return _Digests([], [])
    device = noted[0][1].device
    content = torch.stack([digest.to(device) for _, digest in noted]).cpu().numpy()
    known = [(path, row.tobytes()) for (path, _), row in zip(noted, content, strict=True)]
    return _Digests(known[: len(outputs)], known[len(outputs) :])
