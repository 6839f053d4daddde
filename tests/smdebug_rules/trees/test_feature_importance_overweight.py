from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug_rules.trees.feature_importance_overweight import FeatureImportanceOverweight
from tests.rules.made_runs import made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at


def importance(*values, kind="weight"):
    return {f"feature_importance/{kind}/f{at}": np.float32(value) for at, value in enumerate(values)}


def test_three_features_with_most_of_the_importance_are_found():
    run = made_run({0: importance(0.5, 0.05, 0.3, 0.05, 0.1)}).trial()
    (found,) = findings_by_step(FeatureImportanceOverweight(run))[0]
    assert str(found) == (
        "feature_importance/weight: 3 of 5 features have 0.9 of the importance (limit 0.8): f0, f2, f4"
    )


def test_importances_are_made_to_sum_up_to_one():
    run = made_run({0: importance(5, 1, 1, 1, 1, 1)}).trial()
    assert fires_at(FeatureImportanceOverweight(run)) == []
    assert fires_at(FeatureImportanceOverweight(run, threshold="0.6")) == [0]


def test_with_as_few_features_as_are_added_up_it_never_fires():
    run = made_run({0: importance(0.5, 0.4, 0.1), 1: importance(0, 0, 0, 0)}).trial()
    rule = FeatureImportanceOverweight(run)
    assert found_data_at(rule, 0) is False
    assert "3 features have an importance, and more than 3 features are needed" in rule.not_checked
    assert found_data_at(rule, 1) is False
    assert (rule.not_checked, rule.skipped) == (
        None,
        {"feature_importance/weight": "all importances are 0"},
    )
    assert fires_at(FeatureImportanceOverweight(run, nfeatures=2)) == [0]


def test_each_kind_of_importance_is_judged_by_itself():
    tensors = importance(1, 1, 1, 1, 1) | importance(9, 0, 0, 0, 0.5, kind="gain")
    run = made_run({0: tensors}).trial()
    assert fires_at(FeatureImportanceOverweight(run)) == []
    found = findings_by_step(FeatureImportanceOverweight(run, tensor_regex="feature_importance/"))
    assert [finding.tensor for finding in found[0]] == ["feature_importance/gain"]


def test_a_feature_may_have_a_slash_in_its_name():
    names = ["km/h", "a", "b", "c"]
    run = made_run({0: {f"feature_importance/weight/{name}": [0.25] for name in names}}).trial()
    assert fires_at(FeatureImportanceOverweight(run)) == []
    ((found,),) = findings_by_step(FeatureImportanceOverweight(run, threshold=0.7)).values()
    assert "3 of 4 features" in str(found)


@pytest.mark.parametrize("parameters", [{"threshold": 2}, {"nfeatures": 0}])
def test_an_invalid_value_is_refused(parameters):
    with pytest.raises(SMDebugValueError):
        FeatureImportanceOverweight(made_run({}).trial(), **parameters)


@pytest.mark.parametrize("others", ["feature_importance/gain/f{}", "average_shap/f{}"])
def test_a_model_that_uses_one_of_its_features_fires(others):
    """XGBoost saves no importance of features that no tree uses; they are known from elsewhere."""
    only = {"feature_importance/weight/f0": np.float32(1)}
    known = {others.format(number): np.float32(0) for number in range(6)}
    run = made_run({0: only, 1: only | known, 2: only}).trial()
    found = findings_by_step(FeatureImportanceOverweight(run))
    assert list(found) == [1, 2]
    assert "1 of 6 features have 1 of the importance" in str(found[2][0])
    rule = FeatureImportanceOverweight(run)
    assert found_data_at(rule, 0) is False
    assert rule.not_checked.startswith("1 feature has an importance")
