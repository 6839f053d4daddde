"""The options of hooks, declared once.

    @dataclass(frozen=True)
    class TorchOptions(HookOptions):
        compiled_layers: str = field(default="skip", kw_only=True)

    class Hook(FrameworkHook):
        @takes(TorchOptions)
        def __init__(self, options: TorchOptions): ...

A field of `HookOptions` is an option of every hook: `takes` gives constructors the fields as their signature,
which type checkers, `help()` and editors show.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, cast

from smdebug.config.parsing import Default, patterns, truth, words
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError, TrainingStopped
from smdebug.files.framing import Checksum
from smdebug.mode_keys import ModeKeys
from smdebug.plain_text import did_you_mean
from smdebug.saving.place.places import Place
from smdebug.saving.process.companion import checked_alerts, checked_rule_file
from smdebug.saving.process.sinks import checked_sinks
from smdebug.saving.requests.control import Agree
from smdebug.saving.requests.control_file import LOOK_EVERY

P = ParamSpec("P")
S = TypeVar("S")
C = TypeVar("C", bound=Callable[..., None])
O = TypeVar("O", bound="HookOptions")  # noqa: E741


@dataclass(frozen=True)
class HookOptions:
    """What every hook takes, checked when it is made. The order up to `include_workers` is public."""

    out_dir: Place | None = None
    export_tensorboard: bool = False
    tensorboard_dir: str | None = None
    dry_run: bool = False
    reduction_config: ReductionConfig | None = None
    save_config: SaveConfig | Mapping[ModeKeys, Any] | None = None
    include_regex: str | Iterable[str] | None = None
    include_collections: str | Iterable[str] | None = None
    save_all: bool = False
    include_workers: str = Default("one")
    _: KW_ONLY
    run_id: str | None = None
    checksum: Checksum = "constant"
    rules: Any = None
    agree: Agree | None = None
    on_stop: Callable[[TrainingStopped], object] | None = None
    look_for_stop: float | None = LOOK_EVERY
    evaluate: bool | Literal["here"] | None = None
    alerts: str | Iterable[str] = ()
    rule_file: str | None = None
    sinks: Any = ()
    config: Any = None
    tags: str | Iterable[str] | None = None
    note: str | None = None
    origin: str = "all"
    not_secret: str | Iterable[str] = ()
    system_metrics: bool = True

    def __post_init__(self) -> None:
        if self.reduction_config is not None and not isinstance(self.reduction_config, ReductionConfig):
            raise SMDebugTypeError(
                f"reduction_config must be a ReductionConfig, not {self.reduction_config!r}"
            )
        if self.checksum not in ("constant", "tfrecord"):
            raise SMDebugValueError(f'checksum must be "constant" or "tfrecord", not {self.checksum!r}')
        if self.look_for_stop is not None and not self.look_for_stop >= 0:
            raise SMDebugValueError(
                f"look_for_stop must be a number of seconds, or None for never, not {self.look_for_stop!r}"
            )
        object.__setattr__(self, "alerts", checked_alerts(self.alerts))
        object.__setattr__(self, "rule_file", checked_rule_file(self.rule_file))
        object.__setattr__(self, "sinks", checked_sinks(self.sinks))
        chosen = (
            self.reduction_config,
            self.save_config,
            self.include_regex,
            self.save_all or None,
        )
        says_nothing = chosen == (None,) * len(chosen) and self.include_collections is None
        object.__setattr__(self, "_chooses_tensors", not says_nothing)
        for flag in ("export_tensorboard", "dry_run", "save_all", "system_metrics"):
            object.__setattr__(self, flag, truth(getattr(self, flag), flag))
        object.__setattr__(self, "save_config", SaveConfig.parse(self.save_config))
        object.__setattr__(self, "include_regex", self._patterns())
        named = words(self.include_collections, "include_collections")
        object.__setattr__(self, "include_collections", tuple(named))

    @classmethod
    def of(cls, *positional: Any, options: HookOptions | None = None, **given: Any) -> HookOptions:
        """Return `options` as they are, or else make them from a constructor's arguments."""
        return cls(*positional, **given) if options is None else options

    @property
    def save_all_workers(self) -> bool:
        """Whether every worker saves, or the chief alone."""
        return str(self.include_workers).strip().lower() == "all"

    @property
    def chooses_workers(self) -> bool:
        """Whether `include_workers` was given, even with its default value."""
        return not isinstance(self.include_workers, Default)

    @property
    def chooses_tensors(self) -> bool:
        """Whether any option says which tensors to save, when, or as what."""
        return bool(vars(self)["_chooses_tensors"])

    def as_arguments(self) -> dict[str, Any]:
        """Return the options by name, to make other options or another hook of them."""
        given = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        if not self.chooses_tensors:  # a default that was filled in is not a choice
            del given["save_config"], given["include_collections"]
        return given

    def _patterns(self) -> list[str] | None:
        if isinstance(self.include_regex, str):
            return [self.include_regex]
        return patterns(self.include_regex, "include_regex") or None


def checked_interval(steps: Any) -> int | None:
    """Return a number of steps, at least 1, or None."""
    if steps is None or (type(steps) is int and steps >= 1):
        return steps
    raise SMDebugValueError(
        f"compute_twice takes a number of steps, such as 1000 for one step in 1,000, not {steps!r}"
    )


def takes(
    options: Callable[P, O], *, positional: int | None = None
) -> Callable[[Callable[[S, O], None]], Callable[Concatenate[S, P], None]]:
    """Give a constructor of one argument, its options, their fields as its signature.

    With `positional`, only that many of them may be given by position.
    """

    def decorate(construct: Callable[[S, O], None]) -> Callable[Concatenate[S, P], None]:
        signature = signature_with(options, construct, positional)

        @functools.wraps(construct)
        def __init__(self: S, *args: P.args, **kwargs: P.kwargs) -> None:  # noqa: N807
            for name in kwargs:
                if name not in signature.parameters:
                    hint = did_you_mean(name, list(signature.parameters)[1:])
                    raise TypeError(f"{type(self).__name__} has no option {name!r}.{hint}")
            if positional is not None and len(args) > positional:
                signature.bind(self, *args, **kwargs)  # raises the TypeError of a plain function
            construct(self, options(*args, **kwargs))

        __init__.__signature__ = signature  # type: ignore[attr-defined]
        return cast(Callable[Concatenate[S, P], None], __init__)

    return decorate


def with_options_of(options: Callable[..., HookOptions]) -> Callable[[C], C]:
    """Show the fields of the options in the signature of a constructor that takes them as `**options`."""

    def decorate(construct: C) -> C:
        construct.__signature__ = signature_with(options, construct)  # type: ignore[attr-defined]
        return construct

    return decorate


def signature_with(
    options: Callable[..., HookOptions],
    construct: Callable[..., None],
    positional: int | None = None,
) -> inspect.Signature:
    """Return the signature of a constructor whose `options` are replaced by their fields."""
    fields = [_shown(field) for field in inspect.signature(options).parameters.values()]
    if positional is not None:
        fields[positional:] = [
            field.replace(kind=inspect.Parameter.KEYWORD_ONLY) for field in fields[positional:]
        ]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    own = [
        parameter
        for parameter in inspect.signature(construct).parameters.values()
        if parameter.name != "options" and parameter.kind not in variable
    ]
    return inspect.Signature([*own, *fields], return_annotation=None)


def _shown(field: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter with a plain text as its default."""
    return field.replace(default=str(field.default)) if isinstance(field.default, Default) else field
