// One run: first what is wrong, then every step of it under one time line.

import { get } from "./api.js";
import { reportOf, rules, stop, zoomIn } from "./actions.js";
import { ChartView } from "./chart_view.js";
import { button, debounced, h, replace, select } from "./dom.js";
import { ago, count, duration, factName, inWords, moment, number, plural, statisticName, titleOf, wordsOf } from "./format.js";
import { HeatMap } from "./heatmap.js";
import { issueCard } from "./issue.js";
import { oneAtATime } from "./refreshing.js";
import { SeriesChart } from "./series_chart.js";
import { Strip, WORKER_STATES, inksOfModes, rowsOfFacts, rowsOfWorkers } from "./strips.js";
import { TensorPanel } from "./tensor.js";
import { TimeLine } from "./timeline.js";

const KINDS = ["gradients", "updates", "parameters", "outputs", "inputs"];
const SMALL_CHARTS = 12;
const RESULTS = { found: "detected a problem", failed: "failed", passed: "passed", "not checked": "not checked", waiting: "waiting" };

// How many rules came to each result, such as “3 passed, 28 not checked”.
function resultsInWords(rules) {
  const counts = Object.entries(RESULTS).map(([state, words]) => [rules.filter((rule) => rule.state === state).length, words]);
  return counts.filter(([rules]) => rules).map(([rules, words]) => `${count(rules)} ${words}`).join(", ");
}

