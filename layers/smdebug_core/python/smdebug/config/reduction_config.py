"""What to save of a tensor: its value, reductions, its shape."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from smdebug.config.parsing import json_object, truth, words
from smdebug.exceptions import SMDebugValueError

ALLOWED_REDUCTIONS = ["min", "max", "mean", "std", "variance", "sum", "prod", "median"]
ALLOWED_NORMS = ["l1", "l2"]
# The old reader refuses a run with an unknown name, and ignores unknown keys.
UNKNOWN_TO_THE_OLD_READER = frozenset({"median"})
MORE_REDUCTIONS = "more_reductions"


class Reduction(NamedTuple):
    """A reduction of a tensor, or of its absolute values, to a number."""

    name: str
    abs: bool = False

    @property
    def label(self) -> str:
        """Its part of the saved tensor's name: `l1`, `abs_mean`."""
        return f"abs_{self.name}" if self.abs else self.name


class ReductionConfig:
    """Save reductions instead of, or in addition to, whole tensors:
    `ReductionConfig(reductions=["min", "max"], norms=["l2"])`.

    Every list accepts every spelling: `"l2"`, `"l2_norm"`, `"abs_mean"`, `"MEAN"`.
    """

    def __init__(
        self,
        reductions: Iterable[str] | str | None = None,
        abs_reductions: Iterable[str] | str | None = None,
        norms: Iterable[str] | str | None = None,
        abs_norms: Iterable[str] | str | None = None,
        save_raw_tensor: bool | str = False,
        save_shape: bool | str = False,
    ):
        self.reductions: list[str] = []
        self.abs_reductions: list[str] = []
        self.norms: list[str] = []
        self.abs_norms: list[str] = []
        self.save_raw_tensor = truth(save_raw_tensor, "save_raw_tensor")
        self.save_shape = truth(save_shape, "save_shape")
        for spelled, of_abs in (
            (words(reductions, "reductions"), False),
            (words(norms, "norms"), False),
            (words(abs_reductions, "abs_reductions"), True),
            (words(abs_norms, "abs_norms"), True),
        ):
            for spelling in spelled:
                self._add(_reduction(spelling, of_abs))

    def _add(self, reduction: Reduction) -> None:
        is_norm = reduction.name in ALLOWED_NORMS
        if reduction.abs:
            names = self.abs_norms if is_norm else self.abs_reductions
        else:
            names = self.norms if is_norm else self.reductions
        if reduction.name not in names:
            names.append(reduction.name)

    def __iter__(self) -> Iterator[Reduction]:
        """The requested reductions, in the order in which they are saved."""
        for name in (*self.reductions, *self.norms):
            yield Reduction(name)
        for name in (*self.abs_reductions, *self.abs_norms):
            yield Reduction(name, abs=True)

    def with_(self, *others: ReductionConfig) -> ReductionConfig:
        """Return a config with everything that this one or any of the others requests."""
        together = ReductionConfig(
            save_raw_tensor=self.save_raw_tensor or any(o.save_raw_tensor for o in others),
            save_shape=self.save_shape or any(o.save_shape for o in others),
        )
        for config in (self, *others):
            for reduction in config:
                together._add(reduction)
        return together

    @classmethod
    def from_dict(cls, params: Mapping[str, Any] | None) -> ReductionConfig | None:
        """Create a config from `{"reductions": "min,abs_mean,l2_norm", "save_raw_tensor": "True", …}`."""
        if params is None:
            return None
        if not isinstance(params, Mapping):
            raise SMDebugValueError(f"A reduction config must be a dictionary, not {params!r}")
        reductions = words(params.get("reductions"), "reductions")
        reductions += words(params.get(MORE_REDUCTIONS), MORE_REDUCTIONS)
        return cls(
            reductions=reductions,
            abs_reductions=params.get("abs_reductions"),
            norms=params.get("norms"),
            abs_norms=params.get("abs_norms"),
            save_raw_tensor=_or_false(params.get("save_raw_tensor")),
            save_shape=_or_false(params.get("save_shape")),
        )

    @classmethod
    def from_json(cls, json_str: str | bytes) -> ReductionConfig:
        config = cls.from_dict(json_object(json_str, "A reduction config"))
        assert config is not None
        return config

    def to_json_dict(self) -> dict[str, Any]:
        """Return the configuration as the collections file has it."""
        known = [r for r in self if r.name not in UNKNOWN_TO_THE_OLD_READER]
        unknown = [r for r in self if r.name in UNKNOWN_TO_THE_OLD_READER]
        more = {MORE_REDUCTIONS: ",".join(map(_spelled, unknown))} if unknown else {}
        return {
            "save_raw_tensor": self.save_raw_tensor,
            "reductions": ",".join(map(_spelled, known)),
            "save_shape": self.save_shape,
            **more,
        }

    def to_json(self) -> str:
        """Return the configuration as JSON text."""
        return json.dumps(self.to_json_dict())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReductionConfig):
            return NotImplemented
        return type(self) is type(other) and self.to_json_dict() == other.to_json_dict()

    __hash__ = None  # type: ignore[assignment]  # its lists are mutable

    def __repr__(self) -> str:
        return (
            f"<class ReductionConfig: reductions={self.reductions}, "
            f"abs_reductions={self.abs_reductions}, norms={self.norms}, "
            f"abs_norms={self.abs_norms}>, save_shape={self.save_shape}, "
            f"save_raw_tensor={self.save_raw_tensor}"
        )


def _reduction(spelling: str, of_abs: bool) -> Reduction:
    name = spelling.lower()
    if name.startswith("abs_"):
        name, of_abs = name.removeprefix("abs_"), True
    if name.removesuffix("_norm") in ALLOWED_NORMS:
        name = name.removesuffix("_norm")
    if name not in ALLOWED_REDUCTIONS and name not in ALLOWED_NORMS:
        raise SMDebugValueError(
            f"{spelling!r} is not a reduction. Known are "
            f"{', '.join(ALLOWED_REDUCTIONS + ALLOWED_NORMS)}, each also with the prefix abs_"
        )
    return Reduction(name, of_abs)


def _spelled(reduction: Reduction) -> str:
    return f"{reduction.label}_norm" if reduction.name in ALLOWED_NORMS else reduction.label


def _or_false(value: Any) -> Any:
    return False if value is None else value
