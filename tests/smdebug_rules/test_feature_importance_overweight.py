from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug_rules.feature_importance_overweight import FeatureImportanceOverweight
from tests.rules.made_runs import made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at


def importance(*values, kind="weight"):
    return {
        f"feature_importance/{kind}/f{at}": np.float32(value) for at, value in enumerate(values)
    }


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
    assert [(found_data_at(rule, step), rule.skipped) for step in (0, 1)] == [
        (False, {"feature_importance/weight": "it has 3 features, and more than 3 are needed"}),
        (False, {"feature_importance/weight": "all importances are 0"}),
    ]
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
