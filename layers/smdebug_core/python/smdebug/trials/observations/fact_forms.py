"""The forms of the facts that rules read.

Facts are JSON. They may come from another version of the library, from a log of another tool or from a
damaged file, so that a text can stand where a number belongs. What has another form is left out and named, as
a damaged part is: rules that need it say so, and the others go on. Null means that something is not known,
and so does the text of a number that is not finite. What is not named here passes as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

Form = Callable[[Any, str, list[str]], Any]
"""Returns a value, or what of it has the form, `OUT` if nothing has; notes what is left out, and where."""
OUT = object()
_NO_PAIRS: Mapping[str, Collection[str]] = {}
_NOT_FINITE = ("nan", "inf", "-inf")
LARGEST = 1e150
"""Numbers beyond this cannot be squared; none that is known comes close."""


def _plain(fits: Callable[[Any], bool], what: str) -> Form:
    def form(value: Any, place: str, wrong: list[str]) -> Any:
        if fits(value):
            return value
        if value not in _NOT_FINITE:
            wrong.append(f"{place} is not {what}")
        return OUT

    return form


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -LARGEST < value < LARGEST


number = _plain(_is_number, "a finite number")
amount = _plain(lambda value: _is_number(value) and value >= 0, "a number from 0 on")
positive = _plain(lambda value: _is_number(value) and value > 0, "a positive number")
share = _plain(lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1")
count = _plain(lambda value: type(value) is int and 0 <= value < 1 << 62, "a count")
some = _plain(lambda value: type(value) is int and 0 < value < 1 << 62, "a count from 1 on")
flag = _plain(lambda value: type(value) is bool, "true or false")
text = _plain(lambda value: type(value) is str, "a text")
column = _plain(lambda value: type(value) is str or (type(value) is int and value >= 0), "a column or a text")


def every(form: Form, *, least: int = 0) -> Form:
    """A list whose items have the form."""

    def fit(value: Any, place: str, wrong: list[str]) -> Any:
        if type(value) is not list or len(value) < least:
            wrong.append(f"{place} is not a list" + (f" of {least} and more" if least else ""))
            return OUT
        if form is text and set(map(type, value)) <= {str}:  # the names of all parameters
            return value
        return _items(value, [form] * len(value), place, wrong)

    return fit


def row(*forms: Form) -> Form:
    """A list that begins with items of these forms, one each."""

    def fit(value: Any, place: str, wrong: list[str]) -> Any:
        if type(value) is not list or len(value) < len(forms):
            wrong.append(f"{place} is not a list of {len(forms)}")
            return OUT
        return _items(value, forms, place, wrong)

    return fit


def _items(value: list[Any], forms: Collection[Form], place: str, wrong: list[str]) -> Any:
    # Places in a list have a meaning: what remains of a list without an item is another list.
    found = [
        form(item, f"{place}[{n}]", wrong) for n, (form, item) in enumerate(zip(forms, value, strict=False))
    ]
    if OUT in found:
        return OUT
    return value if all(map(operator.is_, found, value)) else [*found, *value[len(found) :]]


def table(form: Form) -> Form:
    """An object whose values have the form, whatever their names."""

    def fit(value: Any, place: str, wrong: list[str]) -> Any:
        if type(value) is not dict:
            wrong.append(f"{place} is not an object")
            return OUT
        found = {name: form(item, f"{place}.{name}", wrong) for name, item in value.items()}
        return {name: item for name, item in found.items() if item is not OUT}

    return fit


def record(*needed: str, pairs: Mapping[str, Collection[str]] = _NO_PAIRS, **forms: Form) -> Form:
    """An object whose fields have these forms: the needed ones all, others each if it is known.

    A field of `pairs` is of use only with those that it names.
    """

    def fit(value: Any, place: str, wrong: list[str]) -> Any:
        if type(value) is not dict:
            wrong.append(f"{place} is not an object")
            return OUT
        found = value
        for name, item in value.items():
            form = forms.get(name)
            if form is None:
                continue
            fitting = OUT if item is None else form(item, f"{place}.{name}", wrong)
            if fitting is not item:
                found = {**found, name: fitting}
        if found is not value:
            found = {name: item for name, item in found.items() if item is not OUT}
        for name in needed:
            if name not in found:
                if name not in value:
                    wrong.append(f"{place} has no {name}")
                return OUT
        for name, others in pairs.items():
            if name in found and (missing := [other for other in others if other not in found]):
                if missing[0] not in value:
                    wrong.append(f"{place} has {name} without {missing[0]}")
                found = {known: item for known, item in found.items() if known != name}
        return found

    return fit


def whole(**forms: Form) -> Form:
    """An object that has all of these fields, each of its form."""
    return record(*forms, pairs=_NO_PAIRS, **forms)


SHAPE = every(count)
BALANCE: Mapping[str, Any] = {
    "targets": count,
    "classes_seen": count,
    "largest_class": count,
    "largest_share": share,
}
TERM = record(
    "criterion",
    pairs={
        "targets": ("largest_class", "largest_share"),
        "means": ["variances"],
        "positives": ("weights", "labels"),
    },
    criterion=text,
    **BALANCE,
    ascending=share,
    changes=share,
    classes=count,
    columns=count,
    constant=number,
    counts=every(row(count, some)),
    expects=text,
    given=text,
    highest=number,
    ignored=share,
    ignored_class=count,
    labels=count,
    lowest=number,
    means=every(number),
    normalised=whole(axis=count, length=some),
    of_a_layer=flag,
    positives=every(count),
    reduction=text,
    repeated=number,
    rows=count,
    target_rows=some,
    variances=every(amount),
    weighted=flag,
    weights=every(number),
)
LOSS = record(
    accumulates=whole(name=text, number=some),
    attention=record(
        "count",
        "lengths",
        "rows",
        "tokens",
        count=count,
        future=number,
        lengths=SHAPE,
        over_queries=count,
        padding_alone=flag,
        rows=count,
        tokens=count,
        undivided=whole(divided=share, factor=positive, is_even=flag, kept=share, tokens=some, width=some),
    ),
    broadcast=SHAPE,
    embedding=whole(alignment=number, columns=count, rows=count),
    factor=number,
    idle=text,
    latent=whole(
        active=count,
        dimensions=count,
        divergence=number,
        largest=number,
    ),
    actions=whole(bonus=number, log_scale=number, highest=number, lowest=number),
    policy=whole(bonus=number, choices=count, entropy=number, highest=number, lowest=number),
    positives=whole(equal=count, looked=count),
    revealed_by=row(count, column),
    soft_targets=flag,
    terms=every(TERM),
    tokens=record(
        "equal",
        pairs={"ends": ["ends_learned"]},
        counted=count,
        ends=count,
        ends_learned=count,
        equal=row(share, share, share),
        padding=number,
        padding_class=count,
    ),
    value=number,
)
CLASS: Mapping[str, Any] = {"class": text}  # is no word for an argument
OPTIMIZER = record(
    "class",
    **CLASS,
    groups=every(
        record(
            "parameters",
            parameters=every(text),
            others=count,
            asked_rate=number,
            momentum=share,
            weight_decay=number,
            decoupled=flag,
        )
    ),
    number=count,
    package=text,
    updates_before=count,
)
COMPUTED = record(
    equal=count,
    first=text,
    tensors=count,
    replays=count,
    as_before=count,
    results=count,
)
STORED = record(
    after=number,
    before=number,
    changed=count,
    equal=count,
    first=text,
    form=text,
    place=count,
    size=count,
    tensors=count,
    values=count,
)
AGAINST: Mapping[str, Any] = {"not": text}  # is no word for an argument
FORMS: Mapping[str, Form] = {
    "activations": table(text),
    "arguments": record(booster=text, objective=text, scale_pos_weight=number),
    "attempt": count,
    "autocast": text,
    "backward_passes": count,
    "computed_twice": record(
        **AGAINST,
        gradients=COMPUTED,
        outputs=COMPUTED,
        stored_gradients=STORED,
        stored_state=STORED,
        stored_weights=STORED,
        update=COMPUTED,
    ),
    "copied_model": whole(is_same=flag, model=text, of=text),
    "data": record(
        "shapes",
        labels=record(pairs={"classes_seen": tuple(BALANCE)}, **BALANCE),
        missing=number,
        shapes=every(row(count, count), least=1),
        weighted=flag,
    ),
    "distinct_rows": count,
    "dropout_in_evaluation": number,
    "evaluated": table(text),
    "evaluated_copy": whole(evaluations=some, model=text, of=text),
    "followed": whole(is_same=flag, model=text, of=text, share=number),
    "frozen": every(text),
    "gradient_names": table(text),
    "gradients": flag,
    "gradients_were_reset": flag,
    "gradients_were_used": flag,
    "idle_optimizers": every(
        whole(
            **CLASS,
            parameters=every(text),
            are_reset=flag,
        )
    ),
    "input_names": every(text),
    "loss": LOSS,
    "loss_scale": positive,
    "loss_should_fall": flag,
    "modules": every(row(text, text)),
    "opponents": every(row(count, text, text, number)),
    "optimizer_steps": flag,
    "optimizers": every(OPTIMIZER),
    "other_gradients": flag,
    "other_mode": every(text),
    "own_target": whole(discount=positive, parameter=text),
    "passes_share_graph": flag,
    "predicted": whole(
        constant=flag,
        of=text,
        rows=count,
        score=number,
        skill=number,
    ),
    "reset_between_passes": flag,
    "row_digests": text,
    "sampler": record(
        "rows",
        "weights",
        batch=some,
        kinds=every(row(amount, some)),
        rows=count,
        weights=some,
    ),
    "shapes": every(SHAPE),
    "steps_apart": count,
    "stops_early": flag,
    "strong_dropout": whole(module=text, rate=number),
    "teacher": record(
        "calls",
        "is_copy",
        "model",
        "module",
        "rate",
        calls=count,
        is_copy=flag,
        model=text,
        module=text,
        rate=number,
        shape=SHAPE,
        values=count,
    ),
    "top_feature": whole(explained=number, name=text, share=number),
    "top_features": table(every(row(text, number))),
    "training": flag,
    "unregistered": whole(count=count, places=every(text, least=1)),
    "update_skipped": flag,
    "updates_are_differences": flag,
    "updates_are_sampled": flag,
}


def of_their_forms(facts: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """What of the facts has its form, and for each other fact what was left out of it."""
    found, wrong = {}, {}
    for name, value in facts.items():
        form, left_out = FORMS.get(name), list[str]()
        fitting = value if form is None or value is None else form(value, name, left_out)
        if fitting is not OUT:
            found[name] = fitting
        if left_out:
            wrong[f"fact {name}"] = f"{left_out[0][:200]}, and was left out"
    return found, wrong
