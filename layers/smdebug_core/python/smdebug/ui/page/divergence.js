// Where a run diverges from the one that it is compared with, in words.

import { count, number } from "./format.js";

/** @param {import("./types/answers.js").ComparedRun} run */
export function divergenceOf(run) {
  if (run.error) return run.error;
  if (!run.ready) return "being read …";
  if (!run.divergence) return "no difference in the statistics of common steps";
  const { step, kind, tensor, rms } = run.divergence;
  return `step ${count(step)}: ${kind} of ${tensor} (rms ${number(rms[0])} and ${number(rms[1])})`;
}
