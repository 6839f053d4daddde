// The losses and metrics of a run over its steps, and what the machine did; beside them modes, facts and findings.

import { get } from "./api.js";
import { AxisChoice } from "./axis_choice.js";
import { BestValues } from "./best_values.js";
import { button, h, replace, toggle } from "./dom.js";
import { count, isOfMachine, number, plural, titleOf, wordsOf } from "./format.js";
import { linesOf, sourcesOf } from "./lines.js";
import { SeriesChart } from "./series_chart.js";
import { smoothingOf } from "./smoothing.js";
import { Strip, inksOfModes, rowsOfFacts, rowsOfFindings } from "./strips.js";

/** @typedef {import("./types/answers.js").RunAnswer} RunAnswer */

const SMALL_CHARTS = 12;

/**
 * The series that is most likely the loss of the training.
 * @param {string[]} names
 */
export function lossAmong(names) {
  return names.find((name) => name.toLowerCase() === "loss") || names.find((name) => /loss/i.test(name)) || names[0];
}

export class Curves {
  /** @param {import("./run.js").Shared} shared */
  constructor({ id, other, time, view, values, report, remember }) {
    this.id = id;
    this.other = other;
    this.time = time;
    this.view = view;
    this.report = report;
    this.remember = remember;
    this.showsAll = values.get("all") === "1";
    /** @type {Map<string, SeriesChart>} */
    this.charts = new Map();
    /** @type {RunAnswer | null} */
    this.behind = null;
    /** @type {RunAnswer | null} */
    this.run = null;
    this.lossPlace = h("div", { class: "loss" });
    this.others = h("div", { class: "charts" });
    this.more = h("p");
    this.nothing = h("p", { class: "quiet", text: "This run has saved no losses or metrics so far.", hidden: true });
    this.zoomLine = h("span", { class: "quiet" });
    this.axis = new AxisChoice(view);
    this.best = new BestValues();
    this.meansButton = toggle("Epoch means", view.means, (yes) => view.setMeans(yes));
    this.smoothing = smoothingOf(view);
    this.lanes = new Strip("Modes and facts by steps", time);
    this.lanesPlace = h("div", { hidden: true }, h("h3", { text: "Modes and facts" }), this.lanes.element);
    this.machineCharts = h("div", { class: "charts" });
    this.machine = h(
      "section",
      { "aria-label": "Machine", hidden: true },
      h("h2", { text: "Machine" }),
      this.machineCharts,
    );
    this.element = h(
      "section",
      { "aria-label": "Loss and metrics" },
      h(
        "div",
        { class: "bar" },
        h("h2", { text: "Loss and metrics" }),
        h("span", { class: "grow" }),
        this.zoomLine,
        this.axis.element,
        this.meansButton,
        this.smoothing,
        button("−", () => time.zoom(2), { "aria-label": "Zoom out" }),
        button("+", () => time.zoom(0.5), { "aria-label": "Zoom in on time" }),
        button("All steps", () => time.show(time.first, time.last)),
      ),
      this.nothing,
      this.lossPlace,
      this.others,
      this.more,
      this.lanesPlace,
    );
    time.listeners.add(() => {
      const [from, to] = time.window;
      this.zoomLine.textContent = time.isWhole ? "" : `steps ${count(Math.floor(from))} to ${count(Math.ceil(to))}`;
    });
  }

  /** @param {RunAnswer} run */
  async show(run) {
    if (this.other && !this.behind) this.behind = await get(`run/${this.other}`);
    this.run = run;
    const runs = [run, ...(this.behind ? [this.behind] : [])];
    this.axis.show(runs);
    this.meansButton.hidden = !runs.some((each) => each.epochs.length);
    const names = run.series.map((each) => each.name);
    const ofMachine = names.filter(isOfMachine);
    const scalars = names.filter((name) => !isOfMachine(name));
    const loss = lossAmong(scalars);
    const tensors = new Set(run.series.filter((each) => each.is_tensor).map((each) => each.name));
    const rest = scalars.filter((name) => name !== loss && !tensors.has(name)); // a tensor of one element is no metric
    const wanted = [loss, ...(this.showsAll ? rest : rest.slice(0, SMALL_CHARTS)), ...ofMachine].filter(Boolean);
    this.machine.hidden = !ofMachine.length;
    this.nothing.hidden = Boolean(wanted.length);
    const left = this.showsAll ? 0 : rest.length - SMALL_CHARTS;
    const all = () => {
      this.showsAll = true;
      this.remember({ all: "1" });
      this.show(run).catch(this.report);
    };
    replace(this.more, left > 0 ? button(`Show ${plural(left, "more chart")}`, all) : null);
    await Promise.all(wanted.map((name) => this.chartOf(run, name, name === loss).load()));
    const chart = this.charts.get(loss);
    if (!chart) return;
    this.best.show(chart);
    if (!chart.element.contains(this.best.element)) chart.element.append(this.best.element);
  }

  /**
   * @param {RunAnswer} run
   * @param {string} name
   * @param {boolean} isLoss
   */
  chartOf(run, name, isLoss) {
    const known = this.charts.get(name);
    const key = linesOf(run, name).join(" ");
    if (known && known.key === key) return known;
    const runs = [{ id: this.id, run }, ...(this.behind ? [{ id: this.other, run: this.behind }] : [])];
    const sources = sourcesOf(runs, name);
    const chart = new SeriesChart(titleOf(name), sources, this.time, {
      height: isLoss ? 240 : 140,
      isAligned: isLoss,
      runOf: (id) => (id === this.id ? this.run : this.behind),
      isNamed: linesOf(run, name).length > 0,
      view: this.view,
      report: this.report,
      words: isOfMachine(name) ? wordsOf(name) : number,
    });
    chart.key = key;
    this.charts.set(name, chart);
    if (known) {
      known.element.replaceWith(chart.element); // its first evaluation has come
      known.close();
      return chart;
    }
    (isLoss ? this.lossPlace : isOfMachine(name) ? this.machineCharts : this.others).append(chart.element);
    return chart;
  }

  /**
   * Rows below the charts: the modes of the steps, facts that changed, and the steps with findings of each rule.
   * @param {RunAnswer} run
   * @param {any[][]} changes
   */
  showLanes(run, changes) {
    const findings = rowsOfFindings(run.rules);
    const rows = [...rowsOfFacts(run.modes, changes, run.last_step), ...findings];
    this.lanesPlace.hidden = !run.modes.length || (rows.length === 1 && run.modes.length === 1);
    const words = rows.map((row) => `${row.name} ${plural(row.stretches.length, "part")}`).join(", ");
    /** @type {[string, string][]} */
    const found = findings.length ? [["bad", "a rule has a finding"]] : [];
    this.lanes.show(rows, words, [...inksOfModes(run.modes), ...found]);
  }

  redraw() {
    this.charts.forEach((chart) => chart.changed());
    this.lanes.draw();
  }

  close() {
    this.charts.forEach((chart) => chart.close());
    this.lanes.close();
  }
}
