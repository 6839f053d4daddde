"""The page as Chromium shows it: each screen, live growth, spikes in pixels, accessibility, no complaint."""

from __future__ import annotations

import shutil
import time

import numpy as np
import pytest

from smdebug import modes
from smdebug_default_rules.catalog import CATALOG
from tests.ui.browsing import READY, accessible, choose, click, press, until
from tests.ui.written_runs import WrittenRun

pytestmark = pytest.mark.browser


def failing(step):
    return 2.0 if step < 30 else float("nan")


@pytest.mark.parametrize("dark", [False, True])
def test_the_list_is_clean_and_accessible(page, tmp_path, dark):
    for name in ("a", "b<img src=x onerror=alert(1)>"):
        WrittenRun(tmp_path / name).write(20, end=True)
    tab = page(dark=dark)
    until(tab, "document.querySelectorAll('tbody a').length === 2")
    until(tab, "document.body.innerText.includes('ended')")
    assert "b<img src=x onerror=alert(1)>" in tab.value("document.body.innerText")
    assert tab.value("document.querySelectorAll('img').length") == 0
    assert accessible(tab) == []
    assert tab.complaints == []


@pytest.mark.parametrize(("dark", "width"), [(False, 1400), (True, 390), (False, 2560)])
def test_a_run_shows_first_what_is_wrong(page, tmp_path, dark, width):
    WrittenRun(tmp_path / "a", loss=failing).write(60, end=True)
    tab = page("#/run/{a}", READY, dark=dark, width=width)
    until(tab, "document.querySelector('.heat canvas') !== null")
    until(tab, "document.body.innerText.includes('since step 30')")
    text = tab.value("document.body.innerText")
    assert text.index("since step 30") < text.index("Loss and metrics") < text.index("Layers by steps")
    others = len(CATALOG) - 3
    assert f"{others + 3} rules: 1 detected a problem, 2 passed, {others} not checked" in text
    assert tab.value("document.documentElement.scrollWidth") <= width
    click(tab, "document.querySelector('.layers button:not([aria-expanded])')")
    until(tab, "document.body.innerText.includes('worker at step')")
    assert accessible(tab) == []
    assert tab.complaints == []


def test_a_new_step_comes_to_an_open_page(page, tmp_path):
    run = WrittenRun(tmp_path / "a").write(10)
    tab = page("#/run/{a}", READY)
    until(tab, "document.body.innerText.includes('step 9')")
    run.write(5)
    until(tab, "document.body.innerText.includes('step 14')")
    run.write(1, end=True)
    until(tab, "document.querySelector('.facts-line').innerText.includes('ended')")
    assert tab.complaints == []


# Counts pixels of a colour, by how far each part of it may be off.
COUNT = """
(selector, [r, g, b], first, last) => {
  const canvas = document.querySelector(selector);
  const {width, height} = canvas;
  const copy = new OffscreenCanvas(width, height).getContext('2d', {willReadFrequently: true});
  copy.drawImage(canvas, 0, 0);
  const data = copy.getImageData(0, 0, width, height).data;
  let found = 0;
  for (let y = Math.floor(first * height); y < last * height; y++)
    for (let x = 0; x < width; x++) {
      const at = 4 * (y * width + x);
      const off = Math.abs(data[at] - r) + Math.abs(data[at + 1] - g) + Math.abs(data[at + 2] - b);
      if (data[at + 3] > 60 && off < 90) found++;
    }
  return found;
}
"""


