// The slider that smooths the curves of a screen, with the raw line behind each.

import { h } from "./dom.js";

/** @param {import("./chart_view.js").ChartView} view */
export function smoothingOf(view) {
  const weight = h("input", { type: "range", min: "0", max: "0.99", step: "0.01", "aria-label": "Smoothing" });
  weight.value = String(view.smooth);
  weight.addEventListener("input", () => view.setSmooth(Number(weight.value)));
  return h("label", { class: "smoothing" }, "Smoothing ", weight);
}
