"""Select the tensors that a rule checks, by collection and by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smdebug.config.patterns import matches_any
from smdebug.rules.parameters import patterns, strings

if TYPE_CHECKING:
    from smdebug.mode_keys import ModeKeys
    from smdebug.trials.trial import Trial

# Collections that tornasole named differently.
_OLD_NAMES = {"bias": "biases"}


class TensorSelection:
    """The union of the tensors of some collections and those whose names match some patterns."""

    comes_from_parameters = True

    def __init__(self, collection_names: Any = None, tensor_regex: Any = None):
        self.collection_names = strings("collection_names", collection_names)
        self.tensor_regex = patterns("tensor_regex", tensor_regex)

    def __bool__(self) -> bool:
        return bool(self.collection_names or self.tensor_regex)

    def names(self, trial: Trial, step: int | None = None, mode: ModeKeys | None = None) -> list[str]:
        """Return the names of the selected tensors, sorted; limited to a step or mode if one is given."""
        at: dict[str, Any] = {} if step is None else {"step": step}
        if mode is not None:
            at["mode"] = mode
        selected: set[str] = set()
        if self.collection_names:
            known = trial.collections()
            for name in self.collection_names:
                name = name if name in known else _OLD_NAMES.get(name, name)
                if name in known:
                    selected.update(trial.tensor_names(collection=name, **at))
        if self.tensor_regex:
            selected.update(trial.tensor_names(regex=self.tensor_regex, **at))
        return sorted(selected)

    def names_itself(self, name: str) -> bool:
        """Return whether a pattern selects this tensor, whatever its collections are."""
        return matches_any(name, self.tensor_regex)

    def __str__(self) -> str:
        parts = []
        if self.collection_names:
            parts.append(f"in the collections {', '.join(self.collection_names)}")
        if self.tensor_regex:
            parts.append(f"matching {', '.join(map(repr, self.tensor_regex))}")
        return f"tensors {' or '.join(parts)}" if parts else "all tensors"
