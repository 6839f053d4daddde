"""Refusing rules that compare with runs of another tenant, before anything of those is read."""

from __future__ import annotations

from functions.decisions.tenants import Tenants
from smdebug.exceptions import SMDebugError
from smdebug.service.records import RuleConfiguration


class OtherRunRefused(SMDebugError):
    """The rule names a run that its own may not read; the message says which, and what to do."""


def refuse_strangers(tenants: Tenants, run: str, configuration: RuleConfiguration) -> None:
    """Raise `OtherRunRefused` if the rule compares with a run of another tenant."""
    for other in configuration.other_trials:
        refusal = tenants.refusal_of_other(run, other)
        if refusal:
            raise OtherRunRefused(refusal)
