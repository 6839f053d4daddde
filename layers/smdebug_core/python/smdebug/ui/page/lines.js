// Training and validation as lines of their own, and smoothing.

import { count } from "./format.js";

/** @typedef {import("./types/answers.js").SeriesName} SeriesName */

const LABELS = { TRAIN: "training", EVAL: "validation", PREDICT: "prediction" };
const MODES = Object.keys(LABELS);

/**
 * The modes of a series that are drawn as lines; none if all of it is training.
 * @param {{series: SeriesName[]}} run
 * @param {string} name
 * @returns {string[]}
 */
export function linesOf(run, name) {
  const modes = run.series.find((each) => each.name === name)?.modes ?? [];
  return modes.length === 1 && modes[0] === "TRAIN" ? [] : modes;
}

/**
 * The curves of a series: a line for each mode of each run.
 * @param {{id: string, run: {name: string, series: SeriesName[]}}[]} runs
 * @param {string} name
 * @returns {import("./series_chart.js").Source[]}
 */
export function sourcesOf(runs, name) {
  const known = runs.filter(({ run }) => run.series.some((each) => each.name === name));
  return known.flatMap(({ id, run }) => {
    const at = runs.findIndex((each) => each.id === id);
    const label = (mode) => (runs.length > 1 ? `${run.name}, ${LABELS[mode]}` : LABELS[mode]);
    const place = (mode) => MODES.indexOf(mode) * runs.length + at;
    const modes = linesOf(run, name);
    /** @type {import("./series_chart.js").Source[]} */
    const alone = [{ run: id, name, label: run.name, place: at }];
    if (!modes.length) return alone;
    return modes.map((mode) => ({ run: id, name, mode, label: label(mode), place: place(mode) }));
  });
}

/**
 * The moving average of a curve with weights that halve again and again; unbiased at the beginning. Gaps stay.
 * @param {(number | null | undefined)[]} values
 * @param {number} weight of what came before, from 0 to 1
 */
export function smoothed(values, weight) {
  let [sum, share] = [0, 0];
  return values.map((value) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return value;
    sum = weight * sum + (1 - weight) * value;
    share = weight * share + (1 - weight);
    return sum / share;
  });
}

// Which stretch of a curve a step is in, or the nearest one; without a step, the last.
export function stretchAt(curve, step) {
  let at = curve.first.length - 1;
  if (step === null) return at;
  while (at > 0 && curve.first[at] > step) at--;
  return at + 1 < curve.first.length && curve.first[at + 1] - step < step - curve.last[at] ? at + 1 : at;
}

// The value of a stretch, or its smallest and its largest one.
export function wordsOfStretch(curve, at, words) {
  const [low, high] = [curve.low[at], curve.high[at]];
  if (curve.not_finite[at]) return "not finite";
  return low === high ? words(high) : `${words(low)} to ${words(high)}`;
}

/**
 * The best value of a line, with its step and its epoch.
 * @param {import("./types/answers.js").BestAnswer} best
 * @param {(value: number) => string} words
 */
export function bestInWords({ value, is_highest, step, epoch }, words) {
  const where = `step ${count(step)}${epoch ? `, epoch ${count(epoch)}` : ""}`;
  return `${is_highest ? "highest" : "lowest"} ${words(value)} at ${where}`;
}

/**
 * The means of the epochs as a curve whose parts are epochs.
 * @param {[number, number | null][]} means
 */
export function curveOfMeans(means) {
  const values = means.map(([, mean]) => mean);
  return { first: means.map(([epoch]) => epoch), low: values, high: values };
}

/**
 * The last epochs, and of each line its mean in them.
 * @param {(import("./types/answers.js").SeriesAnswer | null)[]} lines
 * @param {number} most
 * @returns {[number, (number | null)[]][]}
 */
export function lastEpochs(lines, most) {
  const known = lines.map((line) => new Map(line?.epoch_means ?? []));
  const epochs = [...new Set(known.flatMap((means) => [...means.keys()]))].sort((a, b) => a - b);
  return epochs.slice(-most).map((epoch) => [epoch, known.map((means) => means.get(epoch) ?? null)]);
}

// The steps of several curves, and of each curve the largest and the smallest value at every step.
/** @param {(curve: any) => number[]} placesOf */
export function columnsOf(curves, placesOf, log) {
  const steps = [...new Set(curves.flatMap((each) => (each ? placesOf(each) : [])))].sort((a, b) => a - b);
  const place = new Map(steps.map((step, at) => [step, at]));
  /** @type {any[][]} */
  const columns = [steps];
  for (const each of curves) {
    const low = new Array(steps.length).fill(undefined);
    const high = new Array(steps.length).fill(undefined);
    (each ? placesOf(each) : []).forEach((step, at) => {
      low[place.get(step)] = log && !(each.low[at] > 0) ? null : each.low[at];
      high[place.get(step)] = log && !(each.high[at] > 0) ? null : each.high[at];
    });
    columns.push(high, low);
  }
  return columns;
}
