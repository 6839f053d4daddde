# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A custom rule, from its file to the alert
#
# This is the notebook "Writing Custom Rules", on PyTorch and on this machine. The debugger's template is
# deployed to a local simulation of AWS. A rule is written, tried and uploaded. A training names the rule in
# `rules_specification`, as the estimator did, and diverges. SageMaker's calls show the status of the rule,
# and the alert arrives in the inbox. On AWS, leave `LocalAws` out and use the bucket of the stack.
#
# Run it from a checkout, in the environment of `make frameworks`.

# %%
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

HERE = Path(globals().get("__file__", "story.ipynb")).resolve().parent
sys.path += [str(HERE), str(HERE.parents[1])]
os.environ.setdefault("SMDEBUG_LOG_LEVEL", "error")

import torch
from my_custom_rule import CustomGradientRule

import smdebug.pytorch as smd
from local_aws import LocalAws, LocalDebugger
from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet
from smdebug.rules.rule_invoker import invoke_rule
from smdebug.service import connect
from smdebug.trials import create_trial

# %% [markdown]
# ## The rule
#
# The rule inherits from `Rule`. It takes the trial and its own parameters, which are strings, and it is
# invoked at every saved step. `True` means that the condition is met. `set_required_tensors` names the
# tensors to fetch together beforehand.

# %%
rule_file = HERE / "my_custom_rule.py"
print(rule_file.read_text())

# %% [markdown]
# ## The training
#
# Least squares by gradient descent. With a rate above 2 divided by the largest curvature, every step is too
# large and the training diverges. The hook saves the loss and the gradients at every tenth step.


# %%
def train(path, rate, rules=None):
    torch.manual_seed(0)
    x = torch.randn(256, 8, dtype=torch.float64)
    x /= torch.linalg.eigvalsh(x.T @ x / len(x))[-1].sqrt()  # the largest curvature is 1
    y = x @ torch.randn(8, 1, dtype=torch.float64)
    model = torch.nn.Linear(8, 1, bias=False, dtype=torch.float64)
    loss_of = torch.nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate / 2)  # the curvature of MSELoss is twice that
    config = smd.SaveConfig(save_interval=10)
    with smd.Hook(path, include_collections=["gradients"], save_config=config, rules=rules) as hook:
        hook.register_module(model)
        hook.register_loss(loss_of)
        for _ in range(120):
            optimizer.zero_grad()
            loss_of(model(x), y).backward()
            optimizer.step()


# %% [markdown]
# ## Trying the rule
#
# Try the rule on two local runs before you upload it: it must detect the diverging run and pass the healthy
# run.

# %%
with tempfile.TemporaryDirectory() as folder:
    for name, rate in (("healthy", 0.5), ("diverging", 2.1)):
        train(f"{folder}/{name}", rate)
        rule = CustomGradientRule(create_trial(f"{folder}/{name}"), threshold="20.0")
        try:
            invoke_rule(rule, raise_eval_cond=True)
        except RuleEvaluationConditionMet as found:
            print(f"{name}: {found}")
        except NoMoreData:
            print(f"{name}: passed, no more data")

# %% [markdown]
# ## Deploying
#
# This is the template that `cdk deploy` sends to AWS, with its queues, functions and state machine.

# %%
closing = ExitStack()
aws = closing.enter_context(LocalAws())
closing.enter_context(aws.as_default())
debugger = LocalDebugger(aws)
inbox = aws.inbox("story")

# %% [markdown]
# The rule is a file in the bucket:

# %%
key = "rule-sources/my_custom_rule.py"
aws.client("s3").put_object(Bucket=aws.bucket, Key=key, Body=rule_file.read_bytes())
source_s3_uri = f"s3://{aws.bucket}/{key}"

# %% [markdown]
# ## From the training to the alert
#
# The training names the rule and diverges.

# %%
rules_specification = [
    {
        "RuleName": "CustomGradientRule",
        "SourceS3Uri": source_s3_uri,
        "RuntimeConfigurations": {"threshold": "20.0"},
    }
]
rules = {"rules_specification": rules_specification, "default_rules": False}  # this rule alone
train(debugger.path("diverging"), 2.1, rules)
debugger.wait("diverging", through=110)

# %% [markdown]
# The status of the rule, as the notebook requested it:

# %%
run = connect().run(debugger.path("diverging"))
for job in run.describe_rule_execution_jobs():
    print(f"{job['RuleName']}: {job['RuleStatus']}, {job['FailureReason']}")
for finding in run.findings():
    print(f"step {finding.step}: {finding.reason}")

# %% [markdown]
# The alert has arrived. The end of the run is announced by a message of its own.


# %%
def alerts() -> list[str]:
    return [message["subject"] for message in inbox.messages() if "detected" in message["subject"]]


(subject,) = aws.wait_until(alerts, what="the alert")
print(f"In the inbox: {subject.rpartition(' of ')[0]}")

# %% [markdown]
# When the run has finished, its report is stored beside it.

# %%
debugger.finish("diverging")
place = debugger.storage("diverging")
aws.wait_until(lambda: place.exists("report/report.html"), what="the report")
print("The report: report/report.html below the run")

# %%
closing.close()
