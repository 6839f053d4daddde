"""The actions of a finding: each is carried out once, and its outcome is stored and published."""

import json

import pytest

from functions import wiring
from functions.adapters.dynamodb import DynamoItems
from functions.adapters.in_memory import MemoryItems
from functions.decisions.action_plan import Endpoints
from functions.decisions.job_ownership import JobClaims
from functions.followup.action_outcomes import OutcomesInIndex
from functions.followup.actions import CLAIMED_FOR, ActionPorts, carry_out
from functions.handlers import act
from functions.ports import NotDone, Only, TooMuch
from functions.step_index import StepIndex
from smdebug.files.zoom_request import ZoomRequest
from smdebug.service.records import GroupRecord, RunRecord
from tests.functions.decisions.sample_events import every_kind
from tests.functions.deployed_settings import KEPT_FOR

STOP, MAIL = {"name": "stoptraining"}, {"name": "email", "endpoint": "me@example.org"}
FOUND = {**every_kind()["found"].detail, "run": "runs/mnist-1", "location": "s3://runs/mnist-1"}


def event(*actions, **detail):
    return {
        "source": "smdebug",
        "detail-type": "Rule Evaluation Condition Met",
        "detail": {**FOUND, "actions": list(actions), "has_actions": bool(actions), **detail},
    }


@pytest.fixture
def aws(deployed, monkeypatch):
    """The resources of `deployed`, and a topic with a subscriber."""
    import boto3

    sns = boto3.client("sns")
    topic = sns.create_topic(Name="alerts")["TopicArn"]
    inbox = deployed.sqs.create_queue(QueueName="inbox")["QueueUrl"]
    arn = deployed.sqs.get_queue_attributes(QueueUrl=inbox, AttributeNames=["QueueArn"])
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn["Attributes"]["QueueArn"])
    monkeypatch.setenv("SMDEBUG_ALERTS_TOPIC", topic)
    monkeypatch.setenv("SMDEBUG_ALERT_EMAILS", "me@example.org, you@example.org")
    monkeypatch.setenv("SMDEBUG_ALERT_PHONE_NUMBERS", "")
    monkeypatch.setenv("SMDEBUG_BATCH_QUEUES", "")
    wiring.action_ports.cache_clear()
    deployed.inbox = inbox
    index_of(deployed).groups.begin("runs/mnist-1", GroupRecord("builtin"))
    yield deployed
    wiring.action_ports.cache_clear()


def index_of(aws):
    return StepIndex(DynamoItems(aws.environment["SMDEBUG_TABLE"], aws.dynamodb), kept_for=KEPT_FOR)


def outcome_details(aws):
    """Return the details of the action outcomes that are to be published."""
    outbox = index_of(aws).groups.get("runs/mnist-1", "builtin").outbox
    return [json.loads(entry["detail"]) for entry in outbox.values()]


def messages(aws, queue):
    found = aws.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
    return [json.loads(message["Body"]) for message in found]


def test_a_stop_is_requested_and_the_outcome_is_stored_and_published(aws):
    act.handler(event(STOP), None)
    body = aws.s3.get_object(Bucket="runs", Key="mnist-1/control/stop")["Body"].read()
    assert json.loads(body)["finding_id"] == FOUND["id"]
    (outcome,) = outcome_details(aws)
    assert (outcome["action"], outcome["effect"], outcome["done"]) == (STOP, "control object", True)
    assert outcome["finding_id"] == FOUND["id"]


def test_tensors_of_a_finding_are_requested_whole(aws):
    act.handler(event({"name": "zoomin", "steps": 5}), None)
    body = aws.s3.get_object(Bucket="runs", Key="mnist-1/control/zoom")["Body"].read()
    request = ZoomRequest.parse(body)
    layers = ("fc2_weight", "fc1_weight")
    assert request.tensors == tuple(f"^(gradient/|update/)?{name}$" for name in layers)
    assert (request.steps, request.finding_id) == (5, FOUND["id"])
    assert (request.run_id, request.training_run) == (FOUND["run_id"], FOUND["training_run"])
    (outcome,) = outcome_details(aws)
    assert (outcome["effect"], outcome["done"]) == ("control object", True)


