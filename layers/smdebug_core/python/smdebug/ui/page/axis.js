// What curves are drawn over: the steps of the run, its training steps, its epochs, or time.

import { count } from "./format.js";

/** @typedef {[number, number][]} Knots places on one axis with those on another, in order */
/** @typedef {"steps" | "training" | "epochs" | "time"} AxisName */
/** @typedef {{training_steps: Knots, epochs: Knots, no_epochs: string, times: Knots}} HasAxes a run */

/** @type {[AxisName, string][]} */
const AXES = [
  ["steps", "Every step"],
  ["training", "Training steps"],
  ["epochs", "Epochs"],
  ["time", "Time"],
];

export const AXIS_NAMES = AXES.map(([name]) => name);

/** @type {HasAxes} */
export const NO_AXES = { training_steps: [], epochs: [], no_epochs: "", times: [] };

/**
 * The axes, each with its label; one that none of the runs has is not offered, and its label says why.
 * @param {HasAxes[]} runs
 * @returns {{name: AxisName, label: string, isOffered: boolean}[]}
 */
export function axesOf(runs) {
  const reasons = {
    steps: "",
    training: runs.some((run) => run.training_steps.length) ? "" : "the same",
    epochs: runs.some((run) => run.epochs.length) ? "" : (runs[0]?.no_epochs ?? ""),
    time: runs.some((run) => run.times.length) ? "" : "not recorded",
  };
  return AXES.map(([name, label]) => ({
    name,
    label: reasons[name] ? `${label} (${reasons[name]})` : label,
    isOffered: !reasons[name],
  }));
}

/**
 * The place on the second axis of a place on the first. Between two knots it is on the straight line.
 * @param {Knots} knots
 * @param {number} value
 */
export function across(knots, value) {
  return between(knots, value, 0, 1);
}

/**
 * The place on the first axis of a place on the second.
 * @param {Knots} knots
 * @param {number} value
 */
export function back(knots, value) {
  return between(knots, value, 1, 0);
}

function between(knots, value, from, to) {
  if (!knots.length) return value;
  if (value <= knots[0][from]) return knots[0][to] - (knots[0][from] - value) * (from ? 1 : 0);
  const end = knots.at(-1);
  let [low, high] = [0, knots.length]; // the first knot that is after the value is searched
  while (low < high) {
    const middle = (low + high) >> 1;
    if (knots[middle][from] > value) high = middle;
    else low = middle + 1;
  }
  if (low === knots.length) return end[to] + (from ? value - end[from] : 0);
  const [a, b] = [knots[low - 1], knots[low]];
  return a[to] + ((value - a[from]) / (b[from] - a[from])) * (b[to] - a[to]);
}

/** The axis of one run. */
export class Axis {
  /**
   * @param {HasAxes} run
   * @param {AxisName} name
   */
  constructor(run, name) {
    this.name = name;
    this.run = run;
  }

  // Whether the run has no places on it.
  get isMissing() {
    return (this.name === "epochs" && !this.run.epochs.length) || (this.name === "time" && !this.run.times.length);
  }

  // Where a step of the run is.
  at(step) {
    if (this.name === "training") return across(this.run.training_steps, step);
    if (this.name === "epochs") return across(this.run.epochs, across(this.run.training_steps, step));
    return this.name === "time" ? across(this.run.times, step) : step;
  }

  // Where the axis ends, if that is the last step: an evaluation after it is there.
  end(step) {
    return this.name === "epochs" ? this.run.epochs.at(-1)[1] : this.at(step);
  }

  // Which step of the run is there.
  stepAt(place) {
    if (this.name === "training") return back(this.run.training_steps, place);
    if (this.name === "epochs") return back(this.run.training_steps, back(this.run.epochs, place));
    return this.name === "time" ? back(this.run.times, place) : place;
  }

  // Where an epoch ends, from 1 on; the last one so far, where the training is.
  endOfEpoch(epoch) {
    const end = Math.min(epoch, this.run.epochs.at(-1)[1]);
    if (this.name === "epochs") return end;
    const trained = back(this.run.epochs, end);
    return this.name === "training" ? trained : this.at(back(this.run.training_steps, trained));
  }

  /**
   * Where the parts of a curve are. An evaluation comes after its training step.
   * @param {{first: number[], training_steps: number[] | null}} curve
   * @param {boolean} isEvaluation
   */
  placesOf({ first, training_steps: trained }, isEvaluation) {
    if (this.name === "training" && trained) return trained;
    if (this.name !== "epochs" || !trained) return first.map((step) => this.at(step));
    return trained.map((step) => across(this.run.epochs, step + (isEvaluation ? 1 : 0)));
  }
}

const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
const DAYS = [2, 5, 10, 20, 50, 100].map((days) => 86400 * days);
const SMALL = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
const WHOLE = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((each) => each * 10 ** power)).flat();

/**
 * The distances that the marks of an axis may have.
 * @param {AxisName} name
 */
export function distancesOf(name) {
  if (name === "time") return [...SMALL, ...SECONDS, ...DAYS];
  return name === "epochs" ? [...SMALL, ...WHOLE] : WHOLE;
}

/**
 * Round places on an axis between two, at most so many.
 * @param {AxisName} name
 * @param {number} from
 * @param {number} to
 * @param {number} most
 */
export function placesBetween(name, from, to, most) {
  const distance = distancesOf(name).find((each) => each >= (to - from) / Math.max(1, most)) ?? to - from;
  const first = Math.ceil(from / distance - 1e-9);
  const number = Math.floor(to / distance + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, number) }, (_, at) => Number(((first + at) * distance).toPrecision(12)));
}

/**
 * A place on an axis, as its mark says it: `1:30:00` of time.
 * @param {AxisName} name
 * @param {number} place
 */
export function markOf(name, place) {
  if (name !== "time") return count(Number(place.toPrecision(6)));
  if (place < 60) return `${Number(place.toPrecision(3))} s`;
  const two = (value) => String(value).padStart(2, "0");
  const [hours, minutes, seconds] = [Math.floor(place / 3600), Math.floor(place / 60) % 60, place % 60];
  return hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

/**
 * A place on an axis in a sentence: `step 12`, `epoch 2.41`, `1:30:05`.
 * @param {AxisName} name
 * @param {number} place
 */
export function placeInWords(name, place) {
  if (name === "time") return `after ${markOf("time", place < 10 ? Number(place.toPrecision(2)) : Math.round(place))}`;
  if (name === "epochs") return `epoch ${place.toFixed(2)}`;
  return `step ${count(Math.floor(place))}`;
}
