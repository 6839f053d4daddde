from __future__ import annotations

import json

import boto3
import pytest
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID
from moto.sagemaker import sagemaker_backends
from moto.sagemaker.responses import SageMakerResponse
from moto.sns import sns_backends

from smdebug.exceptions import RuleEvaluationConditionMet, SMDebugValueError
from smdebug.rules import Rule
from smdebug.rules.action import Actions, MessageAction, StopTrainingAction
from smdebug.rules.action.action import parse_actions
from smdebug.rules.action.message_action import is_e_mail_address
from tests.rules.made_runs import made_run

REGION = "us-east-1"


@pytest.fixture(autouse=True)
def aws(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with mock_aws():
        yield


def messages():
    (topic,) = sns_backends[DEFAULT_ACCOUNT_ID][REGION].topics.values()
    return topic.sent_notifications


def start_job(name):
    boto3.client("sagemaker", REGION).create_training_job(
        TrainingJobName=name,
        AlgorithmSpecification={"TrainingImage": "image", "TrainingInputMode": "File"},
        RoleArn="arn:aws:iam::123456789012:role/role",
        OutputDataConfig={"S3OutputPath": "s3://bucket/out"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 60},
    )
    # moto ends a job as soon as it is created.
    sagemaker_backends[DEFAULT_ACCOUNT_ID][REGION].training_jobs[name].training_job_status = "InProgress"


EMAIL = {"name": "email", "endpoint": "Jane.Doe+ml@Research.Example.museum"}
SMS = {"name": "sms", "endpoint": "+491701234567"}
STOP = {"name": "StopTraining", "training_job_prefix": "My-Job"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([STOP, EMAIL, SMS]),
        json.dumps([STOP, EMAIL, SMS]).replace('"', '\\"'),
        json.dumps(json.dumps([STOP, EMAIL, SMS])),
        [STOP, EMAIL, SMS],
        json.dumps([{"NAME": "STOPTRAINING", "Training_Job_Prefix": "My-Job"}, EMAIL, SMS]),
    ],
)
def test_actions_are_read_plain_and_escaped_and_their_values_keep_their_case(text):
    stop, email, sms = Actions(text, "MyRule")._actions
    assert (stop.training_job_prefix, email.endpoint, sms.endpoint) == (
        "My-Job",
        "Jane.Doe+ml@Research.Example.museum",
        "+491701234567",
    )


def test_one_object_is_a_list_of_one():
    assert [str(action) for action in Actions(json.dumps(SMS), "R")._actions] == ["sms to +491701234567"]


@pytest.mark.parametrize("nothing", [None, "", "  ", "[]", "{}", []])
def test_no_actions_are_none(nothing):
    assert len(Actions(nothing, "R")) == 0
    assert Actions(nothing, "R").invoke("fired") == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x", "The actions are not valid JSON"),
        ('[{"name": "email"', "The actions are not valid JSON"),
        ("7", "An action must be an object with a name"),
        ("[7]", "An action must be an object with a name"),
        (
            '{"name": "reboot"}',
            "There is no action 'reboot': choose from stoptraining, sms, email",
        ),
        ('{"endpoint": "+1"}', "There is no action None"),
    ],
)
def test_actions_that_cannot_be_meant_are_refused_when_the_rule_is_made(text, complaint):
    with pytest.raises(SMDebugValueError, match=complaint):
        Actions(text, "R")


WRONG_PARAMETERS = [
    ({"name": "email"}, "The action email needs 'endpoint'"),
    ({"name": "email", "endpoint": ""}, "The action email needs 'endpoint'"),
    ({"name": "email", "endpoint": "nobody"}, "'nobody' is not an email address"),
    ({"name": "sms", "endpoint": 12}, "The action sms needs 'endpoint'"),
    ({"name": "sms", "endpoint": "12"}, "'12' is not a phone number"),
    ({"name": "sms", "endpoint": "+1", "to": "x"}, "The action sms takes no to"),
    ({"name": "stoptraining"}, "needs 'training_job_prefix'"),
    (
        {"name": "stoptraining", "training_job_prefix": "a b"},
        "'a b' is not the prefix of a training job",
    ),
]


@pytest.mark.parametrize(("action", "complaint"), WRONG_PARAMETERS)
def test_a_wrong_parameter_is_refused_when_the_rule_is_made(action, complaint):
    for actions in (action, [SMS, action]):
        with pytest.raises(SMDebugValueError, match=complaint):
            Actions(actions, "R")
        with pytest.raises(SMDebugValueError, match=complaint):
            parse_actions(json.dumps(actions), "R")


@pytest.mark.parametrize(("action", "complaint"), WRONG_PARAMETERS)
def test_an_action_with_a_wrong_parameter_in_the_json_of_an_old_job_is_left_out(action, complaint, capsys):
    actions = Actions(json.dumps([SMS, action]), "R")
    assert [str(each) for each in actions._actions] == ["sms to +491701234567"]
    assert complaint in capsys.readouterr().out
    assert [str(each) for each in Actions(json.dumps(action), "R")._actions] == []


@pytest.mark.parametrize(
    "construct",
    [
        lambda: MessageAction("R", "email", "nobody"),
        lambda: MessageAction("R", "sms", ""),
        lambda: MessageAction("R", "letter", "+1"),
        lambda: StopTrainingAction("R", "a_b"),
        lambda: StopTrainingAction("R", None),
    ],
)
def test_an_old_constructor_logs_a_wrong_parameter_and_its_action_does_nothing(construct, capsys):
    action = construct()
    assert action.problem in capsys.readouterr().out
    outcome = action.invoke("fired")
    assert (outcome.done, outcome.message) == (False, action.problem)


