"""Posting events to webhooks: the address, the form, the attempts, and what no text may contain."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from functions import wiring
from functions.adapters.webhook import Posts, SecretsOfAws
from functions.decisions.posting.posts import Answer, Form, body_of
from functions.followup.webhooks import ATTEMPTS, NotDelivered, WebhookPorts, post
from functions.handlers import post_webhook
from functions.ports import NotDone
from smdebug.service.webhook_secrets import BadSecret, endpoint_in
from tests.functions.decisions.sample_events import every_kind
from tests.support.mocked_aws import mocked_aws

URL = "https://hooks.example.org/services/T0/B0/verysecret"
HEADERS = {"x-smdebug-token": "t"}
EVENT = {"detail-type": "x", "detail": dict(every_kind()["found"].detail)}


class Kept:
    """A secret whose value is replaced as often as it is read again."""

    def __init__(self, *values):
        self.values = list(values)

    def read(self, name, *, again=False):
        if again and len(self.values) > 1:
            self.values.pop(0)
        return self.values[0]


class Answering:
    """A web that returns these answers, and stores what it was sent."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.sent = []

    def post(self, url, body, *, headers):
        self.sent.append((url, headers, json.loads(body)))
        return self.answers.pop(0)


def secret(url=URL, **more):
    return json.dumps({"url": url, **more})


def ports(secrets, web, form=Form.EVENT):
    waits = []
    made = WebhookPorts(secrets, web, waits.append, "pager", form)
    return made, waits


def test_an_event_is_posted_unchanged_with_its_token():
    web = Answering(Answer(204))
    post(ports(Kept(secret(token="t")), web)[0], EVENT)
    assert web.sent == [(URL, {"x-smdebug-token": "t"}, EVENT)]


def test_a_busy_webhook_is_asked_again_when_it_says_and_no_later_than_there_is_time_for():
    web = Answering(Answer(429, "3"), Answer(503, "86400"), Answer(200))
    made, waits = ports(Kept(secret()), web)
    post(made, EVENT)
    assert waits == [3.0, 10.0]


def test_a_webhook_that_stays_away_fails_the_invocation_so_that_lambda_repeats_it():
    web = Answering(*[Answer(problem="TimeoutError")] * ATTEMPTS)
    made, waits = ports(Kept(secret()), web)
    with pytest.raises(NotDelivered, match="pager failed: TimeoutError"):
        post(made, EVENT)
    assert len(waits) == ATTEMPTS - 1


def test_a_refused_post_is_not_repeated():
    web = Answering(Answer(404))
    with pytest.raises(NotDelivered, match="answered with 404"):
        post(ports(Kept(secret()), web)[0], EVENT)


def test_a_url_that_was_replaced_is_read_again_at_the_first_refusal():
    web = Answering(Answer(410), Answer(200))
    post(ports(Kept(secret(), secret("https://new.example.org/x")), web)[0], EVENT)
    assert [url for url, _, _ in web.sent] == [URL, "https://new.example.org/x"]


@pytest.mark.parametrize(
    "text",
    [
        "verysecret",
        "[]",
        "{}",
        '{"url": null}',
        '{"url": "verysecret"}',
        '{"url": "ftp://verysecret"}',
        '{"url": "http://verysecret/x"}',
        '{"url": "https://"}',
        '{"url": "https://[verysecret"}',
        '{"url": "https://x:verysecret/"}',
        '{"url": "https://x/verysecret\\r\\nHost: y"}',
        '{"url": "https://x/y", "token": "verysecret\\nx: y"}',
        '{"url": "https://x/y", "authorization": "Bearer verysecret\\r\\nx: y"}',
        '{"url": "https://x/y", "authorization": "Bearer very secret"}',
    ],
)
def test_a_secret_without_a_safe_endpoint_is_refused_without_showing_it(text):
    with pytest.raises(BadSecret, match=r"[Tt]he secret pager") as caught:
        endpoint_in(text, "pager")
    assert "verysecret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_an_endpoint_does_not_show_itself():
    assert "verysecret" not in repr(endpoint_in(secret(), "pager"))


