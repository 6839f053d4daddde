"""Which rules judge a run: asked here by each command, page, notebook, and the process beside a training."""

from __future__ import annotations

from collections.abc import Sequence

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.rules.construction import make_rule
from smdebug.rules.generic import catalog
from smdebug.rules.loading import rules_in_file
from smdebug.rules.rule_sets import ALL, DEFAULT, SET_NAMES, USUAL_RULES, default_rules
from smdebug.service.records import RequestedRule, RuleConfiguration
from smdebug.service.rules_file import RULES_FILE, RulesFile, parse_rules, valid_rules
from smdebug.trials import Trial

# Its page describes trees, so a set includes it only for runs of XGBoost.
_WRITES_A_PAGE = ("CreateXgboostReport",)
_XGBOOST_COLLECTIONS = {"feature_importance", "hyperparameters", "trees"}

Rules = tuple[RuleConfiguration, ...]


def rules_for(
    trial: Trial,
    named: Sequence[RequestedRule] | None = None,
    *,
    file: str | None = None,
    rules_file: RulesFile | None = None,
    default: bool = True,
) -> Rules:
    """Return the rules that judge the run; `SMDebugValueError` if there are none.

    Rules that a person names are all there is. Otherwise they are those of the run's rules.json, or of
    `rules_file` in its place; those of the Python `file`; and beside them the default rules that suit the
    run, unless `default` or the rules.json switches them off.
    """
    if named is not None:
        chosen = _named(trial, named)
    else:
        own = _own(trial) if rules_file is None else rules_file
        in_file = [] if file is None else rules_in_file(file)
        known = {rule.rule.lower() for rule in own.rules}
        added = (RuleConfiguration(name, name) for name in in_file if name.lower() not in known)
        own = own._replace(rules=(*own.rules, *added), default_rules=own.default_rules and default)
        chosen = own.with_default(lambda: suitable_defaults(trial))
    if not chosen:
        raise SMDebugValueError("No rules to evaluate: name at least one")
    return chosen


def suitable_defaults(trial: Trial) -> Rules:
    """Return the rules that judge a run by default: the default set, whatever the run has saved."""
    return tuple(RuleConfiguration(name=name, rule=name) for name in rules_of_set(trial, DEFAULT))


def rules_of_set(trial: Trial, name: str) -> list[str]:
    """Return the names of the rules in a set, as far as they apply to the run.

    `default` is the default set (where it is not installed, `usual`), `usual` what evaluated a run before
    there was one, and `all` every rule of the original's names that needs no parameter.
    """
    if name == DEFAULT and default_rules():
        return list(default_rules())
    known = catalog()
    found = []
    for rule in known if name == ALL else USUAL_RULES:
        entry = known[rule]
        try:
            make_rule(entry.load(), trial, {})
        except SMDebugError:
            continue
        if rule not in _WRITES_A_PAGE or _XGBOOST_COLLECTIONS & set(trial.collections()):
            found.append(rule)
    return found


def _own(trial: Trial) -> RulesFile:
    if not trial.storage.exists(RULES_FILE):
        return RulesFile()
    return valid_rules(trial.storage.read(RULES_FILE), file=RULES_FILE)


def _named(trial: Trial, named: Sequence[RequestedRule]) -> Rules:
    found: list[RuleConfiguration] = []
    for rule in named:
        if isinstance(rule, RuleConfiguration):
            found.append(rule)
        elif isinstance(rule, str) and rule.lower() in SET_NAMES:
            members = rules_of_set(trial, rule.lower())
            found += (RuleConfiguration(name=name, rule=name) for name in members)
        else:
            found += parse_rules([rule], file="the rules given")
    return tuple(found)
