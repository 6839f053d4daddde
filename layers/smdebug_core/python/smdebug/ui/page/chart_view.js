// What was chosen of the charts of a screen, as its address keeps it: logarithmic scales and hidden runs.

const textsIn = (text) => (text ? text.split("|") : []);

export class ChartView {
  constructor(values, remember) {
    this.log = new Set(textsIn(values.get("log")));
    this.hidden = new Set(textsIn(values.get("hidden")).map(Number));
    this.remember = remember;
    this.listeners = new Set();
  }

  setLog(name, yes) {
    if (yes) this.log.add(name);
    else this.log.delete(name);
    this.remember({ log: [...this.log].join("|") });
  }

  // Show or hide the run at a place in every chart.
  toggle(place) {
    if (!this.hidden.delete(place)) this.hidden.add(place);
    this.remember({ hidden: [...this.hidden].sort((a, b) => a - b).join("|") });
    this.listeners.forEach((listener) => listener());
  }
}
