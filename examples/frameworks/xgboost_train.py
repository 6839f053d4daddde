"""XGBoost, with what each feature contributes, round by round.

python examples/frameworks/xgboost_train.py --out-dir /tmp/xgboost-run
"""

import argparse

import numpy as np
import xgboost

import smdebug.xgboost as smd

parser = argparse.ArgumentParser()
parser.add_argument("--out-dir", required=True)
out_dir = parser.parse_args().out_dir

values = np.random.default_rng(0).random((200, 4))
rows = xgboost.DMatrix(values, label=values[:, 0] + 0.3 * values[:, 2])
parameters = {"max_depth": 3, "eta": 0.3}

hook = smd.Hook(
    out_dir,
    save_config=smd.SaveConfig(save_interval=5),
    include_collections=["feature_importance", "average_shap", "trees"],
    hyperparameters=parameters,
    train_data=rows,
)
xgboost.train(parameters, rows, 20, evals=[(rows, "train")], callbacks=[hook], verbose_eval=False)
hook.close()

trial = smd.create_trial(out_dir)
last = trial.steps()[-1]
for name in trial.tensor_names(regex="^feature_importance/gain", step=last):
    print(name, f"{trial.tensor(name).value(last)[0]:.0%}")
