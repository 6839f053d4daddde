// What a run was configured with, and what it logged, by name.

/** @typedef {import("./types/answers.js").RowAnswer} Run */

/**
 * The value that a run was configured with, or else the last one that it logged under this name.
 * @param {Run} run
 * @param {string} name
 */
export const valueOf = (run, name) => run.configuration[name] ?? run.metrics[name];

// The last step as people count them: evaluations are none.
export function stepOf(run) {
  return run.training_step ?? run.last_step;
}
