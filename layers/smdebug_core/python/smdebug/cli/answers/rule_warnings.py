"""Warn about likely mistakes in the rules given to a deployed debugger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from smdebug.exceptions import SMDebugValueError

if TYPE_CHECKING:
    from smdebug.service.records import RuleConfiguration


def warnings_about(rules: Iterable[RuleConfiguration]) -> Iterator[str]:
    """Yield a sentence for each rule that is not built in, and for each unknown parameter.

    These are warnings, not errors: the stack may have rules of its own.
    """
    from smdebug.rules.construction import accepted_parameters, suggestion
    from smdebug.rules.generic import find_rule

    for rule in rules:
        if rule.source is not None:
            continue
        try:
            accepted = accepted_parameters(find_rule(rule.rule).load())
        except SMDebugValueError as error:
            yield f"{error} Unless the stack has a rule of that name, its status will be Error."
            continue
        for name in rule.parameters:
            if name not in accepted.names and not accepted.anything:
                hint = suggestion(name, accepted.settable).removesuffix("?")
                end = "?" if "Did you mean" in hint else "."
                yield (
                    f"{rule.name}: {rule.rule} takes no parameter {name!r}{hint}{end} "
                    "Its status will be Error."
                )
