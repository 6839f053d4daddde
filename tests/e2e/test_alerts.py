"""Who has subscribed is told of a finding once, however often its event comes."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.functions.saver import ILL, Saver

FOUND = "Rule Evaluation Condition Met"
EACH_STEP = {"name": "x", "rule": "ExplodingTensor", "repeat": "every_step"}
STEPS = 6


def test_findings_that_come_many_times_are_told_once_each(local_debugger):
    """Steps that come at once have executions that overlap, and the bus delivers each event again."""
    aws, run = local_debugger.aws, f"{local_debugger.bucket}/{local_debugger.key('burst')}"
    inbox = aws.inbox("told-once")
    local_debugger.attach("burst", [EACH_STEP])
    saver = Saver(local_debugger.storage("burst")).begin()
    for step in range(STEPS):
        saver.save(step, ILL)
    local_debugger.wait("burst", through=STEPS - 1)

    def events():
        return local_debugger.events("burst", FOUND)

    aws.wait_until(
        lambda: len({event["detail"]["id"] for event in events()}) == STEPS, what="events"
    )
    again = {event["detail"]["id"]: event for event in events()}.values()
    with ThreadPoolExecutor(4) as at_once:
        for done in at_once.map(lambda event: aws.invoke("notify", event), [*again, *again]):
            assert done.error is None, done.payload

    sent: Counter[int] = Counter()

    def all_told():
        for message in inbox.messages():
            if run in message["message"] and " found something " in message["subject"]:
                sent.update(
                    event["detail"]["step"]
                    for event in again
                    if event["detail"]["id"] in message["message"]
                )
        return set(sent) == set(range(STEPS))

    aws.wait_until(all_told, what="an alert for each finding")
    aws.wait_until(
        lambda: len(aws.invocations("notify")) >= len(events()) + 2 * STEPS,
        what="the last delivery to be handled",
    )
    all_told()
    assert sent == dict.fromkeys(range(STEPS), 1)
