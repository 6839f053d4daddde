"""The original's notebook "Writing Custom Rules", on this machine: from the rule's file to the alert.

    python examples/writing_custom_rules/story.py

The debugger's own template is deployed into a local stand-in of AWS. `my_custom_rule.py` is uploaded, a
training names it as the notebook's estimator did, in `rules_specification`, and diverges. Its status is then
asked for in SageMaker's words, and there is a message in the inbox. On AWS it is the same, with `LocalAws`
left out and the stack's bucket in place of the local one.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import smdebug
from infra.local import LocalAws, LocalDebugger
from smdebug.service import connect

RULE = Path(__file__).resolve().with_name("my_custom_rule.py")
STEPS, SAVE_INTERVAL, RATE = 120, 10, 2.1  # more than 2 by the largest curvature: it diverges


def train(path: str, rules: list[dict[str, object]]) -> None:
    """Least squares by gradient descent, with too large steps."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 8))
    x /= np.sqrt(np.linalg.eigvalsh(x.T @ x / len(x))[-1])  # the largest curvature is 1
    y = x @ rng.normal(size=8)
    weight = np.zeros(8)
    hook = smdebug.Hook(
        path,
        include_collections=["gradients", "losses"],
        save_config=smdebug.SaveConfig(save_interval=SAVE_INTERVAL),
        rules=rules,
    )
    with hook:
        for _ in range(STEPS):
            with hook.step(smdebug.modes.TRAIN):
                error = x @ weight - y
                gradient = x.T @ error / len(x)
                hook.record("gradient/dense", gradient)
                hook.record("loss", float(error @ error) / len(x))
                weight -= RATE * gradient


def story(aws: LocalAws) -> None:
    debugger = LocalDebugger(aws)
    inbox = aws.inbox("story")

    # The rule is a file in the bucket.
    key = "rule-sources/my_custom_rule.py"
    aws.client("s3").put_object(Bucket=aws.bucket, Key=key, Body=RULE.read_bytes())

    # The training names it, and goes wrong.
    rules_specification: list[dict[str, object]] = [
        {
            "RuleName": "CustomGradientRule",
            "SourceS3Uri": f"s3://{aws.bucket}/{key}",
            "RuntimeConfigurations": {"threshold": "20.0"},
        }
    ]
    train(debugger.path("diverging"), rules_specification)
    debugger.wait("diverging", through=STEPS - SAVE_INTERVAL)

    # Its status, as the notebook asked for it.
    run = connect().run(debugger.path("diverging"))
    for job in run.describe_rule_execution_jobs():
        print(f"{job['RuleName']}: {job['RuleStatus']}, {job['FailureReason']}")
    for finding in run.findings():
        print(f"step {finding.step}: {finding.reason}")

    # And somebody has been told.
    (message,) = aws.wait_until(inbox.messages, what="the alert")
    print(f"In the inbox: {message['subject'].rpartition(' of ')[0]}")

    # When it is over, a page about it lies beside the run.
    debugger.finish("diverging")
    place = debugger.storage("diverging")
    aws.wait_until(lambda: place.exists("report/report.html"), what="the report")
    print("The report: report/report.html below the run")


def main() -> None:
    with LocalAws() as aws, aws.as_default():
        story(aws)


if __name__ == "__main__":
    main()