def test_a_zoom_into_nothing_is_refused(aws):
    act.handler(event({"name": "zoomin"}, evidence={"worst": []}), None)
    (outcome,) = outcome_details(aws)
    assert (outcome["done"], outcome["effect"]) == (False, "nothing")
    assert "tensor_regex" in outcome["message"]


def test_the_same_finding_twice_is_acted_upon_once(aws):
    for _ in range(2):
        act.handler(event(STOP, MAIL), None)
    assert len(messages(aws, aws.inbox)) == 1
    assert len(outcome_details(aws)) == 2


def test_a_message_is_sent_to_its_named_recipient(aws):
    act.handler(event(MAIL), None)
    (message,) = messages(aws, aws.inbox)
    assert message["Subject"].startswith("fc-gradients (VanishingGradient) detected an issue")
    assert "gradient/fc2_weight" in message["Message"]
    assert message["MessageAttributes"]["to"]["Value"] == "me@example.org"


def test_an_unknown_recipient_is_refused_and_that_is_an_outcome(aws):
    act.handler(event({"name": "email", "endpoint": "mallory@example.org"}), None)
    assert messages(aws, aws.inbox) == []
    (outcome,) = outcome_details(aws)
    assert (outcome["done"], outcome["effect"]) == (False, "nothing")
    assert "mallory@example.org" in outcome["message"]


def test_the_job_of_the_run_is_stopped_besides():
    memory = Memory()
    carry_out(memory.ports(), event(STOP, job="mnist-1")["detail"])
    assert memory.done[:2] == [("write", "runs/mnist-1"), ("stop", "mnist-1")]


def test_a_missing_job_is_an_outcome_and_the_other_actions_are_done():
    memory = Memory()
    memory.trouble = {"describe": NotDone("there is no such job")}
    carry_out(memory.ports(), event(STOP, MAIL, job="gone")["detail"])
    assert [outcome["done"] for outcome in memory.kept.values()] == [True, False, True]
    assert [outcome["message"] for outcome in memory.kept.values()][1] == "there is no such job"


class Memory:
    """All ports of `ActionPorts` in memory; the ones that `trouble` names raise it."""

    def __init__(self):
        self.trouble = {}
        self.done = []
        self.kept = {}
        self.outbox = {}
        self.jobs_in_progress = []
        self.batch_jobs = {}
        self.described = []
        self.time = 1000.0
        self.meanwhile = None  # what happens when something is about to be done
        self.claim = OutcomesInIndex(MemoryItems()).claim

    def ports(self, batch_queues=()):
        endpoints = Endpoints(emails=("me@example.org",), batch_queues=batch_queues)
        return ActionPorts(self, BatchInMemory(self), self, self, self, self, self, endpoints)

    def _do(self, what, *details):
        if self.meanwhile:
            happens, self.meanwhile = self.meanwhile, None
            happens()
        if what in self.trouble:
            raise self.trouble[what]
        self.done.append((what, *details))

    def in_progress(self, prefix):
        return self.jobs_in_progress

    def claims_of(self, name):
        self.described.append(name)
        if "describe" in self.trouble:
            raise self.trouble["describe"]
        folders = ("runs/mnist-1",) if name == "mnist-1" else ()
        return JobClaims(name, in_progress=True, folders=folders)

    def stop(self, name):
        self._do("stop", name)

    def write_stop(self, run, body):
        self._do("write", run)

    def write_zoom(self, run, body):
        self._do("zoom", run, body)

    def publish(self, *, subject, email, sms, to=None):
        self._do("tell", to)

    def leave(self, message, *, after_seconds):
        self.done.append(("check", message["check"]))

    def now(self):
        return self.time

    def settled(self, run, group, rule_id, finding_id):
        return frozenset(outcome["id"] for outcome in self.kept.values() if outcome["settled"])

    def record_action(self, run, group, rule_id, outcome, outbox):
        self.kept[outcome["id"]] = outcome
        self.outbox |= outbox


