// One run: first what is wrong, then every step of it under one time line. Each section is a module of its own.

import { get, report as held } from "./api.js";
import { notes, reportOf, rules, stop, zoomIn } from "./actions.js";
import { About } from "./about.js";
import { ChartView } from "./chart_view.js";
import { ComparedRuns } from "./compared_runs.js";
import { Curves } from "./curves.js";
import { Diagnosis } from "./diagnosis.js";
import { button, debounced, h, replace } from "./dom.js";
import { FactsTable, RuleLog } from "./facts_and_log.js";
import { HeatSection } from "./heat_section.js";
import { Logged } from "./logged.js";
import { NamedTensors } from "./named_tensors.js";
import { oneAtATime } from "./refreshing.js";
import { Replicas } from "./replicas.js";
import { RunHead } from "./run_head.js";
import { timeLineOf } from "./timeline.js";

/** @typedef {import("./types/answers.js").RunAnswer} RunAnswer */

/**
 * What the sections of a run share.
 * @typedef {object} Shared
 * @property {string} id of the run
 * @property {string} other id of the run that it is compared with, or ""
 * @property {import("./timeline.js").TimeLine} time
 * @property {ChartView} view
 * @property {URLSearchParams} values what the address has chosen
 * @property {(error: Error | null) => void} report
 * @property {(values: Record<string, any>) => void} remember
 * @property {(step: number) => void} showStep zoom in on a step
 */

/**
 * @param {import("./types/screens.js").Frame} frame
 * @param {string} id
 * @returns {import("./types/screens.js").Screen}
 */
export function runScreen({ main, crumbs, report, address, remember, list }, id) {
  const { values } = address();
  const time = timeLineOf(values, remember);
  const other = values.get("with") || "";
  /** @type {RunAnswer | null} */
  let run = null;
  let closed = false;
  /** @type {Shared} */
  const shared = { id, other, time, view: new ChartView(values, remember), values, report, remember, showStep };
  const head = new RunHead();
  const diagnosis = new Diagnosis(shared);
  const compared = other ? new ComparedRuns(shared) : null;
  const curves = new Curves(shared);
  const heat = new HeatSection(shared);
  const named = new NamedTensors(shared);
  const logged = new Logged(shared);
  const replicas = new Replicas(shared);
  const about = new About(shared);
  const facts = new FactsTable();
  const log = new RuleLog(shared);
  const drawn = [diagnosis, compared, curves, logged, heat, named, replicas, about].filter(Boolean);
  const actions = held ? [] : actionsOf();

  replace(crumbs, ...crumbsOf(id, list, head.crumb));
  replace(
    main,
    h("div", { class: "bar" }, head.title, h("span", { class: "grow" }), ...actions),
    head.element,
    diagnosis.element,
    compared?.element,
    curves.element,
    logged.element,
    named.element,
    heat.element,
    replicas.element,
    curves.machine,
    about.element,
    facts.element,
    log.element,
  );

  function actionsOf() {
    const name = () => run?.name || id;
    return [
      button("Tags and note …", () => notes(id, name()).catch(report)),
      button("Rules …", () => rules(id).catch(report)),
      button("Zoom in …", () => zoomIn(id, heat.tensor), { "data-of": "training" }),
      button("Stop …", () => stop(id, name()), { class: "danger", "data-of": "training" }),
      button("Report", () => reportOf(id, name()).catch(report)),
    ];
  }

  /** @param {number} step */
  function showStep(step) {
    const width = Math.max(20, (time.last - time.first) / 20);
    time.show(step - width, step + width);
    curves.element.scrollIntoView({ block: "center" });
  }

  // For scripts around the page: `document.dispatchEvent(new CustomEvent("show-steps", {detail: [from, to]}))`.
  const showSteps = (event) => time.show(event.detail[0], event.detail[1]);
  document.addEventListener("show-steps", showSteps);

  const drawRest = debounced(held ? 0 : 400, async () => {
    try {
      const [changes, lines] = await Promise.all([get(`run/${id}/facts`), get(`run/${id}/log`)]);
      if (closed) return;
      curves.showLanes(run, changes.changes);
      facts.show(run, changes.changes);
      log.show(lines);
      await Promise.all([replicas.show(run), named.show(run), logged.show(run), about.show(run), compared?.show()]);
      document.documentElement.dataset.rest = "yes";
    } catch (error) {
      if (!closed) report(error);
    }
  });

  async function refresh() {
    run = await get(`run/${id}`);
    head.show(run);
    const isOver = ["ended", "failed", "gone"].includes(run.state);
    actions.forEach((each) => (each.disabled = isOver && each.dataset.of === "training"));
    diagnosis.show(run);
    time.onsets = run.issues.map((issue) => ({ step: issue.since }));
    if (run.first_step !== null) time.extend(Math.min(0, run.first_step), run.last_step);
    await Promise.all([curves.show(run), heat.show(run)]);
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
    key: (key) => diagnosis.key(key) || time.key(key),
    redraw: () => drawn.forEach((section) => section.redraw()),
    close() {
      closed = true;
      document.removeEventListener("show-steps", showSteps);
      delete document.documentElement.dataset.ready;
      delete document.documentElement.dataset.rest;
      drawn.forEach((section) => section.close());
      document.title = "smdebug";
    },
  };
}

/**
 * The way to the list; in a report, to the runs that it has.
 * @param {string} id
 * @param {string} list
 * @param {HTMLElement} name
 */
function crumbsOf(id, list, name) {
  if (!held) return [h("a", { href: list, text: "Runs" }), " / ", name];
  if (!held.other) return [name];
  const isFirst = id === held.run;
  const there = isFirst ? `#/run/${held.other}` : "#/";
  const text = held.answers[`run/${isFirst ? held.other : held.run}`].name;
  return [
    name,
    " · ",
    h("a", { href: there, text }),
    " · ",
    h("a", { href: `#/compare/${held.run},${held.other}`, text: "compare" }),
  ];
}
