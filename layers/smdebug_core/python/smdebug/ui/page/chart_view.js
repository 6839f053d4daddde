// What was chosen of the charts of a screen, as its address keeps it: logarithmic scales and hidden runs.

import { AXIS_NAMES } from "./axis.js";

const textsIn = (text) => (text ? text.split("|") : []);

export class ChartView {
  constructor(values, remember) {
    this.log = new Set(textsIn(values.get("log")));
    this.smooth = Math.min(0.99, Math.max(0, Number(values.get("smooth")) || 0));
    /** @type {import("./axis.js").AxisName} */
    this.axis = AXIS_NAMES.find((name) => name === values.get("axis")) ?? "steps";
    this.means = values.get("means") === "1";
    this.hidden = new Set(textsIn(values.get("hidden")).map(Number));
    this.remember = remember;
    this.listeners = new Set();
  }

  setLog(name, yes) {
    if (yes) this.log.add(name);
    else this.log.delete(name);
    this.remember({ log: [...this.log].join("|") });
  }

  // Smooth every curve: 0 is not at all.
  setSmooth(weight) {
    this.smooth = weight;
    this.remember({ smooth: weight || "" });
    this.listeners.forEach((listener) => listener());
  }

  // Draw the curves over every step of the run, as the layers are, or over something else.
  setAxis(name) {
    this.axis = name;
    this.remember({ axis: name === "steps" ? "" : name });
    this.listeners.forEach((listener) => listener());
  }

  // Draw the mean of each epoch, with the values behind it.
  setMeans(yes) {
    this.means = yes;
    this.remember({ means: yes ? "1" : "" });
    this.listeners.forEach((listener) => listener());
  }

  // Show or hide the run at a place in every chart.
  toggle(place) {
    if (!this.hidden.delete(place)) this.hidden.add(place);
    this.remember({ hidden: [...this.hidden].sort((a, b) => a - b).join("|") });
    this.listeners.forEach((listener) => listener());
  }
}