def test_what_cannot_be_done_for_now_is_tried_again_and_the_rest_is_not():
    memory = Memory()
    memory.trouble = {"write": TooMuch("slow down")}
    detail = event(STOP, MAIL)["detail"]
    with pytest.raises(TooMuch):
        carry_out(memory.ports(), detail)
    assert memory.done == [("tell", "me@example.org"), ("check", "runs/mnist-1")]
    assert [outcome["settled"] for outcome in memory.kept.values()] == [False, True]
    memory.trouble = {}
    (outcome,) = carry_out(memory.ports(), detail)
    assert outcome["done"]
    assert memory.done[2:] == [("write", "runs/mnist-1"), ("check", "runs/mnist-1")]
    # Reported twice: the failure, and the success.
    assert len(memory.outbox) == 3
    assert carry_out(memory.ports(), detail) == []


def test_of_two_concurrent_invocations_one_acts_and_the_other_retries():
    memory = Memory()
    detail = event(STOP, MAIL, job="mnist-1")["detail"]

    def second():
        with pytest.raises(TooMuch, match="Another invocation"):
            carry_out(memory.ports(), detail, "second")

    memory.meanwhile = second
    assert len(carry_out(memory.ports(), detail, "first")) == 3
    assert [what for what, _ in memory.done] == ["write", "stop", "tell", "check"]
    assert carry_out(memory.ports(), detail, "second") == []
    assert len(memory.done) == 4


class Died(BaseException):
    """The process has died."""


def test_the_claim_of_a_dead_invocation_is_taken_over_by_its_repetition_or_after_a_while():
    memory = Memory()
    detail = event(MAIL)["detail"]
    memory.trouble = {"tell": Died()}
    with pytest.raises(Died):
        carry_out(memory.ports(), detail, "first")
    with pytest.raises(TooMuch):
        carry_out(memory.ports(), detail, "second")
    with pytest.raises(Died):  # Lambda calls it again
        carry_out(memory.ports(), detail, "first")
    memory.trouble = {}
    memory.time += CLAIMED_FOR + 1
    (outcome,) = carry_out(memory.ports(), detail, "second")
    assert outcome["done"]
    assert carry_out(memory.ports(), detail, "first") == []
    assert memory.done[0] == ("tell", "me@example.org")
    assert len(memory.done) == 2


def test_an_action_just_finished_is_not_repeated_by_an_invocation_without_its_claim():
    memory = Memory()
    detail = event(MAIL)["detail"]
    claim = memory.claim

    def late_claim(*arguments, **more):
        memory.claim = claim
        carry_out(memory.ports(), detail, "first")  # begins and ends before the second has its answer
        memory.time += 2 * CLAIMED_FOR  # and the second sleeps so long that the claim has run out
        return claim(*arguments, **{**more, "now": memory.time, "until": memory.time + CLAIMED_FOR})

    memory.claim = late_claim
    assert carry_out(memory.ports(), detail, "second") == []
    assert [what for what, _ in memory.done] == ["tell", "check"]


@pytest.mark.parametrize("where", ["memory", "DynamoDB"])
def test_one_claim_holds_until_it_runs_out(aws, where):
    store = {
        "memory": MemoryItems(),
        "DynamoDB": DynamoItems(aws.environment["SMDEBUG_TABLE"], aws.dynamodb),
    }[where]
    claims = OutcomesInIndex(store)

    def may(by, now, deed="mail"):
        return claims.claim("f", deed, by=by, now=now, until=now + 75)

    assert may("one", 1000.0)
    assert not may("other", 1001.0)
    assert may("other", 1001.0, "another deed")
    assert may("one", 1060.0)  # it came again, and has it for longer
    assert not may("other", 1100.0)
    assert may("other", 1140.0)
    assert not may("one", 1141.0)


