// Which runs the list shows, and in which order; what distinguishes them.

import { matcher } from "./run_search.js";
import { stepOf, valueOf } from "./run_values.js";

/** @typedef {import("./types/answers.js").RowAnswer} Run */
/** @typedef {{search: string, state: string, sort: string, down: boolean, group: string, tag: string}} Choice */
/** @typedef {{group: string, members: Run[]}} Group */

/** @type {Record<string, (run: Run) => any>} */
const SORTS = {
  name: (run) => run.name.toLowerCase(),
  state: (run) => run.state,
  last_step: (run) => stepOf(run) ?? -1,
  loss: (run) => run.loss ?? Infinity,
  issues: (run) => -(run.issues ?? -1),
  saved: (run) => -(run.last_saved ?? 0),
  duration: (run) => run.duration ?? -1,
  cost: (run) => run.cost ?? -1,
};
const NOT_PARAMETERS = new Set(["tags", "note", "commit", "pinned"]);
export const BY_TAG = "#tag";
export const BY_NAME = "#name";
const TOTALS = ["max_steps", "total_steps", "num_train_steps", "num_steps", "steps"];

/** @param {Run} run */
export const tagsOf = (run) =>
  String(run.configuration.tags || "")
    .split(", ")
    .filter(Boolean);

/** @param {Run} run */
export const isPinned = (run) => run.configuration.pinned === true;

/**
 * The groups that a run is in: one for each of its tags, or else that of its value.
 * @param {Run} run
 * @param {string} by
 */
function groupsOf(run, by) {
  if (by === BY_TAG) return tagsOf(run).length ? tagsOf(run) : ["–"];
  if (by === BY_NAME) return [run.name.replace(/[-_]\d+$/, "")];
  return [String(valueOf(run, by) ?? "–")];
}

// How far a training is, where its configuration says how long it will take.
export function shareOf(run) {
  const total = TOTALS.map((name) => run.configuration[name]).find((value) => typeof value === "number" && value > 0);
  const step = stepOf(run);
  return total && step !== null ? Math.min(1, (step + 1) / total) : null;
}

// Numbers by size, before texts by letters; what is missing comes last.
function byValue(name) {
  return (run) => {
    const value = valueOf(run, name);
    return typeof value === "number"
      ? [0, value]
      : value === undefined || value === null
        ? [2, ""]
        : [1, String(value)];
  };
}

function compared(a, b) {
  const [left, right] = Array.isArray(a)
    ? [a, b]
    : [
        [0, a],
        [0, b],
      ];
  return left[0] - right[0] || (left[1] < right[1] ? -1 : left[1] > right[1] ? 1 : 0);
}

/**
 * The runs that match, in their order, pinned ones first; with a group, each value of it before its runs.
 * @param {Run[]} runs
 * @param {Choice} chosen
 * @returns {(Run | Group)[]}
 */
export function arranged(runs, chosen) {
  const matches = matcher(chosen.search);
  const rows = runs.filter((run) => {
    if (chosen.state === "with problems" ? !run.issues : chosen.state !== "all" && run.state !== chosen.state)
      return false;
    if (chosen.tag && !tagsOf(run).includes(chosen.tag)) return false;
    return matches(run);
  });
  const key = chosen.sort.startsWith("=") ? byValue(chosen.sort.slice(1)) : SORTS[chosen.sort] || SORTS.saved;
  const order = (a, b) => compared(key(a), key(b)) || (a.name < b.name ? -1 : 1);
  const pinnedFirst = (a, b) => Number(isPinned(b)) - Number(isPinned(a));
  rows.sort((a, b) => pinnedFirst(a, b) || (chosen.down ? -order(a, b) : order(a, b)));
  if (!chosen.group) return rows;
  /** @type {Map<string, Run[]>} */
  const by = new Map();
  for (const run of rows) {
    for (const value of groupsOf(run, chosen.group)) by.set(value, [...(by.get(value) || []), run]);
  }
  return [...by]
    .sort(([a], [b]) => a.localeCompare(b, undefined, { numeric: true }))
    .flatMap(([group, members]) => [{ group, members }, ...members]);
}

/** @param {Run[]} runs */
export const parameterNames = (runs) => [
  ...new Set(runs.flatMap((run) => [...Object.keys(run.configuration), ...Object.keys(run.metrics)])),
];

/**
 * The parameters, those first in which most runs have another value than most: one that a single run changes tells
 * little.
 * @param {Run[]} runs
 * @param {string[]} names
 */
export function distinguishing(runs, names) {
  const differing = new Map(
    names.map((name) => {
      const times = new Map();
      for (const run of runs) {
        const value = String(valueOf(run, name));
        times.set(value, (times.get(value) || 0) + 1);
      }
      return [name, runs.length - Math.max(...times.values())];
    }),
  );
  return names
    .filter((name) => !NOT_PARAMETERS.has(name))
    .sort((a, b) => differing.get(b) - differing.get(a) || a.localeCompare(b));
}
