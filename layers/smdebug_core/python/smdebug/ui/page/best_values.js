// Beside the curves of the loss: the best value of each line, and the means of the last epochs.

import { h, replace } from "./dom.js";
import { count } from "./format.js";
import { lastEpochs } from "./lines.js";

const MOST_EPOCHS = 5; // as many as there is room for

export class BestValues {
  constructor() {
    this.element = h("div", { class: "beside", hidden: true });
  }

  /** @param {import("./series_chart.js").SeriesChart} chart that was loaded */
  show(chart) {
    const { words } = chart;
    const lines = chart.found.slice(0, 2);
    const label = (at) => chart.sources[at].label || "";
    const best = lines.flatMap((line, at) => {
      if (!line?.best) return [];
      const { value, is_highest, step, epoch } = line.best;
      return [
        h("dt", { text: chart.legend ? `${label(at)} ` : "" }),
        h(
          "dd",
          {},
          h("span", { text: `${is_highest ? "highest" : "lowest"} ` }),
          h("b", { text: words(value) }),
          h("span", { class: "where", text: `step ${count(step)}${epoch ? `, epoch ${count(epoch)}` : ""}` }),
        ),
      ];
    });
    const epochs = lastEpochs(lines, MOST_EPOCHS);
    const head = ["epoch", ...lines.map((_, at) => (chart.legend ? label(at) : "mean"))];
    this.element.hidden = !best.length && !epochs.length;
    replace(
      this.element,
      best.length ? h("dl", {}, best) : null,
      epochs.length
        ? h(
            "table",
            {},
            h("caption", { text: "Means of the epochs" }),
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                head.map((text) => h("th", { scope: "col", text })),
              ),
            ),
            h(
              "tbody",
              {},
              epochs.map(([epoch, means]) =>
                h(
                  "tr",
                  {},
                  h("th", { scope: "row", text: count(epoch) }),
                  means.map((mean) => h("td", { text: mean === null ? "–" : words(mean) })),
                ),
              ),
            ),
          )
        : null,
    );
  }
}
