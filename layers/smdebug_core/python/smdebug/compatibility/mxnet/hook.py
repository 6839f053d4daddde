"""The hook for MXNet's Gluon.

    hook = smd.Hook("s3://bucket/run", include_collections=["weights", "gradients"])
    hook.register_block(net)      # each forward of the net begins a step
    hook.register_block(loss)

Parameters and gradients of a step are saved when the next begins, after their update.
"""

from __future__ import annotations

from typing import Any

from smdebug.compatibility.mxnet.collection import CollectionManager
from smdebug.config.keys import CollectionKeys
from smdebug.mode_keys import ModeKeys
from smdebug.saving.arrays.adapter import Array, FrameworkAdapter
from smdebug.saving.hooks.framework import require
from smdebug.saving.hooks.hook import FrameworkHook
from smdebug.saving.hooks.options import HookOptions
from smdebug.saving.process.ranks import ALONE, by_horovod

require("MXNet", "mxnet", "mxnet")

from mxnet import gluon  # noqa: E402
from mxnet.gluon.parameter import DeferredInitializationError  # noqa: E402
from mxnet.ndarray import NDArray  # noqa: E402

from smdebug.compatibility.mxnet.observer import GluonObserver, LateMean  # noqa: E402

DEFAULT_INCLUDE_COLLECTIONS = [CollectionKeys.LOSSES]
# The number of a block's inputs and outputs is unknown beforehand: this many are tried.
_NUMBERS_TRIED = 16


class MXNetAdapter(FrameworkAdapter):
    """Arrays of MXNet, and the ranks of Horovod."""

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, NDArray)

    def to_array(self, value: Any) -> Array:
        return super().to_array(value.asnumpy() if isinstance(value, NDArray) else value)

    def owns_its_memory(self, value: Any, array: Array) -> bool:
        return isinstance(value, NDArray) or super().owns_its_memory(value, array)

    def number(self, value: Any) -> Any:
        if isinstance(value, LateMean):
            return value
        return super().number(value.asnumpy() if isinstance(value, NDArray) else value)

    def rank_and_size(self) -> tuple[int, int]:
        return by_horovod() or ALONE


