// Which of the logged values a step shows, and the words below them.

import { count, plural } from "./format.js";

/** @typedef {import("./types/answers.js").LoggedAnswer} LoggedAnswer */
/** @typedef {import("./types/answers.js").LoggedValueAnswer} LoggedValueAnswer */

/**
 * What to show at a step: of each name and worker the last value until then.
 * @param {LoggedValueAnswer[]} values in the order of steps
 * @param {number} step
 */
export function shownAt(values, step) {
  /** @type {Map<string, LoggedValueAnswer>} */
  const found = new Map();
  for (const value of values) {
    const key = JSON.stringify([value.name, value.worker]);
    // A name keeps its place from step to step, also before its first value.
    if (value.step <= step || !found.has(key)) found.set(key, value);
  }
  return [...found.values()].filter((value) => value.step <= step);
}

/** @param {LoggedAnswer} found */
export function wordsOf({ left_out, omitted, problem }) {
  const words = Object.entries(left_out).map(([why, times]) => `${plural(times, "value")} not kept: ${why}.`);
  if (omitted) words.push(`This report holds the last values; ${count(omitted)} earlier ones are in the run.`);
  return [problem, ...words].filter(Boolean);
}
