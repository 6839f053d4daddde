// One tensor: its history, the distribution of its values, the values per worker, and a part of them.

import { get } from "./api.js";
import { button, color, h, replace, select, sized } from "./dom.js";
import { count, number, plural } from "./format.js";
import { plainChart } from "./charts.js";

const QUANTILES = ["p01", "p25", "p50", "p75", "p99"];
const TABLE = ["rms", "mean", "std", "min", "max", "zeros", "non_finite", "count"];

export class TensorPanel {
  constructor(run, time, report) {
    this.run = run;
    this.time = time;
    this.report = report;
    this.statistic = "rms";
    this.charts = [];
    this.element = h("div", { "aria-live": "polite" });
  }

  get isOpen() {
    return Boolean(this.name);
  }

  async show(kind, name, step) {
    Object.assign(this, { kind, name, step: step ?? this.step ?? this.time.last });
    const [history, here] = await Promise.all([
      get(`run/${this.run}/tensor`, { kind, name }),
      get(`run/${this.run}/at`, { kind, name, step: Math.max(0, Math.round(this.step)) }),
    ]);
    if (this.name !== name) return;
    this.draw(history, here);
  }

  refresh() {
    return this.isOpen ? this.show(this.kind, this.name, this.step) : Promise.resolve();
  }

  close() {
    this.charts.forEach((chart) => chart.close());
    this.charts = [];
  }

  draw(history, here) {
    this.close();
    const { first, low, high } = history;
    const spread = h("div", { class: "chart" });
    const value = h("div", { class: "chart" });
    const chosen = select("Statistic", Object.keys(high), this.statistic, (statistic) => {
      this.statistic = statistic;
      this.draw(history, here);
    });
    const step = h("input", { type: "number", min: 0, value: here.step, "aria-label": "Step", onchange: () => this.show(this.kind, this.name, Number(step.value)).catch(this.report) });
    replace(this.element,
      h("h3", { text: `${history.kind}: ${history.name}` }),
      h("div", { class: "charts" }, spread, value),
      h("div", { class: "bar" }, chosen, h("label", { class: "choice" }, h("span", { text: "At step" }), step),
        button("Close", () => { this.close(); this.name = ""; replace(this.element); })),
      this.workers(here),
      h("div", { class: "charts" }, this.histogram(here), this.values(here)));
    // Of several steps in one place, the outermost quantiles; red where values were not finite.
    const missing = () => first.flatMap((step, at) => (high.non_finite[at] > 0 ? [[step, history.last[at]]] : []));
    this.charts.push(plainChart(spread, "Distribution of the values over steps", first,
      QUANTILES.map((name, at) => ({ name, values: (at < 2 ? low : high)[name], ink: at === 2 ? "curve" : "curve6" })), this.time, { bands: [[5, 1], [4, 2]], missing }));
    const extremes = history.exact ? [{ name: this.statistic, values: high[this.statistic], ink: "curve" }]
      : [{ name: "largest", values: high[this.statistic], ink: "curve" }, { name: "smallest", values: low[this.statistic], ink: "curve2" }];
    this.charts.push(plainChart(value, this.statistic, first, extremes, this.time, { bands: history.exact ? [] : [[1, 2]], missing }));
  }

  workers(here) {
    const names = Object.keys(here.workers);
    if (!names.length) return h("p", { class: "quiet", text: `No statistics at step ${here.step}.` });
    return h("div", { class: "slice", tabindex: "0", role: "region", "aria-label": "Values per worker" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col", text: `worker at step ${here.step}` }), ...TABLE.map((name) => h("th", { scope: "col", text: name })))),
      h("tbody", {}, ...names.map((worker) => h("tr", {}, h("th", { scope: "row", text: worker }),
        ...TABLE.map((name) => h("td", { text: number(here.workers[worker][name]) })))))));
  }

  histogram(here) {
    if (!here.sample) return null;
    const { counts, edges } = here.sample;
    const canvas = h("canvas", { role: "img", "aria-label": `Histogram of ${plural(here.sample.count, "value")} from ${number(edges[0])} to ${number(edges.at(-1))}` });
    const figure = h("div", { class: "chart" },
      h("header", {}, h("span", { text: `${count(here.sample.count)} values at step ${here.step}: ${number(edges[0])} to ${number(edges.at(-1))}` })), canvas);
    requestAnimationFrame(() => {
      const width = Math.max(120, figure.clientWidth - 18);
      const context = sized(canvas, width, 120);
      const most = Math.max(...counts);
      context.fillStyle = color("curve");
      counts.forEach((each, at) => {
        const size = (each / most) * 116;
        context.fillRect((at * width) / counts.length, 120 - size, width / counts.length - 1, size);
      });
    });
    return figure;
  }

  values(here) {
    if (!here.values) {
      return h("p", { class: "quiet", text: `The values themselves were not saved at step ${here.step}. “Zoom in” has the training save them for its next steps.` });
    }
    const { shape, dtype, rows } = here.values;
    return h("div", { class: "chart" },
      h("header", {}, h("span", { text: `${dtype} [${shape.join(", ")}]: the first ${rows.length} × ${rows[0]?.length ?? 0} values` })),
      h("div", { class: "slice", tabindex: "0", role: "region", "aria-label": "Values" },
        h("table", {}, h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((value) => h("td", { text: number(value) }))))))));
  }
}
