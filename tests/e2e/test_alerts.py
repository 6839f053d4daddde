"""Subscribers get one alert per issue, however many findings it has and however often they are delivered."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.functions.saver import FAILING, Saver

FOUND = "Rule Evaluation Condition Met"
EACH_STEP = {"name": "x", "rule": "ExplodingTensor", "repeat": "every_step"}
STEPS = 6


def test_an_issue_sends_one_alert(local_debugger):
    """Executions of simultaneous steps overlap, and the bus delivers each event again."""
    aws, run = local_debugger.aws, f"{local_debugger.bucket}/{local_debugger.key('burst')}"
    inbox = aws.inbox("alerted-once")
    local_debugger.attach("burst", [EACH_STEP])
    saver = Saver(local_debugger.storage("burst")).begin()
    for step in range(STEPS):
        saver.save(step, FAILING)
    local_debugger.wait("burst", through=STEPS - 1)

    def events():
        return local_debugger.events("burst", FOUND)

    aws.wait_until(lambda: len({event["detail"]["id"] for event in events()}) == STEPS, what="events")
    again = {event["detail"]["id"]: event for event in events()}.values()
    with ThreadPoolExecutor(4) as workers:
        for done in workers.map(lambda event: aws.invoke("notify", event), [*again, *again]):
            assert done.error is None, done.payload

    assert len({event["detail"]["issue"]["id"] for event in again}) == 1
    sent: Counter[str] = Counter()

    def count_sent():
        for message in inbox.messages():
            if run in message["message"] and " detected an issue " in message["subject"]:
                sent.update(
                    event["detail"]["id"] for event in again if event["detail"]["id"] in message["message"]
                )
        return bool(sent)

    aws.wait_until(count_sent, what="an alert")
    aws.wait_until(
        lambda: len(aws.invocations("notify")) >= len(events()) + 2 * STEPS,
        what="the last delivery to be handled",
    )
    count_sent()
    assert list(sent.values()) == [1]
