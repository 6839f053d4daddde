// One tensor: its history, the distribution of its values, the values per worker, and a part of them.

import { get, report as held } from "./api.js";
import { button, color, csvOf, download, h, replace, select, sized } from "./dom.js";
import { count, number, plural, statisticName } from "./format.js";
import { quantilesOf } from "./quantiles.js";
import { plainChart } from "./value_chart.js";

const ZOOM = " “Zoom in” makes the training save them for its next steps.";
const TABLE = ["rms", "mean", "std", "min", "max", "zeros", "non_finite", "count"];

export class TensorPanel {
  /**
   * @param {string} run
   * @param {import("./timeline.js").TimeLine} time
   * @param {object} options
   * @param {(error: Error) => void} options.report
   * @param {(values: Record<string, any>) => void} options.remember keeps in the address what is shown
   * @param {(kind: string, name: string) => void} options.closed gets the focus back
   * @param {string} [options.statistic]
   */
  constructor(run, time, { report, remember, closed, statistic = "rms" }) {
    this.run = run;
    this.time = time;
    this.report = report;
    this.remember = remember;
    this.closed = closed;
    this.statistic = statistic;
    this.kind = "";
    /** @type {number | undefined} */
    this.step = undefined;
    this.charts = [];
    this.name = "";
    this.asked = 0;
    this.here = h("div");
    this.element = h("section", {
      "aria-label": "Tensor",
      tabindex: "-1",
      hidden: true,
      onkeydown: (event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        this.leave();
      },
    });
  }

  get isOpen() {
    return Boolean(this.name);
  }

  /**
   * Show a tensor at a step; without one, at the last that has it.
   * @param {string} kind
   * @param {string} name
   * @param {number} [step]
   */
  async show(kind, name, step) {
    [this.kind, this.name, this.step] = [kind, name, step];
    const mine = ++this.asked;
    const [history, here] = await Promise.all([
      get(`run/${this.run}/tensor`, { kind, name }),
      get(`run/${this.run}/at`, { kind, name, step: step === undefined ? undefined : Math.max(0, Math.round(step)) }),
    ]);
    if (mine !== this.asked) return; // another tensor or step was chosen since, or none
    this.remember({ of: kind, tensor: name, step: step ?? "" });
    const isDrawn = this.charts.length && this.history.kind === history.kind && this.history.name === history.name;
    if (isDrawn) this.update(history, here);
    else this.build(history, here);
  }

  refresh() {
    return this.isOpen ? this.show(this.kind, this.name, this.step) : Promise.resolve();
  }

  // In the other colours.
  redraw() {
    if (!this.charts.length) return;
    this.draw();
    this.described = null;
    this.refresh().catch(this.report);
  }

  close() {
    this.charts.forEach((chart) => chart.close());
    this.charts = [];
  }

  leave() {
    const { kind, name } = this;
    this.close();
    this.name = "";
    this.asked += 1;
    this.element.hidden = true;
    replace(this.element);
    this.remember({ of: "", tensor: "", step: "", of_tensor: "" });
    this.closed(kind, name);
  }

  build(history, here) {
    this.close();
    this.history = history;
    this.spread = h("div", { class: "chart" });
    this.value = h("div", { class: "chart" });
    const statistics = Object.keys(history.high);
    if (!statistics.includes(this.statistic)) this.statistic = "rms";
    const chosen = select(
      "Statistic",
      statistics.map((name) => [name, statisticName(name)]),
      this.statistic,
      (statistic) => {
        this.statistic = statistic;
        this.remember({ of_tensor: statistic });
        this.draw();
      },
    );
    this.field = h("input", {
      type: "number",
      min: 0,
      value: here.step,
      onchange: () => this.show(this.kind, this.name, Number(this.field.value)).catch(this.report),
    });
    replace(
      this.element,
      h(
        "div",
        { class: "bar" },
        h("h3", { text: `${history.kind}: ${history.name}` }),
        h("span", { class: "grow" }),
        button("Save as CSV", () => this.table()),
        button("Close", () => this.leave(), { title: "Close (Esc)" }),
      ),
      h("div", { class: "bar" }, chosen, h("label", { class: "choice" }, h("span", { text: "At step" }), this.field)),
      h("div", { class: "charts" }, this.spread, this.value),
      this.here,
    );
    this.element.hidden = false;
    this.draw();
    this.describe(here);
  }

