// What a whole run tells about itself: its size and origin, inputs in findings, how workers differ, time and cost.

import { get, report as held } from "./api.js";
import { Folded, h, replace } from "./dom.js";
import { count, percent, plural } from "./format.js";
import { table } from "./tables.js";
import { plainChart } from "./value_chart.js";

/** @typedef {import("./types/answers.js").AboutAnswer} AboutAnswer */
/** @typedef {import("./types/answers.js").InputAnswer} InputAnswer */

const SPREAD_CHARTS = 8;
const ZOOM = "While the training runs, “Zoom in” makes it save them whole.";
const FOR_WHAT = "for data and anything else that the script does there";

export class About {
  /** @param {import("./run.js").Shared} shared */
  constructor({ id, time, report }) {
    this.id = id;
    this.time = time;
    this.spread = h("div", { class: "charts" });
    this.content = h("div");
    // The server reads the whole run for it, so it does when asked; a report has it.
    this.folded = new Folded({ open: Boolean(held), opened: () => this.load().catch(report) });
    this.element = h("section", { "aria-label": "About this run" }, this.folded.element);
    /** @type {AboutAnswer | null} */
    this.found = null;
    /** @type {{close: () => void}[]} */
    this.charts = [];
  }

  /** @param {import("./types/answers.js").RunAnswer} run */
  async show(run) {
    if (!run.steps) return;
    this.folded.show("About this run: origin, inputs in findings, workers, time and cost", this.content);
    if (this.folded.open) await this.load();
  }

  async load() {
    if (held && this.found) return;
    replace(this.content, h("p", { class: "quiet", text: "Reading …" }));
    this.found = await get(`run/${this.id}/about`);
    const { found } = this;
    replace(
      this.content,
      pairs([...found.facts, ...found.origin]),
      inputs(found),
      ...this.workers(found),
      ...costs(found),
    );
    this.redraw();
  }

  /** @param {AboutAnswer} found */
  workers({ spread }) {
    if (!spread.length) return [];
    const rows = spread.map(({ name, steps, spread: values }) => {
      const most = Math.max(...values);
      return [name, percent(values.at(-1)), percent(most), count(steps[values.indexOf(most)])];
    });
    return [
      h("h3", { text: "Differences between workers" }),
      h("p", {
        class: "quiet",
        text: "The spread of a tensor’s mean magnitude over the workers, relative to their mean.",
      }),
      this.spread,
      table("Differences between workers", ["tensor", "last", "largest", "at step"], rows, {
        named: true,
        numbers: true,
      }),
    ];
  }

  redraw() {
    this.close();
    const drawn = (this.found?.spread || []).slice(0, SPREAD_CHARTS);
    const places = drawn.map(() => h("div", { class: "chart" }));
    replace(this.spread, ...places);
    this.charts = drawn.map(({ name, steps, spread }, at) =>
      plainChart(
        places[at],
        name,
        steps,
        [{ name: "spread, %", values: spread.map((share) => 100 * share), ink: "curve" }],
        this.time,
        { height: 120 },
      ),
    );
  }

  close() {
    this.charts.forEach((chart) => chart.close());
    this.charts = [];
  }
}

/** @param {string[][]} rows */
function pairs(rows) {
  const parts = rows.flatMap(([name, text]) => [h("dt", { text: name }), h("dd", { text })]);
  return h("dl", { class: "pairs-of-values" }, ...parts);
}

/** @param {AboutAnswer} found */
function inputs({ inputs: shown, unsaved_inputs: unsaved }) {
  if (!shown.length && !unsaved.length) return null;
  const text = `The values of ${unsaved.join(", ")} were measured, but not saved. ${ZOOM}`;
  return h(
    "div",
    { class: "inputs" },
    h("h3", { text: "Inputs in findings" }),
    ...shown.flatMap(inputParts),
    unsaved.length ? h("p", { class: "quiet", text }) : null,
  );
}

/** @param {InputAnswer} input */
function inputParts({ name, step, shape, rules, pictures, texts }) {
  const title = `${name}: step ${count(step)}, ${shape.join(" × ")}, ${rules.join(", ")}`;
  if (!pictures.length)
    return [
      h("h4", { text: title }),
      h("ol", { class: "texts", start: 0 }, ...texts.map((text) => h("li", {}, h("code", { text })))),
    ];
  const alt = (at) => `${name}, row ${at} of the batch at step ${step}`;
  return [
    h("h4", { text: title }),
    h("p", {
      class: "quiet",
      text: `The first ${plural(pictures.length, "row")} of the batch; the smallest value is black, the largest white.`,
    }),
    h("div", { class: "pictures" }, ...pictures.map((src, at) => h("img", { src, alt: alt(at) }))),
  ];
}

/** @param {AboutAnswer} found */
function costs({ waiting, cost, cost_basis: basis, latency }) {
  const waited = `The training waited ${percent(waiting)} of its time between steps, ${FOR_WHAT}.`;
  const rows = latency.map(({ stage, median, p99 }) => [stage, `${median.toFixed(3)} s`, `${p99.toFixed(3)} s`]);
  return [
    waiting === null && !cost && !rows.length ? null : h("h3", { text: "Time and cost" }),
    waiting === null ? null : h("p", { text: waited }),
    cost ? h("p", {}, `${cost} `, h("span", { class: "quiet", text: basis })) : null,
    rows.length
      ? table("From saving to publishing", ["from, to", "median", "p99"], rows, { named: true, numbers: true })
      : null,
  ];
}
