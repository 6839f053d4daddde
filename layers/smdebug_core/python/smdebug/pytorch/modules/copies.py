"""A model beside the trained one that began as its copy and has not changed since, such as a target network.

Steps that are saved begin here. Between the first few of them every module that is called is looked at; once
a copy is known, it alone is, until it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakSet, ref

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from smdebug.pytorch.listening.callbacks import AGAIN, Callback, has_compiled, is_compiling, is_tracing
from smdebug.pytorch.modules.followers import Followers
from smdebug.pytorch.modules.names import class_name
from smdebug.pytorch.tensors.arrays import is_plain
from smdebug.pytorch.tensors.on_device import fetched

SEARCHED = 3
"""Between so many saved steps copies are searched for."""
_VALUES = 4
"""How many values of a parameter are compared."""
_MOST_COMPARED = 4
"""Of how many parameters: what updates them updates all."""
_MOST_PARAMETERS = 2000

Named = Sequence[tuple[str, nn.Parameter]]


class Unchanged:
    """Some values of a copy as they were when the training began."""

    def __init__(self, of: str, compared: Sequence[int], names: Sequence[str], values: torch.Tensor):
        self.of = of
        """The first parameter that it is a copy of."""
        self._names = names
        self._compared = compared
        self._values = values

    def flag(self, copy: nn.Module) -> torch.Tensor:
        """Whether these values are what they were, as a tensor: of a GPU, reading it waits for it."""
        own = [*copy.parameters()]
        return (torch.cat([_some(own[at]) for at in self._compared]) == self._values).all()

    def holds(self, copy: nn.Module) -> bool:
        """Whether they are. This waits for a GPU."""
        return bool(self.flag(copy))

    def has_moved(self, trained: Named) -> bool:
        """Whether the trained model has other values there. This waits for a GPU."""
        known = dict(trained)
        now = torch.cat([_some(known[name]) for name in self._names])
        return bool((now != self._values).any())


class Copies:
    """Finds one copy of the trained parameters, or of some of them, and watches whether it changes."""

    def __init__(self, leave_out: Callable[[Exception], object]) -> None:
        self._leave_out = leave_out
        self._first: list[tuple[str, torch.Size, torch.Tensor]] = []
        """The trained parameters as they were at the first step: the name, the shape and some values."""
        self._trained: frozenset[int] = frozenset()
        self._steps = 0
        self._others: WeakSet[nn.Module] = WeakSet()
        """Modules that are no copies."""
        self._copy: ref[nn.Module] | None = None
        self._unchanged: Unchanged | None = None
        self._was_called = False
        self._handle: Any = None
        self._followers = Followers()
        self._of_follower: Any = None
        self.followed: Callable[[], dict[str, Any] | None] | None = None
        """What is known of a model that follows, measured since the saved step before."""

    def begin_step(self, parameters: Named, trained: frozenset[int]) -> Callable[[], dict[str, Any]] | None:
        """Begin a step that is saved; return what is known of a copy that was called since the one before.

        `trained` are the ids of the modules of the models.
        """
        try:
            return self._begin_step(parameters, trained)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self._fail(error)
            return None

    def _begin_step(self, parameters: Named, trained: frozenset[int]) -> Callable[[], dict[str, Any]] | None:
        self.close()
        self._trained = trained
        self._steps += 1
        facts = self._facts()
        self.followed = self._followers.begin_step(
            parameters, is_searched=self._steps <= 1 + SEARCHED or self._copy is not None
        )
        self._was_called = False
        if has_compiled():  # a callback would be a reason to compile again
            return facts
        if self._steps == 1:
            self._first = [*_beginnings(parameters)]
        elif self._copy is None:
            if self._first and self._steps <= 1 + SEARCHED:
                self._handle = register_module_forward_pre_hook(self._before_any_forward)
        elif (copy := self._copy()) is not None:
            self._handle = copy.register_forward_pre_hook(OnCall(self.called))
        if (follower := self._followers.model) is not None:
            self._of_follower = follower.register_forward_pre_hook(OnCall(self._before_follower))
        return facts

    def close(self) -> None:
        """Watch no calls."""
        self._leave_copy()
        self._leave_follower()

    def _leave_copy(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _leave_follower(self) -> None:
        if self._of_follower is not None:
            self._of_follower.remove()
            self._of_follower = None

    def leave(self) -> None:
        """Search no more: a graph is about to be compiled, which would be compiled again."""
        self.close()
        self._first, self._copy = [], None

    def called(self) -> None:
        """Note that the copy was called, which is enough until the next step that is saved."""
        if not AGAIN.runs:
            self._was_called = True
            self._leave_copy()

    def _before_follower(self) -> None:
        if AGAIN.runs:
            return
        try:
            if self._followers.called():
                self._leave_follower()
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.leave()
        self._leave_out(error)

    def _before_any_forward(self, module: nn.Module, args: Any) -> None:
        try:
            self._consider(module)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self._fail(error)

    def _consider(self, module: nn.Module) -> None:
        if self.is_trained(module) or module in self._others or is_compiling() or is_tracing():
            return
        unchanged = None if AGAIN.runs else self.unchanged(module)
        if unchanged is None:
            self._others.add(module)
            if not AGAIN.runs:
                self._followers.consider(module)
            return
        self._copy, self._unchanged = ref(module), unchanged
        self.called()

    def is_trained(self, module: nn.Module) -> bool:
        """Whether it is the trained model, or a part of it."""
        return id(module) in self._trained

    def unchanged(self, module: nn.Module) -> Unchanged | None:
        """Return what the module has in common with the trained one at its first step; None if nothing."""
        place = self._place_of(module)
        if place is None:
            return None
        some = range(place.start, place.stop)[:: _every(place.stop - place.start)]
        names, values = zip(*((self._first[at][0], self._first[at][2]) for at in some), strict=True)
        return Unchanged(names[0], [at - place.start for at in some], names, torch.cat(values))

    def _place_of(self, module: nn.Module) -> slice | None:
        """Return which parameters the module has a copy of, as they were at the first step."""
        own = [*module.parameters()]
        if not any(parameter.dim() > 1 for parameter in own) or not all(map(is_plain, own)):
            return None
        shapes = [parameter.shape for parameter in own]
        trained = [shape for _, shape, _ in self._first]
        for begin in range(len(trained) - len(shapes) + 1):
            place = slice(begin, begin + len(shapes))
            if trained[place] == shapes and self._is_as_it_was(own, place):
                return place
        return None

    def _is_as_it_was(self, own: Sequence[nn.Parameter], place: slice) -> bool:
        every = _every(len(own))
        return all(
            parameter.device == values.device
            and parameter.dtype == values.dtype
            and torch.equal(_some(parameter), values)
            for parameter, (_, _, values) in zip(own[::every], self._first[place][::every], strict=True)
        )

    def _facts(self) -> Callable[[], dict[str, Any]] | None:
        copy, unchanged = None if self._copy is None else self._copy(), self._unchanged
        if copy is None or unchanged is None or not self._was_called:
            return None
        facts = {"model": class_name(copy), "of": unchanged.of}
        flag = unchanged.flag(copy)
        if flag.is_cuda:
            wait = fetched(flag)
            return lambda: {**facts, "is_same": bool(wait())}
        is_same = bool(flag)
        if not is_same:
            self._followers.consider(copy)
            self._copy, self._steps = None, 1 + SEARCHED  # it follows: there is nothing more to see
        return lambda: {**facts, "is_same": is_same}


class OnCall(Callback):
    """Called before the forward of a copy."""

    def __init__(self, called: Callable[[], object]):
        self._called = called

    def __call__(self, module: nn.Module, args: Any) -> None:
        if not is_compiling() and not is_tracing():
            self._called()


def _beginnings(parameters: Named) -> Iterator[tuple[str, torch.Size, torch.Tensor]]:
    """The shapes and some values of parameters; nothing if there are too many, or some have none to read."""
    if len(parameters) <= _MOST_PARAMETERS and all(is_plain(parameter) for _, parameter in parameters):
        for name, parameter in parameters:
            if parameter.requires_grad:
                yield name, parameter.shape, _some(parameter).clone()


def _some(parameter: torch.Tensor) -> torch.Tensor:
    return parameter.detach().reshape(-1)[:_VALUES]


def _every(count: int) -> int:
    return -(-count // _MOST_COMPARED)