def test_of_two_that_take_over_the_same_claim_one_gets_it():
    class Racing(MemoryItems):
        """Ports of which another invocation takes over the claim just before."""

        def update(self, pk, sk, *, only=None, **more):
            if only is not None and more["set"].get("by") == "second":
                third = OutcomesInIndex(self)
                assert third.claim("f", "mail", by="third", now=1100.0, until=1175.0)
            return super().update(pk, sk, only=only or Only(), **more)

    claims = OutcomesInIndex(Racing())
    assert claims.claim("f", "mail", by="first", now=1000.0, until=1075.0)
    assert not claims.claim("f", "mail", by="second", now=1100.0, until=1175.0)


class BatchInMemory:
    def __init__(self, memory):
        self._memory = memory

    def running(self, queue):
        return self._memory.batch_jobs[queue]

    def stop(self, job, *, reason):
        self._memory._do("terminate", job, reason)


def test_a_claim_outlasts_the_function():
    from infra.functions import QUICK

    assert CLAIMED_FOR > QUICK


def test_what_the_service_refuses_is_not_tried_again():
    memory = Memory()
    memory.trouble = {"write": NotDone("AccessDenied")}
    detail = event(STOP)["detail"]
    (outcome,) = carry_out(memory.ports(), detail)
    assert (outcome["done"], outcome["message"]) == (False, "AccessDenied")
    assert carry_out(memory.ports(), detail) == []


def test_a_job_is_found_by_its_prefix_if_the_run_does_not_name_it():
    memory = Memory()
    memory.jobs_in_progress = ["mnist-1", "mnist-2"]
    detail = event({**STOP, "training_job_prefix": "mnist"})["detail"]
    carry_out(memory.ports(), detail)
    assert ("stop", "mnist-1") in memory.done


def test_a_job_that_does_not_name_the_run_is_not_stopped_and_the_reason_is_an_outcome():
    memory = Memory()
    carry_out(memory.ports(), event(STOP, job="victim-job")["detail"])
    assert memory.described == ["victim-job"]
    assert ("stop", "victim-job") not in memory.done
    outcome = list(memory.kept.values())[1]
    assert (outcome["done"], outcome["effect"]) == (False, "training job")
    assert "The training job victim-job does not say that it trains s3://runs/mnist-1" in outcome["message"]


def test_a_finding_that_asks_for_nothing_leaves_no_check():
    memory = Memory()
    assert carry_out(memory.ports(), event()["detail"]) == []
    assert memory.done == []


def test_the_index_keeps_outcomes_in_a_table_in_memory_too():
    store = MemoryItems()
    StepIndex(store, kept_for=KEPT_FOR).groups.begin("runs/mnist-1", GroupRecord("builtin"))
    outcomes = OutcomesInIndex(store)
    kept = {"id": "a", "finding_id": "f", "settled": True, "at": 1.0}
    outcomes.record_action("runs/mnist-1", "builtin", "r", kept, {"e": {"detail": "{}"}})
    outcomes.record_action("runs/mnist-1", "builtin", "r", {**kept, "id": "b", "settled": False}, {})
    assert outcomes.settled("runs/mnist-1", "builtin", "r", "f") == {"a"}
    assert outcomes.settled("runs/mnist-1", "builtin", "r", "f2") == frozenset()


def test_the_run_publishes_the_actions_of_a_removed_lane():
    index = StepIndex(store := MemoryItems(), kept_for=KEPT_FOR)
    index.begin_run(RunRecord("runs/mnist-1"))
    before = index.run("runs/mnist-1")
    kept = {"id": "a", "finding_id": "f", "settled": True, "at": 1.0}
    entry = {"e": {"detail_type": "x", "detail": "{}"}}
    OutcomesInIndex(store).record_action("runs/mnist-1", "lane-gone", "r", kept, entry)
    assert index.run("runs/mnist-1").outbox == entry
    # A process with an older record cannot overwrite this.
    assert index.change_run(before, before) is None