  // New steps of a run that trains: the curves grow, and nothing else on the page moves.
  update(history, here) {
    const isSame = history.exact === this.history.exact;
    this.history = history;
    if (isSame)
      this.charts.forEach((chart, at) =>
        chart.show(
          history.first,
          this.curves()[at].map((curve) => curve.values),
        ),
      );
    else this.draw();
    if (document.activeElement !== this.field) this.field.value = here.step;
    this.describe(here);
  }

  curves() {
    const { low, high, exact } = this.history;
    const { statistic } = this;
    return [
      quantilesOf(this.history),
      exact
        ? [{ name: statisticName(statistic), values: high[statistic], ink: "curve" }]
        : [
            { name: "largest", values: high[statistic], ink: "curve" },
            { name: "smallest", values: low[statistic], ink: "curve2" },
          ],
    ];
  }

  draw() {
    this.close();
    const { first, exact } = this.history;
    const [quantiles, extremes] = this.curves();
    // Red where values were not finite.
    const missing = () =>
      this.history.first.flatMap((step, at) =>
        this.history.high.non_finite[at] > 0 ? [[step, this.history.last[at]]] : [],
      );
    this.charts.push(
      plainChart(replace(this.spread), "Distribution of the values over steps", first, quantiles, this.time, {
        bands: [
          [5, 1],
          [4, 2],
        ],
        missing,
      }),
      plainChart(replace(this.value), `History: ${statisticName(this.statistic)}`, first, extremes, this.time, {
        bands: exact ? [] : [[1, 2]],
        missing,
      }),
    );
  }

  describe(here) {
    const key = JSON.stringify(here);
    if (key === this.described && this.here.childElementCount) return;
    this.described = key;
    replace(this.here, this.workers(here), h("div", { class: "charts" }, this.histogram(here), this.values(here)));
  }

  // Every statistic of the tensor at every step that is shown.
  table() {
    const { first, last, low, high, exact, name } = this.history;
    const columns = Object.keys(high);
    const head = exact
      ? ["step", ...columns]
      : ["first step", "last step", ...columns.flatMap((column) => [`smallest ${column}`, `largest ${column}`])];
    const rows = first.map((step, at) =>
      exact
        ? [step, ...columns.map((column) => high[column][at])]
        : [step, last[at], ...columns.flatMap((column) => [low[column][at], high[column][at]])],
    );
    download(`${name}.csv`.replace(/[^\w.-]+/g, "-"), csvOf([head, ...rows]), "text/csv");
  }

  workers(here) {
    const names = Object.keys(here.workers);
    if (!names.length) return h("p", { class: "quiet", text: `No statistics at step ${here.step}.` });
    return h(
      "div",
      { class: "slice", tabindex: "0", role: "region", "aria-label": "Values per worker" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col", text: `worker at step ${here.step}` }),
            ...TABLE.map((name) => h("th", { scope: "col", text: statisticName(name) })),
          ),
        ),
        h(
          "tbody",
          {},
          ...names.map((worker) =>
            h(
              "tr",
              {},
              h("th", { scope: "row", text: worker }),
              ...TABLE.map((name) => h("td", { text: number(here.workers[worker][name]) })),
            ),
          ),
        ),
      ),
    );
  }

  histogram(here) {
    if (!here.sample) return null;
    const { counts, edges } = here.sample;
    const range = `${number(edges[0])} to ${number(edges.at(-1))}`;
    const canvas = h("canvas", {
      role: "img",
      "aria-label": `Histogram of ${plural(here.sample.count, "value")} from ${range}`,
    });
    const figure = h(
      "div",
      { class: "chart" },
      h(
        "header",
        {},
        h("span", {
          text: `${count(here.sample.count)} values at step ${here.step}: ${range}`,
        }),
      ),
      canvas,
    );
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
      return h("p", {
        class: "quiet",
        text: `The values themselves were not saved at step ${here.step}.${held ? "" : ZOOM}`,
      });
    }
    const { shape, dtype, rows } = here.values;
    return h(
      "div",
      { class: "chart" },
      h(
        "header",
        {},
        h("span", {
          text: `${dtype} [${shape.join(", ")}]: the first ${rows.length} × ${rows[0]?.length ?? 0} values`,
        }),
      ),
      h(
        "div",
        { class: "slice", tabindex: "0", role: "region", "aria-label": "Values" },
        h(
          "table",
          {},
          h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((value) => h("td", { text: number(value) }))))),
        ),
      ),
    );
  }
}
