// The axis that the curves of a chart share. Each run has its own places on it.

import { Axis, NO_AXES, axesOf } from "./axis.js";

/** @typedef {import("./axis.js").AxisName} AxisName */

export class SharedAxis {
  /**
   * @param {{run: string}[]} sources the curves
   * @param {(run: string) => import("./axis.js").HasAxes} runOf the run of an id
   * @param {import("./chart_view.js").ChartView} view
   * @param {import("./timeline.js").TimeLine} time
   */
  constructor(sources, runOf, view, time) {
    this.sources = sources;
    this.runOf = runOf;
    this.view = view;
    this.time = time;
  }

  get isOfOneRun() {
    return this.sources.every(({ run }) => run === this.sources[0].run);
  }

  /** What is chosen, if a run has it. @returns {AxisName} */
  get name() {
    const runs = [...new Set(this.sources.map(({ run }) => run))].map(this.runOf);
    return axesOf(runs).find(({ name }) => name === this.view.axis)?.isOffered ? this.view.axis : "steps";
  }

  // The axis of the run of a curve.
  of(at) {
    return new Axis(this.runOf(this.sources[at].run), this.name);
  }

  // The one that steps of the screen are on: of several runs, that of the one that goes on longest.
  get main() {
    const known = this.sources.map((_, at) => this.of(at)).filter((axis) => !axis.isMissing);
    const ends = known.map((axis) => axis.at(this.time.last));
    return known[ends.indexOf(Math.max(...ends))] ?? new Axis(NO_AXES, "steps");
  }

  // Where a step of the screen is.
  at(step) {
    return this.main.at(step);
  }

  // Which step of the screen is there.
  stepAt(place) {
    return this.main.stepAt(place);
  }

  // Which step of the run of a curve is where a step of the screen is.
  stepOf(at, step) {
    return step === null || this.isOfOneRun ? step : this.of(at).stepAt(this.at(step));
  }

  // The places between which a chart is drawn.
  get window() {
    const axis = this.main;
    const [first, last] = this.time.window;
    const [from, to] = [axis.at(first), last >= this.time.last ? axis.end(last) : axis.at(last)];
    return [from, Math.max(to, from + (axis.name === "time" || axis.name === "epochs" ? 1e-3 : 1))];
  }
}
