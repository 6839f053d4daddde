"""What is likely to be misspelt in rules that a deployed debugger is to ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from smdebug.exceptions import SMDebugValueError

if TYPE_CHECKING:
    from smdebug.service.records import RuleConfiguration


def doubts_about(rules: Iterable[RuleConfiguration]) -> Iterator[str]:
    """A sentence for each rule that is not built in, or takes no such parameter.

    Doubts and no more, as a stack may have rules of its own.
    """
    from smdebug.rules.generic import find_rule
    from smdebug.rules.making import GIVEN, accepted_by, nearest_told

    for one in rules:
        if one.source is not None:
            continue
        try:
            accepted = accepted_by(find_rule(one.rule).load())
        except SMDebugValueError as error:
            yield f"{error} Unless the stack has one of that name, it will end as Error."
            continue
        choices = [name for name in accepted.names if name not in GIVEN]
        for name in one.parameters:
            if name not in accepted.names and not accepted.anything:
                nearest = nearest_told(name, choices).removesuffix("?")
                told = f"{one.name}: {one.rule} takes no parameter {name!r}{nearest}"
                yield f"{told}{'?' if 'Did you mean' in nearest else '.'} It will end as Error."
