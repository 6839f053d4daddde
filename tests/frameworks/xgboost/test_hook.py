"""The hook for XGBoost, on real trainings."""

import json
from pathlib import Path

import numpy as np
import pytest
import xgboost

import smdebug.xgboost as smd
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.xgboost.data import get_dmatrix, parse_tree_model
from tests.support.looking import each

OLD_RUN = Path(__file__).parents[2] / "golden" / "runs" / "xgboost_hook.expected.json"
PARAMETERS = {
    "max_depth": 2,
    "objective": "binary:logistic",
    "nthread": 1,
    "seed": 0,
    "eval_metric": ["logloss", "auc"],
}
ALL = [
    "metrics",
    "losses",
    "hyperparameters",
    "predictions",
    "labels",
    "feature_importance",
    "average_shap",
    "full_shap",
    "trees",
]
EVERY_ROUND = smd.SaveConfig(save_interval=1)


def data(rows=40, features=4, seed=0, classes=2):
    values = np.random.default_rng(seed).random((rows, features)).astype(np.float32)
    return xgboost.DMatrix(values, label=(values[:, 0] * classes).astype(int).clip(0, classes - 1))


def train(hook=None, *, rounds=5, parameters=PARAMETERS, **more):
    train_data, validation = data(), data(8, seed=1)
    evals = [(train_data, "train"), (validation, "validation")]
    callbacks = [] if hook is None else [hook]
    return xgboost.train(
        parameters, train_data, rounds, evals=evals, verbose_eval=False, callbacks=callbacks, **more
    )


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def hook_in(run, **settings):
    given = {
        "hyperparameters": PARAMETERS,
        "train_data": data(30),
        "validation_data": data(8, seed=1),
        "save_config": EVERY_ROUND,
        "include_collections": ALL,
    }
    return smd.Hook(str(run), **{**given, **settings})


def test_names_shapes_and_collections_are_those_of_the_old_library(run):
    old = json.loads(OLD_RUN.read_text())
    with hook_in(run, save_config=smd.SaveConfig(save_interval=2)) as hook:
        train(hook)
    trial = smd.create_trial(str(run))
    assert trial.steps() == old["steps"]["GLOBAL"]
    found = {n for n in trial.tensor_names() if "feature_importance" not in n}
    assert found == {n for n in old["tensor_names"] if "feature_importance" not in n} | {"trees/Category"}
    for name, of_modes in old["tensors"].items():
        before = of_modes["modes"]["GLOBAL"]["values"]["2"]["default"]
        value = trial.tensor(name).value(2)
        assert value.dtype.kind == np.dtype(before["dtype"]).kind, name
        if not name.startswith("trees"):
            assert list(value.shape) == before["shape"], name
    for name in ("metrics", "losses", "labels", "full_shap", "hyperparameters"):
        assert trial.tensor_names(collection=name) == old["tensor_names_by_collection"][name], name