class Hook(FrameworkHook):
    """Saves weights, gradients, losses, and inputs and outputs of blocks, while a Gluon net trains.

        hook = smd.Hook(out_dir, include_collections=["weights", "gradients"])
        hook.register_block(net)
        hook.register_block(loss)

    Each forward of the net is a step; `hook.set_mode(modes.EVAL)` sets the mode of the next ones. The blocks
    inside a hybridized net run as one graph, and are not seen. Given only a path, the hook
    follows the default plan.
    """

    adapter = MXNetAdapter()
    if_no_step = "Register the net before it is trained: hook.register_block(net)"
    if_no_loss = "Register its loss: hook.register_block(loss)"
    takes_over = True
    observes = True
    saved_by_default = DEFAULT_INCLUDE_COLLECTIONS

    def set_up(self, options: HookOptions) -> None:
        self._blocks: list[Any] = []
        self._losses: list[Any] = []
        self._handles: list[Any] = []
        self._block_handles: list[Any] = []
        self._hooked_for: int | None = None
        self._by_hand = False
        self._observer: GluonObserver | None = None
        super().set_up(options)

    def make_collections(self) -> CollectionManager:
        return CollectionManager()

    def register_block(self, block: Any) -> None:
        """Watch this net, or this loss. Of several nets, the first one's forward begins a step."""
        if not isinstance(block, gluon.Block):
            self.logger.error("register_block takes a gluon.Block, not %r, which is not watched", block)
            return
        if any(block is known for known in [*self._blocks, *self._losses]):
            self.logger.warning("%s is registered with this hook already", block.name)
            return
        if isinstance(block, gluon.loss.Loss):
            self._losses.append(block)
            self._handles.append(block.register_forward_hook(self._after_loss))
            return
        if not self._blocks:
            self._handles.append(block.register_forward_pre_hook(self._before_forward))
        self._blocks.append(block)
        self._hooked_for = None

    register_hook = register_block

    def begin_step(self, mode: ModeKeys | None = None) -> None:
        """Begin the next step. From now on the forward of the net does not begin steps."""
        self._by_hand = True
        self._next_step(mode)

    def end_step(self, *, interrupted: bool = False) -> None:
        """End the step: what was recorded is handed over, marked if the step was interrupted."""
        self._finish()
        super().end_step(interrupted=interrupted)

    def _before_forward(self, block: Any, inputs: Any) -> None:
        if not self._by_hand and not self.has_closed:
            self._next_step()
        observer = self._observer
        if observer is not None:
            self.guarded(lambda: observer.net_called(block, inputs))

    def _next_step(self, mode: ModeKeys | None = None) -> None:
        self._finish()
        super().begin_step(mode)
        if self._observer is None and self.observations is not None:
            self._observer = GluonObserver(self, self.observations)
        observer = self._observer
        if observer is not None:
            self.guarded(lambda: observer.begin_step(self._blocks))
        if self.due != self._hooked_for:
            self.guarded(self._hook_blocks)

    def _finish(self) -> None:
        """Record the parameters of the step that ends, and their gradients."""
        observer = self._observer
        if observer is not None:
            self.guarded(lambda: observer.end_step(self._blocks))
        elif self.due and self._blocks:
            self.guarded(self._record_parameters)

    def _record_parameters(self) -> None:
        for block in self._blocks:
            for name, parameter in block.collect_params().items():
                gradient = f"gradient/{name}"
                try:
                    if self.wants(name):
                        self.record(name, parameter.list_data()[0])
                    if parameter.grad_req != "null" and self.wants(gradient):
                        self.record(gradient, parameter.list_grad()[0])
                except (DeferredInitializationError, RuntimeError):
                    continue  # it has no value yet

    # Blocks

    def _hook_blocks(self) -> None:
        """Hook the blocks of which something is wanted, and no others."""
        for handle in self._block_handles:
            handle.detach()
        self._block_handles.clear()
        self._hooked_for = self.due
        if not self.due:
            return
        for root in self._blocks:
            wanted = [block for block in _all_blocks(root) if self._wants_any_of(block.name)]
            hidden = [block.name for block in wanted if block is not root]
            if hidden and getattr(root, "_active", False):
                self.warn_once(
                    f"Inputs and outputs of the block {hidden[0]} and of {len(hidden) - 1} others are not "
                    f"saved: {root.name} is hybridized, and runs as one graph"
                )
                wanted = [block for block in wanted if block is root]
            for block in wanted:
                self._block_handles.append(block.register_forward_hook(self._after_forward))

    def _after_forward(self, block: Any, inputs: Any, output: Any) -> None:
        if self.due:
            self.record_inputs(block.name, inputs)
            self.record_outputs(block.name, output)

    def _after_loss(self, loss: Any, inputs: Any, output: Any) -> None:
        observer = self._observer
        if observer is not None and not self.has_closed:
            self.guarded(lambda: observer.loss_called(loss, inputs, output))
        self._after_forward(loss, inputs, output)

    def _wants_any_of(self, name: str) -> bool:
        return any(
            self.wants(f"{name}_{side}_{number}")
            for side in ("input", "output")
            for number in range(_NUMBERS_TRIED)
        )

    def end_run(self, *, ended: bool) -> None:
        """End the run, with an end marker if the training `ended` well, and stop watching."""
        self._finish()
        if not ended:
            self.mark_interrupted()
        super().end_run(ended=ended)
        for handle in [*self._handles, *self._block_handles]:
            handle.detach()
        self._handles.clear()
        self._block_handles.clear()


def _all_blocks(root: Any) -> list[Any]:
    """The block, and all inside it, each once."""
    found: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        block = waiting.pop(0)
        if id(block) not in found:
            found[id(block)] = block
            waiting += block._children.values()
    return list(found.values())