export function runScreen({ main, crumbs, report, address, remember, list }, id) {
  let run = null;
  let at = -1;
  let closed = false;
  const values = address().values;
  const chosen = { kind: values.get("kind") || "", statistic: values.get("statistic") || "rms", extreme: values.get("extreme") || "high" };
  const time = new TimeLine((line) => remember({ from: line.from === null ? "" : Math.floor(line.from), to: line.to === null ? "" : Math.ceil(line.to) }));
  if (values.get("from") && values.get("to")) [time.from, time.to] = [Number(values.get("from")), Number(values.get("to"))];
  const panel = new TensorPanel(id, time, { report, remember, statistic: values.get("of_tensor") || "rms", closed: (kind, name) => heat.leave(name) });
  const view = new ChartView(values, remember);
  const heat = new HeatMap(id, time, {
    report,
    remember,
    tree: values.get("tree") || "",
    fit: values.get("fit") === "1",
    chosen: (kind, tensor, step) => {
      panel.show(kind, tensor, step).catch(report);
    },
  });
  const charts = new Map();
  const title = h("h1", { text: "…" });
  const line = h("div", { class: "facts-line" });
  const configuration = h("div");
  const progress = h("div");
  const diagnosis = h("div", { class: "cards" });
  const checked = h("div");
  const lossPlace = h("div");
  const others = h("div", { class: "charts" });
  const deployed = h("div");
  const heatControls = h("div", { class: "bar" });
  const heatSection = h("section", { "aria-label": "Layers by steps" }, h("h2", { text: "Layers by steps" }), heatControls, heat.element, panel.element);
  const ranks = h("section", { "aria-label": "Workers by steps" });
  const lanes = new Strip("Modes and facts by steps", time);
  const lanesPlace = h("div", { hidden: true }, h("h3", { text: "Modes and facts" }), lanes.element);
  const more = h("p");
  const machine = h("div", { class: "charts" });
  const machinePlace = h("section", { "aria-label": "Machine", hidden: true }, h("h2", { text: "Machine" }), machine);
  const copies = new Strip("Copies of the model by worker", time);
  const facts = h("section", { "aria-label": "What was true of the steps" });
  const log = h("section", { "aria-label": "What the rules reported" });
  const zoomLine = h("span", { class: "quiet" });
  const stopButton = button("Stop …", () => stop(id, run?.name || id), { class: "danger" });
  const zoomButton = button("Zoom in …", () => zoomIn(id, panel.name));
  replace(crumbs, h("a", { href: list, text: "Runs" }), " / ", h("span", { text: "…" }));
  replace(main,
    h("div", { class: "bar" }, title, h("span", { class: "grow" }),
      button("Rules …", () => rules(id).catch(report)), zoomButton, stopButton,
      button("Report", () => reportOf(id, run?.name || id).catch(report))),
    line, configuration, progress,
    h("section", { "aria-label": "Diagnosis" }, h("h2", { text: "Diagnosis" }), diagnosis, checked, deployed),
    h("section", { "aria-label": "Loss and metrics" },
      h("div", { class: "bar" }, h("h2", { text: "Loss and metrics" }), h("span", { class: "grow" }), zoomLine,
        button("−", () => time.zoom(2), { "aria-label": "Zoom out" }), button("+", () => time.zoom(0.5), { "aria-label": "Zoom in on time" }),
        button("All steps", () => time.show(time.first, time.last))),
      lossPlace, others, more, lanesPlace),
    heatSection, ranks, machinePlace, facts, log);
  time.listeners.add(() => {
    const [from, to] = time.window;
    zoomLine.textContent = time.isWhole ? "" : `steps ${count(Math.floor(from))} to ${count(Math.ceil(to))}`;
  });

  // For scripts around the page: `document.dispatchEvent(new CustomEvent("show-steps", {detail: [from, to]}))`.
  const showSteps = (event) => time.show(...event.detail);
  document.addEventListener("show-steps", showSteps);

  function onset(issue) {
    const width = Math.max(20, (time.last - time.first) / 20);
    time.show(issue.since - width, issue.since + width);
    lossPlace.scrollIntoView({ block: "center" });
  }

  function describe() {
    title.textContent = run.name;
    crumbs.lastElementChild.textContent = run.name;
    document.title = `${run.issues.length ? `✗ ${run.issues.length} ` : ""}${run.name} · smdebug`;
    const words = [run.state, run.last_step === null ? null : `step ${count(run.last_step)}`, `${plural(run.steps, "step")} saved`,
      run.workers.length > 1 ? plural(run.workers.length, "worker") : null,
      run.duration !== null ? duration(run.duration) : null, run.cost === null ? null : `$${run.cost.toFixed(2)}`, run.path];
    replace(line, ...words.filter(Boolean).map((text) => h("span", { text, title: text.startsWith("$") ? run.cost_title : null })),
      run.last_saved ? h("span", { text: `last saved ${ago(run.last_saved)}`, title: moment(run.last_saved) }) : null);
    drawConfiguration();
    stopButton.disabled = zoomButton.disabled = run.state === "ended" || run.state === "gone";
    const behind = Math.min(run.steps_read, run.steps_checked);
    const reading = run.state === "reading" || behind < run.steps;
    const what = run.state === "reading" ? "Reading the list of steps …" : run.steps_read < run.steps ? `Reading: ${count(run.steps_read)} of ${plural(run.steps, "step")}` : `Checking: ${count(run.steps_checked)} of ${plural(run.steps, "step")}`;
    replace(progress, ...run.notes.map((text) => h("p", { class: "problem", role: "status", text })), run.error ? h("p", { class: "problem", role: "alert", text: run.error }) : null,
      reading && !run.error ? h("p", { class: "quiet" }, h("progress", { max: Math.max(1, 2 * run.steps), value: run.steps_read + run.steps_checked, "aria-label": what }), ` ${what}`) : null,
      run.damaged.length ? h("details", { open: progress.querySelector("details")?.open }, h("summary", { class: "warn", text: `${plural(run.damaged.length, "part")} of the run cannot be read; the rest is shown` }),
        h("ul", {}, ...run.damaged.map(([place, why]) => h("li", { text: `${place}: ${why}` })))) : null);
  }

  function drawConfiguration() {
    const known = Object.entries(run.configuration);
    const key = JSON.stringify(known);
    if (configuration.key === key) return;
    configuration.key = key;
    replace(configuration, known.length ? h("details", {}, h("summary", { text: `Configuration: ${known.slice(0, 4).map(([name, value]) => `${name} ${value}`).join(", ")}${known.length > 4 ? " …" : ""}` }),
      h("dl", { class: "pairs-of-values" }, ...known.flatMap(([name, value]) => [h("dt", { text: name }), h("dd", { text: String(value) })]))) : null);
  }

  function diagnose() {
    const passed = run.rules.filter((rule) => rule.state === "passed");
    const failed = run.rules.filter((rule) => rule.state === "failed");
    const fine = !run.issues.length && run.steps_checked > 0 && passed.length > 0;
    const unchecked = !run.issues.length && run.steps_checked > 0 && !passed.length && !failed.length;
    const so_far = run.state === "ended" && run.steps_checked >= run.steps ? "" : ` up to step ${count(run.last_step)}`;
    replace(diagnosis, ...run.issues.map((issue, place) => issueCard(issue, place, onset)),
      fine ? h("article", { class: "card fine" }, h("h3", { class: "good", text: `${plural(passed.length, "rule")} passed${so_far}` })) : null,
      unchecked ? h("article", { class: "card" }, h("h3", { class: "quiet", text: "No rule could check this run so far" }),
        h("div", { class: "quiet", text: "The run lacks the data that the rules check. “Rules …” lists all rules and adds others to the run." })) : null,
      !fine && !unchecked && !run.issues.length && !failed.length ? h("p", { class: "quiet", text: run.steps ? "The rules have not checked a step yet." : "Waiting for the first step." }) : null,
      ...failed.map((rule) => h("article", { class: "card issue" }, h("h3", { class: "warn", text: `${rule.name} failed` }), h("div", { text: rule.sentence }))));
    const open = checked.querySelector("details")?.open;
    replace(checked, run.rules.length ? h("details", { open },
      h("summary", { text: `${plural(run.rules.length, "rule")}: ${resultsInWords(run.rules)}` }),
      h("ul", { class: "rules" }, ...run.rules.map((rule) => h("li", { class: { found: "bad", failed: "warn", passed: "good" }[rule.state] || "quiet", text: rule.sentence }))),
      ...run.not_checked.map((text) => h("p", { class: "quiet", text }))) : null);
    drawDeployed();
    time.onsets = run.issues.map((issue) => ({ step: issue.since, text: issue.headline }));
  }

  // The table of a deployed debugger: how far its rules are, and their results.
  function drawDeployed() {
    const table = run.deployed;
    if (!table) return;
    const open = deployed.querySelector("details")?.open ?? !run.issues.length;
    const words = [`Deployed debugger: ${inWords(table.state)}`, table.verdict ? inWords(table.verdict) : null,
      table.evaluated_through === null ? "no step evaluated yet" : `evaluated through step ${count(table.evaluated_through)}`,
      plural(table.open_issues, "open issue"), table.job ? `job ${table.job}` : null];
    const inks = { IssuesFound: "bad", NoIssuesFound: "good", Error: "warn" };
    replace(deployed, table.trouble ? h("p", { class: "problem", role: "status", text: table.trouble }) : null,
      h("details", { open }, h("summary", { text: words.filter(Boolean).join(", ") }),
        h("div", { class: "log", tabindex: "0", role: "region", "aria-label": "Rules of the deployed debugger" }, h("table", {},
          h("thead", {}, h("tr", {}, ...["rule", "status", "evaluated through", "reason"].map((text) => h("th", { scope: "col", text })))),
          h("tbody", {}, ...table.statuses.map((each) => h("tr", {}, h("td", { text: each.name }),
            h("td", { class: inks[each.status] || "quiet", text: `${inWords(each.status)}${each.attached ? "" : ", removed"}${each.catching_up ? ", catching up" : ""}` }),
            h("td", { text: each.evaluated_through === null ? "–" : `step ${count(each.evaluated_through)}` }), h("td", { text: each.reason || "" }))))))));
  }

  let showsAll = values.get("all") === "1";
  async function drawSeries() {
    const names = run.series.map((each) => each.name);
    const of_machine = names.filter((name) => name.startsWith("system/"));
    const scalars = names.filter((name) => !name.startsWith("system/"));
    const loss = scalars.find((name) => name.toLowerCase() === "loss") || scalars.find((name) => /loss/i.test(name)) || scalars[0];
    const rest = scalars.filter((name) => name !== loss);
    const wanted = [loss, ...(showsAll ? rest : rest.slice(0, SMALL_CHARTS)), ...of_machine].filter(Boolean);
    const loads = [];
    for (const name of wanted) {
      let chart = charts.get(name);
      if (!chart) {
        const is_machine = name.startsWith("system/");
        chart = new SeriesChart(titleOf(name), [{ run: id, name }], time, { height: name === loss ? 240 : 140, isAligned: name === loss, view, report, words: is_machine ? wordsOf(name) : number });
        charts.set(name, chart);
        (name === loss ? lossPlace : is_machine ? machine : others).append(chart.element);
      }
      loads.push(chart.load());
    }
    machinePlace.hidden = !of_machine.length;
    const left = showsAll ? 0 : rest.length - SMALL_CHARTS;
    replace(more, left > 0 ? button(`Show ${plural(left, "more chart")}`, () => {
      showsAll = true;
      remember({ all: "1" });
      drawSeries().catch(report);
    }) : null);
    if (!wanted.length) replace(lossPlace, h("p", { class: "quiet", text: "This run has saved no losses or metrics so far." }));
    else if (lossPlace.firstElementChild?.tagName === "P") lossPlace.firstElementChild.remove();
    await Promise.all(loads);
  }

  let kindsKey = "";
  async function drawHeat() {
    const kinds = run.kinds.map((each) => each.name);
    heatSection.hidden = !kinds.length;
    if (!kinds.length) return;
    if (!kinds.includes(chosen.kind)) chosen.kind = KINDS.find((kind) => kinds.includes(kind)) || kinds[0];
    const key = JSON.stringify([kinds, chosen]);
    if (key !== kindsKey) {
      kindsKey = key;
      const again = (changes) => {
        Object.assign(chosen, changes);
        remember(chosen);
        heat.choose(chosen.kind, chosen.statistic, chosen.extreme).catch(report);
      };
      replace(heatControls,
        select("Tensors", run.kinds.map((each) => [each.name, `${each.name} (${each.tensors})`]), chosen.kind, (kind) => again({ kind })),
        select("Statistic", run.statistics.map((name) => [name, statisticName(name)]), chosen.statistic, (statistic) => again({ statistic })),
        select("Cell", [["high", "largest"], ["low", "smallest"]], chosen.extreme, (extreme) => again({ extreme })),
        h("span", { class: "grow" }), ...heat.controls());
    }
    await heat.choose(chosen.kind, chosen.statistic, chosen.extreme);
    if (panel.isOpen) await panel.refresh().catch(report);
    else await openRemembered();
  }

  // The tensor of an address that was sent, once its kind is read.
  async function openRemembered() {
    const known = address().values;
    const [kind, tensor, step] = [known.get("of") || chosen.kind, known.get("tensor"), known.get("step")];
    if (!tensor || !run.kinds.some((each) => each.name === kind)) return;
    heat.current = tensor;
    await panel.show(kind, tensor, step === null ? undefined : Number(step)).catch((error) => error.status === 409 || report(error)); // 409: not opened yet
  }

  const drawRest = debounced(400, async () => {
    try {
      const [changes, lines, workers] = await Promise.all([get(`run/${id}/facts`), get(`run/${id}/log`),
        run.workers.length > 1 ? get(`run/${id}/ranks`) : null]);
      drawFacts(changes.changes);
      drawLog(lines);
      if (workers) drawRanks(workers);
    } catch (error) {
      report(error);
    }
  });

  function drawFacts(changes) {
    const lanesOf = rowsOfFacts(run.modes, changes, run.last_step);
    lanesPlace.hidden = !run.modes.length || (lanesOf.length === 1 && run.modes.length === 1);
    lanes.show(lanesOf, lanesOf.map((row) => `${row.name} ${plural(row.stretches.length, "part")}`).join(", "), inksOfModes(run.modes));
    const modes = run.modes.map(([first, last, mode]) => [first, mode.toLowerCase(), first === last ? "1 step" : `to step ${count(last)}`]);
    const rows = [...modes.slice(0, 200).map(([step, mode, to]) => [step, "mode", `${mode} ${to}`]), ...changes].sort((a, b) => a[0] - b[0]).slice(0, 500);
    const open = facts.querySelector("details")?.open;
    replace(facts, rows.length ? h("details", { open }, h("summary", { text: `Facts: ${plural(rows.length, "change")}` }),
      h("div", { class: "log", tabindex: "0", role: "region", "aria-label": "Facts" }, h("table", {}, h("thead", {}, h("tr", {}, ...["step", "fact", "value"].map((text) => h("th", { scope: "col", text })))),
        h("tbody", {}, ...rows.map(([step, name, value]) => h("tr", {}, h("td", { text: count(step) }), h("td", { text: factName(name) }), h("td", { text: String(value) }))))))) : null);
  }

  function drawLog(found) {
    replace(log, found.total ? h("h2", { text: `What the rules reported (${count(found.total)})` }) : null,
      found.total ? h("div", { class: "log", tabindex: "0", role: "region", "aria-label": "Reports of the rules" }, h("table", {}, h("thead", {}, h("tr", {}, ...["step", "rule", "message"].map((text) => h("th", { scope: "col", text })))),
        h("tbody", {}, ...found.lines.slice(0, 500).map((each) => h("tr", {}, h("td", {}, button(String(each.step), () => onset({ since: each.step }), { class: "link" })), h("td", { text: each.rule }), h("td", { text: each.message })))))) : null);
  }

  let onlyDifferent = null;
  function drawRanks(found) {
    const { workers, steps, state } = found;
    if (!steps.length) return;
    const different = workers.filter((_, row) => state[row].includes(1));
    // With many workers, those that are as most others are left out.
    onlyDifferent ??= workers.length > 64 && different.length > 0;
    const first = different.length ? steps[Math.min(...state.map((row) => row.indexOf(1)).filter((at) => at >= 0))] : null;
    const rows = rowsOfWorkers(found, onlyDifferent);
    const some = different.length > 8 ? `${different.slice(0, 8).join(", ")} and ${different.length - 8} more` : different.join(", ");
    const words = different.length ? `${different.length} of ${workers.length} workers ${different.length === 1 ? "differs" : "differ"} from most others, first at step ${count(first)}: ${some}` : `All ${workers.length} workers have the same parameters at ${plural(steps.length, "compared step")}.`;
    const toggle = button("Only workers that differ", () => {
      onlyDifferent = !onlyDifferent;
      drawRanks(found);
    }, { "aria-pressed": String(onlyDifferent) });
    replace(ranks, h("h2", { text: "Copies of the model by worker" }),
      h("div", { class: "bar" }, h("span", { class: different.length ? "bad" : "quiet", text: words }), h("span", { class: "grow" }), different.length && different.length < workers.length ? toggle : null), copies.element);
    copies.show(rows, words, WORKER_STATES);
  }

  async function refresh() {
    run = await get(`run/${id}`);
    describe();
    diagnose();
    if (run.first_step !== null) time.extend(Math.min(0, run.first_step), run.last_step);
    await Promise.all([drawSeries(), drawHeat()]);
    time.tell();
    drawRest();
    document.documentElement.dataset.ready = run.steps && run.steps_checked >= run.steps ? "yes" : "part";
  }

  return {
    refresh: oneAtATime(refresh, {
      isClosed: () => closed,
      // While a long run is read, most of the time is left for reading, also on a slow machine.
      pauseAfter: (duration) => (run && run.steps_read < run.steps ? Math.min(5000, Math.max(600, 4 * duration)) : 0),
    }),
    key(key) {
      const cards = [...diagnosis.querySelectorAll(".issue")];
      if (key === "j" || key === "k") {
        at = Math.max(0, Math.min(cards.length - 1, at + (key === "j" ? 1 : -1)));
        cards[at]?.focus();
      } else if (key === "Enter" && run?.issues[at] && document.activeElement === cards[at]) onset(run.issues[at]);
      else return time.key(key);
      return true;
    },
    redraw() {
      charts.forEach((chart) => chart.rebuild());
      heat.draw();
      lanes.draw();
      copies.draw();
      panel.redraw();
    },
    close() {
      closed = true;
      document.removeEventListener("show-steps", showSteps);
      delete document.documentElement.dataset.ready;
      charts.forEach((chart) => chart.close());
      heat.close();
      lanes.close();
      copies.close();
      panel.close();
      document.title = "smdebug";
    },
    heat,
    time,
  };
}
