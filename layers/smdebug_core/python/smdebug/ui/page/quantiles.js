// The quantiles of a tensor as curves. Where several steps share a place, the outermost ones.

import { statisticName } from "./format.js";

/** @typedef {import("./types/answers.js").HistoryAnswer} HistoryAnswer */

const QUANTILES = ["p01", "p25", "p50", "p75", "p99"];

/** @param {HistoryAnswer} history */
export function quantilesOf({ low, high }) {
  return QUANTILES.map((name, at) => ({
    name: statisticName(name),
    values: (at < 2 ? low : high)[name],
    ink: at === 2 ? "curve" : "curve6",
  }));
}
