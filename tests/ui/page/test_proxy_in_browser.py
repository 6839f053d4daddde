"""The page behind the proxies of notebooks, as Chromium walks through it under the name of the hub."""

from __future__ import annotations

import pytest

from tests.ui.browsing import LOADED, READY, choose, click, press, until
from tests.ui.proxying import Proxy
from tests.ui.written_runs import WrittenRun

pytestmark = pytest.mark.browser
HUB = "hub.example.org"  # the browser of these tests finds it on this machine
PREFIXES = ("/user/ada/proxy/{}", "/jupyterlab/default/proxy/{}", "/user/ada/proxy/absolute/{}")


@pytest.fixture
def hub(serve, chromium, tmp_path):
    """Open the page below a prefix of the hub: as a page of its own, or in a frame of a notebook."""
    proxies = []

    def opened(prefix, *, is_framed):
        access = {"in_notebook": True, "behind_hub": True} if is_framed else {"allowed_hosts": [HUB]}
        client = serve(tmp_path, **access)
        port, token = client.server.port, client.server.token
        below = prefix.format(port)
        frame = f'<iframe src="{below}/?token={token}&amp;frame=1" width=1200 height=900></iframe>'
        proxy = Proxy(port, below, framed=frame)
        proxies.append(proxy)
        path = "/lab" if is_framed else f"{below}/?token={token}"
        chromium.renew(f"http://{HUB}:{proxy.port}{path}", width=1250, height=1000)
        chromium.client = client
        until(chromium, LOADED)
        return chromium

    yield opened
    for proxy in proxies:
        proxy.stop()


@pytest.mark.parametrize("prefix", PREFIXES)
def test_every_screen_is_walked_through_the_proxy(hub, tmp_path, prefix):
    run = WrittenRun(tmp_path / "a").write(10)
    WrittenRun(tmp_path / "b", seed=1).write(10, end=True)
    tab = hub(prefix, is_framed=False)
    until(tab, "document.querySelectorAll('tbody a').length === 2")
    assert "token=" not in tab.value("location.href")
    until(tab, "document.documentElement.dataset.connected === 'yes'")
    click(tab, "[...document.querySelectorAll('tbody a')].find(a => a.textContent === 'a')")
    until(tab, READY)
    until(tab, "document.querySelector('.heat canvas').width > 50")
    click(tab, "document.querySelector('.layers button:not([aria-expanded])')")
    until(tab, "document.body.innerText.includes('worker at step 9')")
    run.write(5)  # the event comes through the proxy
    until(tab, "document.querySelector('.facts-line').innerText.includes('step 14')")
    press(tab, "Stop …")
    press(tab, "Stop the training")
    until(tab, "document.querySelector('dialog')?.innerText.includes('Stop requested')")
    assert (tmp_path / "a" / "control" / "stop").exists()
    press(tab, "Close")
    tab.press("u")
    until(tab, "document.querySelectorAll('td input[type=checkbox]').length === 2")
    for place in (0, 1):
        click(tab, f"document.querySelectorAll('td input[type=checkbox]')[{place}]")
    tab.press("c")
    until(tab, READY)
    until(tab, "document.querySelectorAll('.chart .u-wrap canvas').length > 0")
    assert tab.complaints == []


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_frame_of_a_notebook_is_live_and_acts_with_the_token_alone(hub, tmp_path, prefix):
    run = WrittenRun(tmp_path / "a").write(10)
    tab = hub(prefix, is_framed=True)
    page = "document.querySelector('iframe').contentDocument"
    click(tab, f"{page}?.querySelector('tbody td a')")
    until(tab, f"{page}.documentElement.dataset.ready === 'yes'")
    until(tab, f"{page}.querySelector('.heat canvas').width > 50")
    run.write(5, end=True)
    until(tab, f"{page}.querySelector('.facts-line').innerText.includes('step 14')")
    rules = f"[...{page}.querySelectorAll('button')].find(b => b.textContent === 'Rules …')"
    click(tab, rules)
    choice = f"{page}.querySelector('dialog select')"
    until(tab, f"{choice} !== null")
    choose(tab, choice, "VanishingGradient")
    click(
        tab,
        f"[...{page}.querySelectorAll('dialog button')].find(b => b.textContent === 'Add to the run')",
    )
    until(tab, f"{page}.querySelector('dialog').innerText.includes('was added')")
    assert (tmp_path / "a" / "rules.json").exists()
    assert tab.value("document.cookie") == ""
    assert tab.complaints == []
