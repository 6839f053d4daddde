"""The hook for sessions of TensorFlow 1, as `tf.compat.v1` still has them.

    hook = smd.SessionHook("s3://bucket/run", include_collections=["weights", "gradients"])
    optimizer = hook.wrap_optimizer(optimizer)
    with tf.compat.v1.train.MonitoredSession(hooks=[hook]) as session: …

Each `session.run` is a step. At one that is saved, more is fetched than the training fetches; under the
default plan, only what the step computes anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugNotImplementedError, TrainingStopped
from smdebug.saving.hooks.framework import require
from smdebug.saving.hooks.options import HookOptions, takes
from smdebug.tensorflow.base_hook import TensorflowBaseHook
from smdebug.tensorflow.collection import CollectionManager

require("TensorFlow", "tensorflow", "tensorflow")

import tensorflow as tf  # noqa: E402

from smdebug.tensorflow.session_observer import SessionObserver  # noqa: E402

v1 = tf.compat.v1
SessionRunHook: Any = v1.train.SessionRunHook
_KNOWN_KINDS = (
    CollectionKeys.WEIGHTS,
    CollectionKeys.BIASES,
    CollectionKeys.GRADIENTS,
    CollectionKeys.LOSSES,
)


class SessionHook(TensorflowBaseHook, SessionRunHook):  # type: ignore[misc]
    """Saves variables, losses, gradients and whatever a collection names of a session's graph.

        with tf.compat.v1.train.MonitoredSession(hooks=[smd.SessionHook(out_dir)]) as session: …

    When a stop is requested, `session.should_stop()` is true after the step; `hook.stopped` has the reason.
    """

    if_no_step = "Pass the hook to the session: MonitoredSession(hooks=[hook])"
    if_no_loss = "Add one to the graph's losses: tf.compat.v1.losses.add_loss(loss)"
    observes = True

    def set_up(self, options: HookOptions) -> None:
        self._observer: SessionObserver | None = None
        self._losses: dict[str, Any] = {}
        self._gradients: dict[str, Any] = {}
        self._trained: dict[str, Any] = {}
        self._lasting: dict[str, Any] = {}  # facts of the optimizer
        self.stopped: TrainingStopped | None = None
        self._variables: dict[str, Any] = {}  # what reads each, by the variable's name
        self._tensors: dict[str, Any] = {}
        self._needs: dict[str, frozenset[str]] = {}  # the placeholders a tensor depends on
        super().set_up(options)

    def make_collections(self) -> CollectionManager:
        collections = super().make_collections()
        # Kinds come from the graph: by name, everything that variables consist of would match.
        for kind in _KNOWN_KINDS:
            collections.get(kind).include_regex.clear()
        return collections

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Save the gradients that this optimizer computes; return it."""
        compute = getattr(optimizer, "compute_gradients", None)
        if compute is None:
            return optimizer

        def compute_gradients(*arguments: Any, **more: Any) -> Any:
            pairs = compute(*arguments, **more)
            self.set_gradients(gradients_and_variables=pairs)
            self._lasting["optimizers"] = [
                {
                    "class": type(optimizer).__name__,
                    "groups": [{"parameters": [v.name for _, v in pairs], "others": 0}],
                }
            ]
            return pairs

        optimizer.compute_gradients = compute_gradients
        return optimizer

    def set_gradients(self, gradients: Any = None, gradients_and_variables: Any = None) -> None:
        """Save these tensors of the graph as gradients."""
        pairs = gradients_and_variables
        if pairs is None:
            pairs = [(gradient, None) for gradient in gradients or ()]
        names = self._lasting.setdefault("gradient_names", {})
        with self.without_choosing():
            for gradient, variable in pairs:
                if gradient is None:
                    continue
                dense = tf.convert_to_tensor(gradient)
                self.kinds[dense.name] = CollectionKeys.GRADIENTS
                self._gradients[dense.name] = dense
                self.get_collection(CollectionKeys.GRADIENTS).add_tensor_name(dense.name)
                if variable is not None:
                    names[variable.name] = dense.name

    # What the session calls

    def begin(self) -> None:
        """Find what there is to save: the graph is complete."""
        with self.without_choosing():
            self._sort_graph(v1.get_default_graph())

    def _sort_graph(self, graph: Any) -> None:
        """Put variables and losses into their collections, and note every tensor that has a value."""
        for variable in v1.global_variables():
            self._variables[variable.name] = variable.read_value()
            if variable in v1.trainable_variables():
                kind = CollectionKeys.BIASES if "bias" in variable.name else CollectionKeys.WEIGHTS
                self._trained[variable.name] = self._variables[variable.name]
            else:
                kind = CollectionKeys.OPTIMIZER_VARIABLES
            self.get_collection(kind).add_tensor_name(variable.name)
        for loss in v1.losses.get_losses():
            self._losses[loss.name] = loss
            self.get_collection(CollectionKeys.LOSSES).add_tensor_name(loss.name)
        for operation in graph.get_operations():
            for tensor in operation.outputs:
                is_value = tensor.dtype not in (tf.resource, tf.variant)
                if is_value and tensor.name not in self._variables:
                    self._tensors[tensor.name] = tensor

    def before_run(self, run_context: Any) -> Any:
        """Begin a step, and return what to fetch in addition."""
        try:
            self.begin_step()
        except TrainingStopped as stopped:
            self.stopped = stopped
            run_context.request_stop()
            return None
        if self._observer is None and self.observations is not None:
            self._observer = SessionObserver(self, self.observations)
        if self._observer is not None:
            return self._observed(self._observer, run_context)
        if not self.due:
            return None
        variables = {n: read for n, read in self._variables.items() if self.wants(n)}
        if variables:
            values: Mapping[str, Any] = run_context.session.run(variables)
            self.record_all(values)  # as they are before this step changes them
        given = frozenset(_names(run_context.original_args.feed_dict or {}))
        return v1.train.SessionRunArgs(
            {
                name: tensor
                for name, tensor in self._tensors.items()
                if self.wants(name) and self._can_be_fetched(tensor, given)
            }
        )

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Save what was fetched: the step is over."""
        observer = self._observer
        if observer is not None:
            self.guarded(
                lambda: observer.end_step(
                    run_values.results or {},
                    self._losses,
                    lambda: run_context.session.run(self._trained),
                    self._lasting,
                )
            )
        elif run_values.results:
            self.record_all(run_values.results)
        self.end_step()

    def end(self, session: Any) -> None:
        """Wait until everything is written: the session has ended."""
        self.flush(self.write_patience)

    def _observed(self, observer: SessionObserver, run_context: Any) -> Any:
        """Return what to fetch under the default plan."""
        if self.due and self._trained:
            self.guarded(lambda: observer.begin_step(run_context.session.run(self._trained)))
        fetched: dict[str, Any] = {}
        self.guarded(
            lambda: fetched.update(
                observer.fetched(
                    run_context.original_args.fetches,
                    self._losses.values(),
                    self._gradients.values(),
                )
            )
        )
        fetched = {name: t for name, t in fetched.items() if not _is_in_a_loop(t)}
        return v1.train.SessionRunArgs(fetched) if fetched else None

    def _can_be_fetched(self, tensor: Any, given: frozenset[str]) -> bool:
        """Return whether it has a value: not without its placeholders fed, and not inside a loop."""
        needs = self._needs.get(tensor.name)
        if needs is None:
            needs = self._needs[tensor.name] = _placeholders_behind(tensor)
        if not needs <= given:
            return False
        return bool(tensor.graph.is_fetchable(tensor)) and not _is_in_a_loop(tensor)


class EstimatorHook(SessionHook):
    """The hook for an Estimator's `train(hooks=[hook])`, in TensorFlow before 2.16."""

    @takes(HookOptions)
    def __init__(self, options: HookOptions):
        if not hasattr(tf, "estimator"):
            raise SMDebugNotImplementedError(
                f"TensorFlow {tf.__version__} has no Estimators: they were removed in 2.16. Train with "
                "Keras and a KerasHook, or with tf.compat.v1.train.MonitoredSession and a SessionHook."
            )
        self.set_up(options)


def _placeholders_behind(tensor: Any) -> frozenset[str]:
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [tensor.op]
    while waiting:
        operation = waiting.pop()
        if operation.name in seen:
            continue
        seen.add(operation.name)
        if operation.type == "Placeholder":
            found.add(operation.outputs[0].name)
        waiting += [source.op for source in operation.inputs] + list(operation.control_inputs)
    return frozenset(found)


def _is_in_a_loop(tensor: Any) -> bool:
    return tensor.op._get_control_flow_context() is not None


def _names(fed: Iterable[Any]) -> Iterable[str]:
    for tensor in fed:
        yield tensor if isinstance(tensor, str) else tensor.name
