// The choice of what the curves are drawn over.

import { axesOf } from "./axis.js";
import { h, replace } from "./dom.js";

export class AxisChoice {
  /** @param {import("./chart_view.js").ChartView} view */
  constructor(view) {
    this.view = view;
    this.input = h("select", { "aria-label": "Axis", onchange: () => view.setAxis(this.input.value) });
    this.element = h("label", { class: "choice" }, h("span", { text: "Axis" }), this.input);
    this.offered = "";
  }

  /** @param {import("./axis.js").HasAxes[]} runs */
  show(runs) {
    const axes = axesOf(runs);
    const offered = axes.map(({ label }) => label).join();
    if (offered === this.offered) return; // a list that is open stays open
    this.offered = offered;
    const chosen = axes.find(({ name, isOffered }) => name === this.view.axis && isOffered)?.name ?? "steps";
    replace(
      this.input,
      axes.map(({ name, label, isOffered }) =>
        h("option", { value: name, text: label, selected: name === chosen, disabled: !isOffered }),
      ),
    );
  }
}