def test_values_are_those_of_the_model(run):
    seen = {}

    class Look(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            seen[epoch] = (
                model.predict(data(8, seed=1)),
                model.predict(data(30), pred_contribs=True),
                model.get_score(importance_type="gain"),
                evals_log["validation"]["auc"][-1],
            )
            return False

    train_data, validation = data(), data(8, seed=1)
    with hook_in(run) as hook:
        xgboost.train(
            PARAMETERS,
            train_data,
            4,
            evals=[(validation, "validation")],
            callbacks=[Look(), hook],
            verbose_eval=False,
        )
    trial = smd.create_trial(str(run))
    for epoch, (predictions, shap, gains, auc) in each(seen.items(), at_least=4):
        np.testing.assert_array_equal(trial.tensor("predictions").value(epoch), predictions)
        np.testing.assert_array_equal(trial.tensor("full_shap/f1").value(epoch), shap)
        np.testing.assert_allclose(
            trial.tensor("average_shap/f2").value(epoch), [shap[:, 2].mean()], rtol=1e-6
        )
        assert trial.tensor("validation-auc").value(epoch) == auc
        for feature, gain in gains.items():
            share = trial.tensor(f"feature_importance/gain/{feature}").value(epoch)
            assert share == pytest.approx(gain / sum(gains.values()))


def test_a_training_has_the_same_results_with_and_without_the_hook(run):
    parameters = {**PARAMETERS, "subsample": 0.5, "booster": "dart", "rate_drop": 0.3}
    with hook_in(run) as hook:
        watched = train(hook, parameters=parameters)
    assert watched.save_raw("json") == train(parameters=parameters).save_raw("json")


def test_metrics_are_saved_every_tenth_round_unless_told_otherwise(run):
    with smd.Hook(str(run), include_collections=["metrics"]) as hook:
        train(hook, rounds=25)
    trial = smd.create_trial(str(run))
    assert trial.steps() == [0, 10, 20]
    assert trial.tensor_names() == [
        "train-auc",
        "train-logloss",
        "validation-auc",
        "validation-logloss",
    ]


def test_nothing_is_computed_for_rounds_that_are_not_saved(run, monkeypatch):
    asked = []
    score = xgboost.Booster.get_score

    def get_score(model, *arguments, **more):
        asked.append(model.num_boosted_rounds() - 1)
        return score(model, *arguments, **more)

    monkeypatch.setattr(xgboost.Booster, "get_score", get_score)
    with hook_in(run, save_config=smd.SaveConfig(save_interval=3)) as hook:
        train(hook, rounds=6)
    assert sorted(set(asked)) == [0, 3]


def test_the_trees_of_a_round_are_those_of_the_dump():
    model = train(rounds=3)
    columns = parse_tree_model(model, 2)
    dump = model.get_dump(with_stats=True)[2]
    assert len(columns["Node"]) == dump.count(":[") + dump.count(":leaf")
    assert list(columns["Node"]) == sorted(columns["Node"])
    for row in range(len(columns["Node"])):
        node, feature = columns["Node"][row], columns["Feature"][row]
        if feature == "Leaf":
            assert f"{node}:leaf=" in dump
            assert columns["Yes"][row] == "nan"
        else:
            assert f"{node}:[{feature}<" in dump
            yes, no = columns["Yes"][row], columns["No"][row]
            assert {yes.split("-")[0], no.split("-")[0]} == {"2"}


def test_several_classes_have_several_trees_and_shap_values_each(run):
    rows = data(60, classes=3)
    parameters = {"objective": "multi:softprob", "num_class": 3, "max_depth": 2}
    with smd.Hook(str(run), include_collections=["trees", "average_shap"], train_data=rows) as hook:
        xgboost.train(parameters, rows, 1, callbacks=[hook])
    trial = smd.create_trial(str(run))
    assert set(trial.tensor("trees/Tree").value(0)) == {0, 1, 2}
    assert trial.tensor("average_shap/f0").value(0).shape == (3,)


@pytest.mark.parametrize(
    ("parameters", "lacks"),
    [
        ({"booster": "gblinear"}, ["trees"]),
        ({"multi_strategy": "multi_output_tree", "tree_method": "hist"}, ["SHAP values", "trees"]),
    ],
    ids=["linear", "several targets"],
)
def test_what_a_booster_cannot_give_is_reported_once_and_the_rest_saved(run, parameters, lacks, caplog):
    values = np.random.default_rng(0).random((30, 4))
    rows = xgboost.DMatrix(values, label=values[:, :2])
    with hook_in(run, train_data=rows, validation_data=rows) as hook:
        hook.logger.addHandler(caplog.handler)
        evals = [(rows, "train")]
        xgboost.train(parameters, rows, 3, evals, callbacks=[hook], verbose_eval=False)
        hook.logger.removeHandler(caplog.handler)
    trial = smd.create_trial(str(run))
    for name in ("train-rmse", "predictions", "labels"):
        assert trial.tensor(name).steps() == [0, 1, 2]
    messages = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert [message.partition(": XGBoost reports")[0] for message in messages] == [
        f"{tensors} cannot be saved" for tensors in lacks
    ]


def test_data_may_have_any_name_that_xgboost_takes(run):
    with hook_in(run, include_collections=None) as hook:
        evals = [(data(), "hold.out+2026")]
        xgboost.train(PARAMETERS, data(), 2, evals, callbacks=[hook], verbose_eval=False)
    trial = smd.create_trial(str(run))
    assert trial.tensor("hold.out+2026-auc").steps() == [0, 1]


def test_what_was_not_given_is_reported_once(run, caplog):
    with hook_in(run, include_collections=["labels"], validation_data=None) as hook:
        hook.logger.addHandler(caplog.handler)
        train(hook)
        hook.logger.removeHandler(caplog.handler)
    (warning,) = (r.getMessage() for r in caplog.records if r.levelname == "WARNING")
    assert warning == "labels cannot be saved: the hook needs validation_data"


def test_cross_validation_takes_the_hook_too(run):
    values = np.random.default_rng(0).random((30, 2))
    labels = (values[:, 0] > 0.5).astype(int)
    rows = xgboost.DMatrix(values, label=labels)
    with smd.Hook(str(run), save_config=EVERY_ROUND) as hook:
        xgboost.cv(PARAMETERS, rows, 2, nfold=2, callbacks=[hook])
    trial = smd.create_trial(str(run))
    assert {"test-auc", "test-auc-std", "train-logloss"} <= set(trial.tensor_names(step=1))
    assert trial.tensor_names(collection="losses") == ["test-logloss", "train-logloss"]


def test_the_last_round_is_saved_also_if_another_callback_ends_the_training(run):
    class Enough(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            return epoch == 2

    rows = data()
    with smd.Hook(str(run), save_config=EVERY_ROUND) as hook:
        xgboost.train(
            PARAMETERS,
            rows,
            9,
            evals=[(rows, "train")],
            callbacks=[Enough(), hook],
            verbose_eval=False,
        )
    assert smd.create_trial(str(run)).tensor("train-auc").steps() == [0, 1, 2]


def test_asked_to_stop_the_training_returns_the_model(run):
    class Ask(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            if epoch == 3:
                (run / "control").mkdir()
                (run / "control" / "stop").write_text('{"reason": "enough"}')
            return False

    hook = smd.Hook(str(run), save_config=EVERY_ROUND, look_for_stop=0)
    rows = data()
    model = xgboost.train(PARAMETERS, rows, 50, callbacks=[hook, Ask()], verbose_eval=False)
    hook.close()
    assert 4 <= model.num_boosted_rounds() <= 6
    assert "enough" in str(hook.stopped)


def test_running_a_cell_again_begins_the_run_again(run):
    for rounds in (3, 2):
        hook = smd.Hook(str(run), save_config=EVERY_ROUND)
        train(hook, rounds=rounds)
    hook.close()
    trial = smd.create_trial(str(run))
    assert {0, 1} <= set(trial.steps())
    assert hook.training_run == 1


def test_data_may_be_given_as_files(run, tmp_path):
    csv, svm = tmp_path / "rows.csv", tmp_path / "rows.svm"
    csv.write_text("1,2,0.5,3\n0,1,0.25,4\n")
    svm.write_text("1:2 0:0.5 2:3\n0 1:4  # nothing else\n")
    rows = get_dmatrix(str(csv), "text/csv", csv_weights=1)
    assert [rows.num_row(), rows.num_col()] == [2, 2]
    np.testing.assert_array_equal(rows.get_weight(), [2, 1])
    rows = get_dmatrix(str(svm), "libsvm")
    assert [rows.num_row(), rows.num_col()] == [2, 3]
    np.testing.assert_array_equal(rows.get_label(), [1, 0])
    assert smd.Hook(str(run), train_data=(csv, "csv")).train_data.num_col() == 3
    for path, kind in [(csv, "parquet"), (csv, "libsvm"), (tmp_path / "none", "csv")]:
        with pytest.raises(SMDebugValueError):
            get_dmatrix(str(path), kind)
    with pytest.raises(SMDebugTypeError, match="DMatrix"):
        smd.Hook(str(run), train_data=3)


def test_the_hook_of_the_process_is_made_from_json_with_its_own_interval(run, tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"LocalPath": str(run)}))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(path))
    hook = smd.get_hook()
    assert isinstance(hook, smd.Hook)
    assert hook.save_config.get_save_config(smd.modes.GLOBAL).save_interval == 10
