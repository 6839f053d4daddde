from __future__ import annotations

import importlib

import pytest

import smdebug.analysis.utils
import smdebug.exceptions
import smdebug.rules
import smdebug.rules.generic
import smdebug.trials
from smdebug.mode_keys import ModeKeys

SAME = {
    "tornasole.modes": ModeKeys,
    "tornasole_rules.modes": ModeKeys,
    "tornasole.trials.create_trial": smdebug.trials.create_trial,
    "tornasole.rules.Rule": smdebug.rules.Rule,
    "tornasole.rules.rule.Rule": smdebug.rules.Rule,
    "tornasole.rules.req_tensors.RequiredTensors": smdebug.rules.RequiredTensors,
    "tornasole.rules.rule_invoker.invoke_rule": smdebug.rules.invoke_rule,
    "tornasole.rules.rule_invoker.invoke": smdebug.rules.invoke,
    "tornasole.rules.invoke_rule": smdebug.rules.invoke_rule,
    "tornasole.analysis.utils.no_refresh": smdebug.analysis.utils.no_refresh,
    "tornasole.analysis.utils.refresh": smdebug.analysis.utils.refresh,
    "tornasole.exceptions.NoMoreData": smdebug.exceptions.NoMoreData,
    "tornasole.exceptions.TensorUnavailable": smdebug.exceptions.TensorUnavailable,
    "tornasole.rules.generic.AllZero": smdebug.rules.generic.AllZero,
}


@pytest.mark.parametrize("address", SAME)
def test_the_older_name_is_the_same_object(address):
    module, _, name = address.rpartition(".")
    assert getattr(importlib.import_module(module), name) is SAME[address]


def test_a_star_import_has_all_exceptions():
    names: dict = {}
    exec("from tornasole.exceptions import *", names)  # as the documentation has it
    assert names["StepNotYetAvailable"] is smdebug.exceptions.StepNotYetAvailable


def test_an_unknown_rule_is_an_attribute_error():
    generic = importlib.import_module("tornasole.rules.generic")
    with pytest.raises(AttributeError, match="NoSuchRule"):
        generic.NoSuchRule
