// The tensors that findings name: the distribution of their values over steps.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { quantilesOf } from "./quantiles.js";
import { plainChart } from "./value_chart.js";

/** @typedef {import("./types/answers.js").HistoryAnswer} HistoryAnswer */

export class NamedTensors {
  /** @param {import("./run.js").Shared} shared */
  constructor({ id, time }) {
    this.id = id;
    this.time = time;
    this.places = h("div", { class: "charts" });
    this.element = h(
      "section",
      { "aria-label": "Tensors in findings", hidden: true },
      h("h2", { text: "Tensors in findings: distributions over steps" }),
      this.places,
    );
    /** @type {{close: () => void}[]} */
    this.charts = [];
    /** @type {HistoryAnswer[]} */
    this.histories = [];
    this.shown = "";
  }

  /** @param {import("./types/answers.js").RunAnswer} run */
  async show(run) {
    const key = JSON.stringify([run.named, run.steps_read]);
    if (key === this.shown) return;
    this.shown = key;
    this.histories = await Promise.all(run.named.map(({ kind, name }) => get(`run/${this.id}/tensor`, { kind, name })));
    this.redraw();
  }

  redraw() {
    this.close();
    this.element.hidden = !this.histories.length;
    const places = this.histories.map(() => h("div", { class: "chart" }));
    replace(this.places, ...places);
    this.charts = this.histories.map((history, at) => {
      const { first, last, high, kind, name } = history;
      const missing = () => first.flatMap((step, place) => (high.non_finite[place] > 0 ? [[step, last[place]]] : []));
      const options = {
        height: 150,
        bands: [
          [5, 1],
          [4, 2],
        ],
        missing,
      };
      return plainChart(places[at], `${kind}: ${name}`, first, quantilesOf(history), this.time, options);
    });
  }

  close() {
    this.charts.forEach((chart) => chart.close());
    this.charts = [];
  }
}