def test_a_spike_of_one_step_in_100_000_is_seen_in_pixels_at_every_zoom(page, tmp_path):
    spike = 61_800

    def loss(step):
        return 40.0 if step == spike else 1.0

    def rms(step):
        return np.where((np.arange(8) == 3) & (step == spike), 1.0, 1e-3)

    run = WrittenRun(tmp_path / "a", loss=loss, rms=rms, saved=range(0, 100_000, 100))
    run.write(99_901, end=True)
    tab = page("#/run/{a}", READY)
    press(tab, "Unfold all")
    count = f"({COUNT})"
    curve, yellow = [5, 80, 174], [253, 231, 37]
    width = 100_000
    seen = 0
    while width > 300:
        first = max(0, spike - width // 3)
        tab.value(
            f"document.dispatchEvent(new CustomEvent('show-steps', {{detail: [{first}, {first + width}]}}))"
        )
        # The top fifth of the chart holds nothing but the spike.
        until(tab, f"{count}('.u-wrap canvas', {curve}, 0.08, 0.2) > 3")
        until(tab, f"{count}('.heat canvas', {yellow}, 0, 1) > 3")
        width //= 3
        seen += 1
    assert seen >= 5
    tab.value("document.dispatchEvent(new CustomEvent('show-steps', {detail: [0, 50000]}))")
    until(tab, f"{count}('.u-wrap canvas', {curve}, 0.08, 0.2) < 3000")
    until(tab, f"{count}('.heat canvas', {yellow}, 0, 1) === 0")
    assert tab.complaints == []


def test_the_focus_stays_where_it_is_when_a_run_grows(page, tmp_path):
    growing = WrittenRun(tmp_path / "a", seed=1).write(5)
    WrittenRun(tmp_path / "b", seed=2).write(5, end=True)
    tab = page("#/compare/{a},{b}", READY)
    until(tab, "document.querySelectorAll('.table a').length === 2")
    tab.value("document.querySelectorAll('.table a')[1].focus()")
    growing.write(3)
    until(tab, "document.querySelector('.table td').innerText === '8'")
    assert tab.value("document.activeElement.innerText") == "b"
    assert tab.complaints == []


REFRESHED = """
(async () => {
  const { oneAtATime } = await import(new URL("page/refreshing.js", location.href));
  const answers = [];
  const log = [];
  const refresh = oneAtATime(async () => {
    const number = answers.length + 1;
    log.push(`asked ${number}`);
    const text = await new Promise((resolve) => answers.push(resolve));
    log.push(`shown ${number}`);
    if (text === "fails") throw new Error("no answer");
  });
  const first = refresh();
  refresh();
  const third = refresh().catch((error) => log.push(error.message));
  if (answers.length > 1) return `${answers.length} at a time`;
  answers[0]("as it was");
  while (answers.length < 2) await new Promise((resolve) => setTimeout(resolve));
  answers[1]("fails");
  await third;
  const fourth = refresh();
  answers[2]("as it is");
  await fourth;
  return log.join(", ");
})()
"""


def test_one_refresh_runs_at_a_time_and_changes_meanwhile_bring_one_more(page, tmp_path):
    """A late answer would cover a newer one."""
    WrittenRun(tmp_path / "a").write(3, end=True)
    tab = page("#/")
    assert tab.value(REFRESHED) == ("asked 1, shown 1, asked 2, shown 2, no answer, asked 3, shown 3")


def test_a_rule_is_added_and_a_stop_requested_after_a_question(page, tmp_path):
    WrittenRun(tmp_path / "a").write(5)
    tab = page("#/run/{a}", READY)
    press(tab, "Stop …")
    until(
        tab,
        "document.querySelector('dialog')?.innerText.includes('Ask the training a to stop?')",
    )
    assert not (tmp_path / "a" / "control" / "stop").exists()
    assert accessible(tab) == []
    press(tab, "Stop the training")
    until(tab, "document.querySelector('dialog')?.innerText.includes('Stop requested')")
    press(tab, "Close")
    until(tab, "document.querySelector('dialog') === null")
    assert (tmp_path / "a" / "control" / "stop").exists()
    press(tab, "Rules …")
    until(tab, "document.querySelector('dialog select') !== null")
    choose(tab, "document.querySelector('dialog select')", "VanishingGradient")
    press(tab, "Add to the run")
    while not (tmp_path / "a" / "rules.json").exists():
        time.sleep(0.05)
    assert tab.complaints == []


def test_a_thousand_rows_are_drawn_as_few(page, tmp_path):
    WrittenRun(tmp_path / "first").write(3, end=True)
    for number in range(1000):
        folder = tmp_path / f"run-{number}" / "collections" / "000000000"
        folder.mkdir(parents=True)
        source = next((tmp_path / "first" / "collections" / "000000000").iterdir())
        (folder / source.name).write_bytes(source.read_bytes())
    tab = page()
    until(tab, "document.body.innerText.includes('1,001 runs')")
    assert tab.value("document.querySelectorAll('tbody tr').length") < 80
    tab.value("document.querySelector('input[type=search]').value = 'run-77'")
    tab.value("document.querySelector('input[type=search]').dispatchEvent(new Event('input'))")
    until(tab, "document.querySelectorAll('tbody a').length === 11")
    assert tab.complaints == []


def test_configuration_and_tags_are_columns_and_choices(page, tmp_path):
    for rate, tag in ((0.1, "sweep"), (0.01, "base")):
        WrittenRun(tmp_path / f"lr-{rate}", config={"lr": rate, "seed": 1}, tags=tag).write(3, end=True)
    tab = page("#/?sort=%3Dlr")
    until(tab, "document.querySelectorAll('tbody a').length === 2")
    names = "[...document.querySelectorAll('tbody a')].map(a => a.textContent).join()"
    until(tab, f"{names} === 'lr-0.01,lr-0.1'")
    heads = "[...document.querySelectorAll('thead th')].map(h => h.innerText)"
    until(tab, f"{heads}.includes('lr')")
    until(tab, "document.querySelectorAll('.tag').length === 2")
    click(tab, "[...document.querySelectorAll('.tag')].find(b => b.textContent === 'sweep')")
    until(tab, f"{names} === 'lr-0.1'")
    assert "tag=sweep" in tab.value("location.hash")
    assert accessible(tab) == []
    assert tab.complaints == []


def test_an_empty_folder_says_what_to_do_until_a_run_appears(page, tmp_path):
    tab = page("#/", "document.body.innerText.includes('No runs so far')")
    assert "smdebug run train.py" in tab.value("document.body.innerText")
    assert accessible(tab) == []
    WrittenRun(tmp_path / "late").write(3)
    tab.client.server.board.find_runs(patience=0)  # instead of in a few seconds
    until(tab, "[...document.querySelectorAll('tbody a')].some(a => a.textContent === 'late')")
    assert tab.complaints == []


def test_a_run_that_is_deleted_while_open_is_shown_on_and_marked(page, tmp_path):
    WrittenRun(tmp_path / "a").write(10, end=True)
    tab = page("#/run/{a}", READY)
    shutil.rmtree(tmp_path / "a")
    tab.client.server.board.find_runs(patience=0)  # otherwise every 30 s while no list is open
    until(tab, "document.body.innerText.includes('was deleted')")
    assert tab.value("document.querySelector('.u-wrap canvas') !== null")


@pytest.mark.parametrize("dark", [False, True])
def test_modes_facts_and_the_machine_share_the_steps_of_the_charts(page, tmp_path, dark):
    run = WrittenRun(
        tmp_path / "a",
        system=lambda step: {"memory_bytes": 3e8 + step},
        mode=lambda step: modes.EVAL if step % 10 == 9 else modes.TRAIN,
    )
    run.write(40, end=True)
    tab = page("#/run/{a}", READY, dark=dark)
    until(tab, "document.querySelector('.strip canvas')?.ariaLabel.includes('mode 8 parts')")
    until(tab, "document.querySelector('[aria-label=Machine] .readout')?.textContent === '300 MB'")
    point = (
        "document.querySelector('.u-over')?.dispatchEvent("
        "new MouseEvent('mousemove', {clientX: 500, clientY: 500, bubbles: true}))"
    )
    shown = "document.querySelector('.chart .readout')?.textContent.startsWith('step')"
    until(tab, f"{point}, {shown}")
    until(tab, "document.querySelector('.heat .cross').hidden === false")
    assert accessible(tab) == []
    assert tab.complaints == []


@pytest.mark.parametrize(("width", "columns"), [(600, 1), (785, 2), (1280, 3), (1920, 5)])
def test_small_charts_stand_beside_each_other_where_there_is_room(page, tmp_path, width, columns):
    metrics = {f"gpu{n}_percent": 50.0 for n in range(8)}
    WrittenRun(tmp_path / "a", system=lambda step: metrics).write(9, end=True)
    tab = page("#/run/{a}", READY, width=width)
    charts = "[...document.querySelectorAll('[aria-label=Machine] .chart')]"
    until(tab, f"{charts}.length === 8")
    lefts = f"new Set({charts}.map((chart) => chart.getBoundingClientRect().left))"
    assert tab.value(f"{lefts}.size") == columns


@pytest.mark.parametrize("width", [600, 800, 1400])
@pytest.mark.parametrize("tensors", [3, 120], ids=["few", "more than fit"])
def test_a_step_has_the_same_place_on_all_wide_charts(page, tmp_path, width, tensors):
    run = WrittenRun(
        tmp_path / "a",
        tensors=tensors,
        mode=lambda step: modes.EVAL if step % 10 == 9 else modes.TRAIN,
    )
    run.write(40, end=True)
    tab = page("#/run/{a}", READY, width=width)
    until(tab, "document.querySelector('.strip canvas')?.ariaLabel.includes('mode 8 parts')")
    until(tab, "document.querySelector('.heat canvas').width > 50")
    begin, end = tab.value(
        "(box => [box.left, box.right])(document.querySelector('.u-over').getBoundingClientRect())"
    )
    for share in (0.02, 0.5, 0.98):
        x = round(begin + share * (end - begin))
        until(tab, f"({POINTED_AT})({x}).length >= 2")
        places = tab.value(f"({POINTED_AT})({x})")
        assert places == pytest.approx([x] * len(places), abs=1)


# Points at the first chart, and returns where the other charts show the step under the pointer.
POINTED_AT = """
(x) => {
  const moved = new MouseEvent('mousemove', {clientX: x, clientY: 500, bubbles: true});
  document.querySelector('.u-over')?.dispatchEvent(moved);
  const crosses = [...document.querySelectorAll('.cross')].filter(cross => cross.offsetParent);
  return crosses.map(cross => cross.getBoundingClientRect().left);
}
"""


@pytest.mark.parametrize("workers", [64, 1024])
def test_the_worker_that_differs_is_seen_among_many(page, tmp_path, workers):
    WrittenRun(tmp_path / "a").write(3, end=True)
    tab = page("#/run/{a}", READY)
    tab.value(
        f"""(async () => {{
          const {{Strip, rowsOfWorkers}} = await import('./page/strips.js');
          const {{TimeLine}} = await import('./page/timeline.js');
          const time = new TimeLine(() => {{}});
          time.extend(0, 100);
          const strip = new Strip('Copies', time);
          strip.element.id = 'many';
          document.getElementById('main').prepend(strip.element);
          const steps = [...Array(50).keys()].map(at => 2 * at);
          const ranks = [...Array({workers}).keys()];
          const state = ranks.map(rank => steps.map(step => +(rank === 37 && step > 60)));
          const found = {{workers: state.map((_, rank) => `worker_${{rank}}`), steps, state}};
          strip.show(rowsOfWorkers(found, false), 'all');
          globalThis.only = rowsOfWorkers(found, true).map(row => row.name).join();
        }})()"""
    )
    assert tab.value("only") == "worker_37"
    until(tab, f"({COUNT})('#many canvas', [179, 38, 30], 0, 1) > 100")
    assert tab.value("document.querySelector('#many canvas').clientHeight") <= 480


def test_a_lost_connection_is_named_and_found_again(page, tmp_path):
    WrittenRun(tmp_path / "a").write(3, end=True)
    tab = page("#/run/{a}", READY)
    until(tab, "document.documentElement.dataset.connected === 'yes'")
    first = tab.client.server
    first.stop()
    until(tab, "document.documentElement.dataset.connected === 'no'")
    assert not tab.value("document.getElementById('problem').hidden")
    tab.restart(port=first.port)
    until(tab, "document.documentElement.dataset.connected === 'yes'")
    until(tab, "document.getElementById('problem').hidden")


PRESSED = "document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '{}', bubbles: true}}))"


def test_the_window_of_a_comparison_and_its_colours_are_those_of_the_address(page, tmp_path):
    for seed in range(8):
        WrittenRun(tmp_path / f"r{seed}", seed=seed).write(20, end=True)
    ids = ",".join(f"{{r{seed}}}" for seed in range(8))
    tab = page(f"#/compare/{ids}?from=5&to=15", READY)
    until(tab, "document.querySelectorAll('.keys-of-curves button').length === 8")
    assert "from=5" in tab.value("location.hash")
    tab.value(PRESSED.format("0"))
    until(tab, "!location.hash.includes('from')")
    tab.value(PRESSED.format("+"))
    until(tab, "location.hash.includes('from=5') && location.hash.includes('to=15')")
    tab.value(PRESSED.format("−"))  # as the list of keys writes it
    until(tab, "!location.hash.includes('from')")
    inks = tab.value(
        "import('./page/inks.js').then(m => [...Array(20).keys()].map(at => JSON.stringify(m.inkOf(at))))"
    )
    assert len(set(inks)) == 20
    assert accessible(tab) == []
    assert tab.complaints == []


def test_on_a_narrow_screen_tags_are_shown_and_the_verdict_still_has_room(page, tmp_path):
    WrittenRun(tmp_path / "a-run-with-a-long-name-of-today-0001", tags=["sweep", "a longer tag"]).write(
        3, end=True
    )
    tab = page(width=800)
    until(tab, "document.querySelectorAll('td .tag').length === 2")
    assert tab.value("[...document.querySelectorAll('td .tag')].every(tag => tag.offsetParent !== null)")
    verdict = "[...document.querySelectorAll('th')].find(head => head.innerText.startsWith('Verdict'))"
    assert tab.value(f"{verdict}.getBoundingClientRect().left < 700")
    click(tab, "[...document.querySelectorAll('td .tag')].find(tag => tag.textContent === 'sweep')")
    until(tab, "location.hash.includes('tag=sweep')")
