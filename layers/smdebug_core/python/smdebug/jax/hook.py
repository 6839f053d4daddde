"""The hook for JAX.

    hook = smd.Hook("s3://bucket/run", include_collections=["weights", "gradients"])
    for batch in batches:
        with hook.step(smd.modes.TRAIN):
            loss, gradients = value_and_gradients(params, batch)     # jitted, as ever
            hook.record("loss", loss)
            hook.record_weights(params)
            hook.record_gradients(gradients)
            params, state = update(params, state, gradients)

Leaves are named by their paths: `Dense_0/kernel`, `gradient/Dense_0/kernel`. Only the leaves that are wanted
are copied from the device; at a step that wants none, trees are not walked at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugTypeError
from smdebug.mode_keys import ModeKeys
from smdebug.saving.arrays.adapter import Array, Caveat, FrameworkAdapter
from smdebug.saving.hooks.framework import require
from smdebug.saving.hooks.loop_hook import LoopHook, NeutralCollections
from smdebug.saving.hooks.options import HookOptions
from smdebug.saving.planning.default_plan import GRADIENTS, OUTPUTS, PARAMETERS, UPDATES

require("JAX", "jax", "jax")

import jax  # noqa: E402

from smdebug.jax.observer import TreeObserver  # noqa: E402


class JaxCollections(NeutralCollections):
    """Weights and biases as libraries for JAX name them: `kernel`, `embedding`, `w`; `bias`, `b`."""

    default_collections: Mapping[str, tuple[str, ...]] = {
        **NeutralCollections.default_collections,
        CollectionKeys.WEIGHTS: (
            "^(?!gradient|output).*(kernel|embedding|scale|weight)",
            "^(?!gradient|output)(.*/)?w$",
        ),
        CollectionKeys.BIASES: ("^(?!gradient|output).*bias", "^(?!gradient|output)(.*/)?b$"),
        CollectionKeys.OUTPUTS: ("^output/",),
    }


class JaxAdapter(FrameworkAdapter):
    """Arrays of JAX; of one that is spread over several processes, this process's first part."""

    def to_array(self, value: Any) -> Array:
        if isinstance(value, jax.core.Tracer):
            raise SMDebugTypeError(
                "it is being traced, and has no value yet. Return it "
                "from the jitted function, and record what that returns"
            )
        if isinstance(value, jax.Array):
            if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
                value = jax.random.key_data(value)
            if not value.is_fully_addressable:
                value = value.addressable_shards[0].data
        return super().to_array(value)

    def caveat(self, name: str, value: Any) -> Caveat | None:
        if not isinstance(value, jax.Array) or isinstance(value, jax.core.Tracer):
            return None
        if value.is_fully_addressable or value.is_fully_replicated:
            return None
        return Caveat(
            f"{name} is spread over several processes (others may be too): each saves its first part",
            "spread",
        )

    def is_whole(self, value: Any) -> bool:
        return not isinstance(value, jax.Array) or value.is_fully_replicated

    def number(self, value: Any) -> Any:
        if not isinstance(value, jax.Array):
            return super().number(value)
        if isinstance(value, jax.core.Tracer) or value.size != 1:
            return None
        if not value.is_fully_addressable or value.dtype.kind == "c":
            return None
        return _Late(value)

    def rank_and_size(self) -> tuple[int, int]:
        return int(jax.process_index()), int(jax.process_count())


class _Late:
    """A number that a device is computing.

    Reading it here would wait for it; it is read in the background.
    """

    def __init__(self, value: Any):
        value.copy_to_host_async()
        self._value = value

    def __float__(self) -> float:
        # A jitted function may have reused the memory, if the number was donated to it.
        return math.nan if self._value.is_deleted() else float(self._value.reshape(()))


class Hook(LoopHook):
    """Saves losses, weights, gradients and outputs of layers of a training loop in JAX.

        with hook.step(smd.modes.TRAIN):
            loss, gradients = value_and_gradients(params, batch)
            hook.record("loss", loss)
            hook.record_gradients(gradients)

    Record outside of jitted functions: inside there are no values yet. Given only a path, it
    follows the default plan: numbers are kept for every step, and trees as statistics.
    """

    adapter = JaxAdapter()
    takes_over = True
    observes = True
    saved_by_default = NeutralCollections.saved_by_default

    def set_up(self, options: HookOptions) -> None:
        self._observer: TreeObserver | None = None
        super().set_up(options)

    def make_collections(self) -> JaxCollections:
        return JaxCollections(create_default=True)

    def begin_step(self, mode: ModeKeys | None = None) -> None:
        """Begin the next step, of `mode` or else the mode that is set. The previous step ends."""
        super().begin_step(mode)
        if self._observer is None and self.observations is not None:
            self._observer = TreeObserver(self, self.observations, self.adapter.to_array)

    def record_weights(self, params: Any) -> None:
        """Record each leaf of a tree of parameters, by its path: `Dense_0/kernel`.

        Under the default plan record them at every step: the change since the previous step is the update,
        unless `record_updates` gets it.
        """
        observer = self._observer
        if observer is not None and observer.wants_parameters:
            self.guarded(lambda: observer.observe_parameters(dict(_leaves(params))))
        self._record_as(params, "", PARAMETERS)

    def record_gradients(self, gradients: Any) -> None:
        """Record each leaf of a tree of gradients: `gradient/Dense_0/kernel`."""
        self._record_as(gradients, "gradient", GRADIENTS)

    def record_updates(self, updates: Any) -> None:
        """Record each leaf of a tree of updates, as Optax returns it: `update/Dense_0/kernel`.

        A parameter whose update is zero, while others have one, counts as frozen.
        """
        observer = self._observer
        if observer is None or not self.due:
            self._record_as(updates, "update", UPDATES)
        else:
            self.guarded(lambda: self._record_updates(observer, updates))

    def record_layers(self, intermediates: Any) -> None:
        """Record outputs of layers, from Flax's `capture_intermediates`, as `output/Dense_0`."""
        self._record_as(intermediates, "output", OUTPUTS)

    def record_tree(self, tree: Any, prefix: str = "") -> None:
        """Record each leaf of any tree, as `<prefix>/<path>`."""
        self._record_as(tree, prefix)

    def _record_updates(self, observer: TreeObserver, updates: Any) -> None:
        for path, leaf in observer.given(dict(_leaves(updates))).items():
            name = f"update/{path}"
            self.observe_as(name, UPDATES)
            self.record(name, leaf)

    def observe_end(self) -> None:
        """Record the updates of a saved step that ends, and note its facts."""
        if self._observer is not None:
            self._observer.end_step()

    def _record_as(self, tree: Any, prefix: str, kind: str | None = None) -> None:
        if not self.due:
            return
        for path, leaf in _leaves(tree):
            name = f"{prefix}/{path}" if prefix and path else prefix or path
            if kind is not None:
                self.observe_as(name, kind)
            self.record(name, leaf)


def _leaves(tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield each leaf with its path, without the levels that Flax wraps around a tree."""
    for keys, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        parts = [_name_of_key(key) for key in keys]
        if parts[:1] in (["params"], ["intermediates"]):
            del parts[0]
        # Flax stores outputs of a layer under `__call__` and a number, and a variable under `value`.
        while parts and (parts[-1] in ("__call__", "value", "0") and len(parts) > 1):
            if parts[-1] == "0" and "__call__" not in parts:
                break
            parts.pop()
        yield "/".join(parts), leaf


def _name_of_key(key: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)
