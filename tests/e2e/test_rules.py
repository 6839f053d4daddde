"""Custom rules on the deployed template, and the effects of their failures."""

from __future__ import annotations

from tests.functions.saver import FAILING, HEALTHY, Saver

COUNTING = """
from smdebug.rules import Rule


class Counting(Rule):
    def __init__(self, base_trial, limit="3"):
        super().__init__(base_trial)
        self.limit = int(limit)
        self.seen = []

    def invoke_at_step(self, step):
        value = float(self.base_trial.tensor("gradient/fc").value(step)[1])
        self.seen.append((step, value))
        return len(self.seen) == self.limit
"""
RAISING = """
from smdebug.rules import Rule


class Raising(Rule):
    def invoke_at_step(self, step):
        if step == 1:
            raise ValueError("no idea what to do with step 1")
        return False
"""


def custom(local_debugger, name, source, **more):
    """A rule with its source below the bucket's prefix for sources."""
    key = f"rule-sources/{local_debugger.key(name)}.py"
    local_debugger.aws.client("s3").put_object(Bucket=local_debugger.bucket, Key=key, Body=source.encode())
    return {"name": name, "rule": name, "source": f"s3://{local_debugger.bucket}/{key}", **more}


def test_a_custom_rule_keeps_its_state_between_steps(local_debugger):
    rule = custom(local_debugger, "Counting", COUNTING, parameters={"limit": "4"})
    local_debugger.attach("counted", [rule])
    saver = Saver(local_debugger.storage("counted")).begin()
    for step in range(6):
        saver.save(step)
    local_debugger.wait("counted", through=5)
    assert [(finding.step, finding.rule) for finding in local_debugger.findings("counted")] == [
        (3, "Counting")
    ]


def test_a_rule_that_raises_is_in_error_and_the_others_continue(local_debugger):
    rules = [custom(local_debugger, "Raising", RAISING), "ExplodingTensor"]
    local_debugger.attach("raised", rules)
    saver = Saver(local_debugger.storage("raised")).begin()
    for step in range(4):
        saver.save(step, FAILING if step == 3 else HEALTHY)
    run = local_debugger.wait("raised", through=3)
    raising = run.status("Raising")
    assert str(raising.status) == "Error"
    assert "no idea what to do with step 1" in raising.reason
    assert [(finding.step, finding.rule) for finding in run.findings()] == [(3, "ExplodingTensor")]


def test_a_built_in_rule_with_bad_parameters_is_in_error_and_the_others_continue(local_debugger):
    bad = {"name": "bad", "rule": "ExplodingTensor", "parameters": {"no_such": "1"}}
    local_debugger.attach("misspelled", [bad, "ExplodingTensor"])
    saver = Saver(local_debugger.storage("misspelled")).begin()
    saver.save(0, FAILING)
    run = local_debugger.wait("misspelled", through=0)
    assert str(run.status("bad").status) == "Error"
    assert "no_such" in run.status("bad").reason
    assert [finding.rule for finding in run.findings()] == ["ExplodingTensor"]


def test_the_log_of_a_rule_can_be_read(local_debugger):
    rule = custom(
        local_debugger,
        "Counting",
        COUNTING.replace("self.seen.append", "print('I see', step, value)\n        self.seen.append"),
    )
    local_debugger.attach("chatty", [rule])
    saver = Saver(local_debugger.storage("chatty")).begin()
    saver.save(0)
    run = local_debugger.wait("chatty", through=0)

    def is_logged():
        return ("I see 0 1.0", 0) in [(line.message, line.step) for line in run.logs("Counting")]

    local_debugger.aws.wait_until(is_logged, what="the log")


def test_a_silent_run_is_reported_and_resumes_with_new_data(local_debugger):
    aws = local_debugger.aws
    local_debugger.attach("silent", ["ExplodingTensor"])
    saver = Saver(local_debugger.storage("silent")).begin()
    saver.save(0)
    run = local_debugger.wait("silent", through=0)
    aws.forward(1801)
    aws.wait_until(lambda: str(run.look().state) == "Silent", what="the silence")
    saver.save(1, FAILING)
    local_debugger.wait("silent", through=1)
    assert str(run.look().state) == "Running"


def test_a_stalled_training_is_reported_and_requested_to_stop(local_debugger):
    aws = local_debugger.aws
    parameters = {"threshold": "240", "stop_training_on_fire": "True"}
    parameters["training_job_name_prefix"] = "stalled"
    rule = {"name": "stalled", "rule": "StalledTrainingRule", "parameters": parameters}
    local_debugger.attach("stalled", [rule])
    place = local_debugger.storage("stalled")
    Saver(place).begin().save(0)
    run = local_debugger.wait("stalled", through=0)
    aws.forward(301)
    (found,) = aws.wait_until(lambda: list(run.findings()), what="the finding")
    assert (found.rule, found.step) == ("StalledTrainingRule", 0)
    aws.wait_until(lambda: place.exists("control/stop"), what="the control object")
    assert b"(StalledTrainingRule) detected an issue at step 0" in place.read("control/stop")


def test_the_sweeper_runs_every_five_minutes(local_debugger):
    aws = local_debugger.aws
    before = len(aws.invocations("sweep"))
    aws.forward(301)
    aws.wait_until(lambda: len(aws.invocations("sweep")) > before, what="the sweep")
    assert aws.invocations("sweep")[-1].error is None


def test_the_sweeper_finds_a_file_whose_notification_was_lost(local_debugger):
    aws = local_debugger.aws
    local_debugger.attach("swept", ["ExplodingTensor"])
    saver = Saver(local_debugger.storage("swept")).begin()
    saver.save(0)
    run = local_debugger.wait("swept", through=0)
    with aws.losing_notifications():
        saver.save(1, FAILING)
    aws.forward(361)
    aws.wait_until(lambda: [finding.step for finding in run.findings()] == [1], what="the lost step")