def test_text_of_a_run_mentions_nobody_in_slack():
    detail = {"text": "<!channel> & more", "rule": "<b>", "run": "bucket/<@U1>", "reason": None}
    message = json.loads(body_of(Form.SLACK, {"detail": detail}))
    assert message == {
        "text": "&lt;!channel&gt; &amp; more",
        "attachments": [{"title": "&lt;b&gt;", "text": "", "footer": "bucket/&lt;@U1&gt;"}],
    }


# Over HTTP


@pytest.fixture
def server():
    posts = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            posts.append((self.path, self.headers["x-smdebug-token"]))
            status = int(self.path.split("/")[1])
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/200/elsewhere")
            self.send_header("Retry-After", "7")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=serving.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{serving.server_address[1]}", posts
    serving.shutdown()
    serving.server_close()
    thread.join()


def test_a_redirect_is_not_followed(server):
    place, posts = server
    assert Posts().post(f"{place}/302/x", b"{}", headers=HEADERS).status == 302
    assert posts == [("/302/x", "t")]


def test_the_answer_of_a_webhook_is_passed_on(server):
    place, _ = server
    assert Posts().post(f"{place}/200/x", b"{}", headers={}) == Answer(200)
    assert Posts().post(f"{place}/429/x", b"{}", headers={}) == Answer(429, "7")


def test_an_error_has_no_url():
    answer = Posts().post("http://127.0.0.1:1/verysecret", b"{}", headers=HEADERS)
    assert answer.status == 0
    assert "verysecret" not in answer.problem
    assert Posts().post("http://\x7fverysecret/", b"{}", headers=HEADERS).problem == "InvalidURL"


# Secrets


@pytest.fixture
def clients():
    import boto3

    with mocked_aws():
        yield {name: boto3.client(name) for name in ("secretsmanager", "ssm")}


def test_a_secret_is_read_from_either_store_and_kept_for_a_few_minutes(clients):
    manager, ssm, now = clients["secretsmanager"], clients["ssm"], [0.0]
    manager.create_secret(Name="pager", SecretString="1")
    ssm.put_parameter(Name="/a/pager", Value="2", Type="SecureString")
    secrets = SecretsOfAws(lambda: manager, lambda: ssm, lambda: now[0])
    assert (secrets.read("pager"), secrets.read("ssm:/a/pager")) == ("1", "2")
    manager.put_secret_value(SecretId="pager", SecretString="3")
    assert secrets.read("pager") == "1"
    assert secrets.read("pager", again=True) == "3"
    manager.put_secret_value(SecretId="pager", SecretString="4")
    now[0] = 301.0
    assert secrets.read("pager") == "4"


def test_what_is_not_a_secret_is_refused(clients):
    manager, ssm = clients["secretsmanager"], clients["ssm"]
    ssm.put_parameter(Name="/open", Value="x", Type="String")
    manager.create_secret(Name="bytes", SecretBinary=b"x")
    secrets = SecretsOfAws(lambda: manager, lambda: ssm)
    for name, problem in (
        ("ssm:/open", "create it as a SecureString"),
        ("bytes", "is binary"),
        ("ssm:/none", "ParameterNotFound"),
        ("none", "ResourceNotFound"),
    ):
        with pytest.raises(NotDone, match=problem):
            secrets.read(name)


def test_the_handler_posts_to_the_webhook_of_its_environment(clients, server, monkeypatch):
    place, posts = server
    clients["ssm"].put_parameter(
        Name="/hook", Value=secret(f"{place}/200/hook", token="t"), Type="SecureString"
    )
    monkeypatch.setenv("SMDEBUG_WEBHOOK_SECRET", "ssm:/hook")
    monkeypatch.setenv("SMDEBUG_WEBHOOK_FORM", "slack")
    for made in (wiring.webhook_ports, wiring.client):
        made.cache_clear()
    post_webhook.handler(EVENT, None)
    assert posts == [("/200/hook", "t")]
    for made in (wiring.webhook_ports, wiring.client):
        made.cache_clear()
