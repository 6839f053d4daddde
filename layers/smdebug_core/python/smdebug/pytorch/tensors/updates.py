"""What an optimizer's step changes of each parameter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import torch

from smdebug.numbers.rows import SAMPLE_SIZE
from smdebug.pytorch.tensors.arrays import PLAIN, TensorChange, is_plain
from smdebug.pytorch.tensors.rows import is_measurable, sampled
from smdebug.saving.arrays.measurer import SMALL

_CAN_COPY = hasattr(torch, "_foreach_copy_")
_TOGETHER = 4 << 20
"""Parameters of up to this many bytes are copied by one call for all. More of them fill the processor's cache
with each of two passes, which costs more than the calls."""
MIN_BYTES = 64 << 20
SHARE = 0.05
"""Copies of parameters may take 64 MB, or this share of the parameters, whichever is more. Beyond that the
updates are computed of the sampled values alone."""


class RecordingHook(Protocol):
    """What recording updates needs from the hook."""

    def record_together(self, tensors: Sequence[tuple[str, Any]]) -> None: ...
    def packed(self, names: tuple[str, ...], values: Sequence[Any]) -> Any: ...
    def record_changes(self, names: tuple[str, ...], values: Sequence[Any], before: Any) -> bool: ...


class Updates:
    """Keeps parameters as they are before a step of their optimizer, and records the difference after it.

    Small parameters are packed before and after it, and subtracted in the background.
    """

    def __init__(self, hook: RecordingHook):
        self.are_sampled = False
        """Whether updates are computed of samples to save memory."""
        self._hook = hook
        self._packed: Any = None
        self._kept: dict[str, torch.Tensor] = {}
        self.before: list[tuple[str, torch.Tensor]] = []
        """The parameters whose updates are to be recorded, while there are any."""
        self._copies: list[torch.Tensor] = []
        self._forms: list[tuple[object, ...]] = []
        """The forms of the parameters that are copied together; empty if each is copied by itself."""
        self._names: list[str] = []
        self._update_names: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether a step has begun whose updates are to be recorded."""
        return bool(self.before)

    def before_step(self, parameters: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Keep these parameters, each with its name, as they are."""
        given = list(parameters)
        values = [parameter for _, parameter in given]
        if self._names == [name for name, _ in given]:
            self._packed = self._hook.packed(self._update_names, values)
            if self._packed is not None:
                self.before = given
                return
        with torch.no_grad():
            if self._are_as_before(given):
                self.before = given
                torch._foreach_copy_(self._copies, values)
                return
            self._keep_all(given)

    def after_step(self) -> None:
        """Record what the step has changed."""
        before, self.before = self.before, []
        packed, self._packed = self._packed, None
        if packed is not None:
            now = [parameter for _, parameter in before]
            if self._hook.record_changes(self._update_names, now, packed):
                return
        with torch.no_grad():
            if packed is not None:
                ends = torch.from_numpy(packed).split([copy.numel() for copy in self._copies])
                for copy, values in zip(self._copies, ends, strict=True):
                    copy.copy_(values.view(copy.shape))
            if self._are_as_before(before):
                torch._foreach_neg_(self._copies)
                torch._foreach_add_(self._copies, [parameter for _, parameter in before])
                changes = list(zip(self._update_names, self._copies, strict=True))
            else:
                changes = list(self._changes(before))
        self._hook.record_together(changes)

    def forget(self) -> None:
        """Drop all copies."""
        self.before.clear()
        self._kept.clear()
        self._copies, self._forms, self._names, self._packed = [], [], [], None

    def _are_as_before(self, given: Sequence[tuple[str, torch.Tensor]]) -> bool:
        """Whether all are plain tensors of the forms that their copies have, in the same order."""
        forms = self._forms
        return (
            bool(forms)
            and len(given) == len(forms)
            and all(
                type(parameter) in PLAIN
                and (name, parameter.shape, parameter.dtype, parameter.device) == form
                for (name, parameter), form in zip(given, forms, strict=True)
            )
        )

    def _keep_all(self, given: Sequence[tuple[str, torch.Tensor]]) -> None:
        self._copies, self._forms, self._names = [], [], []
        self.before = [
            (name, values) for name, parameter in given if (values := _values(parameter)) is not None
        ]
        bytes_of_all = sum(_size(values) for _, values in self.before)
        self.are_sampled = bytes_of_all > max(MIN_BYTES, SHARE * bytes_of_all)
        for name, values in self.before:
            self._keep(name, values)
        is_plain = all(type(parameter) in PLAIN for _, parameter in given)
        fits = bytes_of_all <= _TOGETHER and not self.are_sampled
        if fits and is_plain and len(self.before) == len(given) and _CAN_COPY:
            self._copies = [self._kept[name] for name, _ in given]
            self._forms = [(name, *_form(values)) for name, values in self.before]
            self._names = [name for name, _ in given]
            self._update_names = tuple([f"update/{name}" for name in self._names])

    def _changes(
        self, before: Iterable[tuple[str, torch.Tensor]]
    ) -> Iterator[tuple[str, torch.Tensor | TensorChange]]:
        for name, values in before:
            kept = self._kept[name]
            now = _sample(values) if self.are_sampled else values
            if now.shape != kept.shape:  # a step may replace a parameter's values
                continue
            if now.is_cpu and now.numel() > SMALL and now.dtype is kept.dtype and is_plain(now):
                yield f"update/{name}", TensorChange(now, kept)
            else:
                torch.sub(now, kept, out=kept)
                yield f"update/{name}", kept

    def _keep(self, name: str, values: torch.Tensor) -> None:
        if self.are_sampled:
            values = _sample(values)
        kept = self._kept.get(name)
        if kept is None or _form(kept) != _form(values):
            self._kept[name] = values.clone()
        else:
            kept.copy_(values)


def _values(parameter: torch.Tensor) -> torch.Tensor | None:
    """The values that this process holds of a parameter; None where there are none to subtract."""
    values = parameter.detach()
    if hasattr(values, "to_local"):
        values = values.to_local()
    is_usable = is_measurable(values) and values.is_floating_point() and values.numel()
    return values if is_usable else None


def _form(values: torch.Tensor) -> tuple[object, ...]:
    return values.shape, values.dtype, values.device


def _size(values: torch.Tensor) -> int:
    return int(values.numel() * values.element_size())


def _sample(values: torch.Tensor) -> torch.Tensor:
    sample = sampled([values], SAMPLE_SIZE)[0]
    return sample[: min(SAMPLE_SIZE, values.numel())]