@pytest.mark.parametrize(
    ("address", "is_one"),
    [
        ("a@b.com", True),
        ("first.last+tag@sub.domain.example.technology", True),
        ("UPPER@Example.ORG", True),
        ("o'neil_1%x@ex-ample.co.uk", True),
        ("", False),
        ("a@b", False),
        ("a b@c.de", False),
        (".a@b.com", False),
        ("a..b@c.com", False),
        ("a@-b.com", False),
        ("a@b.c", False),
        ("a@b@c.com", False),
        ("a@b.com\n", False),
    ],
)
def test_an_e_mail_address_is_known_when_it_is_seen(address, is_one):
    assert is_e_mail_address(address) is is_one


def test_a_message_goes_to_its_endpoint_through_the_topic():
    actions = Actions([EMAIL], "LargeLoss")
    (outcome,) = actions.invoke("Step 3: loss is 7.")

    assert outcome.done
    assert "must confirm" in outcome.message
    assert actions.outcomes == [outcome]
    (sent,) = messages()
    _, text, subject, attributes, *_ = sent
    assert subject == "SMDebugRule:LargeLoss fired"
    assert text == "SMDebugRule:LargeLoss fired. Step 3: loss is 7."
    assert attributes["email"]["Value"] == EMAIL["endpoint"]
    sns = boto3.client("sns", REGION)
    (subscription,) = sns.list_subscriptions()["Subscriptions"]
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", EMAIL["endpoint"])
    assert subscription["TopicArn"].endswith(":SMDebugRules")
    policy = sns.get_subscription_attributes(SubscriptionArn=subscription["SubscriptionArn"])
    assert json.loads(policy["Attributes"]["FilterPolicy"]) == {"email": [EMAIL["endpoint"]]}


def test_an_endpoint_is_subscribed_once():
    actions = Actions([SMS], "R")
    for _ in range(3):
        assert actions.invoke("again")[0].done
    assert len(boto3.client("sns", REGION).list_subscriptions()["Subscriptions"]) == 1
    assert len(messages()) == 3
    assert messages()[0][3]["phone_num"]["Value"] == SMS["endpoint"]


@pytest.fixture
def stoppable_jobs(monkeypatch):
    """moto does not know StopTrainingJob."""

    def stop_training_job(self):
        name = self._get_param("TrainingJobName")
        self.sagemaker_backend.training_jobs[name].training_job_status = "Stopping"
        return "{}"

    monkeypatch.setattr(SageMakerResponse, "stop_training_job", stop_training_job, raising=False)


@pytest.mark.usefixtures("stoppable_jobs")
def test_the_one_job_with_the_prefix_is_stopped():
    start_job("My-Job-1")
    start_job("my-job-2")
    start_job("Another-My-Job")
    outcome = StopTrainingAction("R", "My-Job").invoke()
    assert outcome.done
    assert "My-Job-1" in outcome.message
    status = boto3.client("sagemaker", REGION).describe_training_job(TrainingJobName="My-Job-1")
    assert status["TrainingJobStatus"] == "Stopping"


def test_no_job_is_stopped_if_several_match_and_that_is_reported():
    start_job("My-Job-1")
    start_job("My-Job-2")
    outcome = StopTrainingAction("R", "My-Job").invoke()
    assert not outcome.done
    assert "nothing was stopped: 2 jobs in progress match (" in outcome.message
    for name in ("My-Job-1", "My-Job-2"):
        job = boto3.client("sagemaker", REGION).describe_training_job(TrainingJobName=name)
        assert job["TrainingJobStatus"] == "InProgress"


def test_a_missing_job_is_reported():
    outcome = StopTrainingAction("R", "My-Job").invoke()
    assert not outcome.done
    assert outcome.message == "nothing was stopped: no job in progress matches"


class Firing(Rule):
    def invoke_at_step(self, step):
        self.findings = [{"message": "too much"}, {"message": "still too much"}]
        return True


def test_actions_run_when_the_rule_fires_and_before_it_is_reported():
    trial = made_run({4: {"loss": [1.0]}}).trial()
    rule = Firing(trial, json.dumps(EMAIL))
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(4)
    assert messages()[0][1] == "SMDebugRule:Firing fired. Step 4: too much (and 1 more)."


def test_an_action_that_fails_never_stops_the_rule(capsys):
    trial = made_run({4: {"loss": [1.0]}}).trial()
    rule = Firing(trial, json.dumps(EMAIL))
    sns = sns_backends[DEFAULT_ACCOUNT_ID][REGION]

    def refuse(*args, **kwargs):
        raise RuntimeError("SNS is out")

    original, sns.publish = sns.publish, refuse
    try:
        with pytest.raises(RuleEvaluationConditionMet):
            rule.invoke(4)
    finally:
        sns.publish = original
    (outcome,) = rule._actions.outcomes
    assert not outcome.done
    assert "SNS is out" in outcome.message
    assert "SNS is out" in capsys.readouterr().out


def test_the_region_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    MessageAction("R", "sms", SMS["endpoint"]).invoke("x")
    assert sns_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].topics


def test_the_old_addresses_hold():
    from smdebug.rules.action.action import ALLOWED_ACTIONS
    from smdebug.rules.action.message_action import MessageAction as Message
    from smdebug.rules.action.stop_training_action import StopTrainingAction as Stop

    assert (Message, Stop) == (MessageAction, StopTrainingAction)
    assert ALLOWED_ACTIONS == ["stoptraining", "sms", "email", "zoomin"]
