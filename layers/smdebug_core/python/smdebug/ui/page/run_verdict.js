// The verdict of a run in the list, or how far it is.

import { h } from "./dom.js";
import { plural } from "./format.js";

/** @param {import("./types/answers.js").RowAnswer} run */
export function verdictOf(run) {
  if (run.issues) return h("span", { class: "bad", text: `✗ ${run.issue}` });
  if (run.issues === 0 && run.passed === 0)
    return h("span", {
      class: "quiet",
      title: "The run lacks the data that the rules check",
      text: "no rule could check it",
    });
  if (run.issues === 0 && run.missing)
    return h("span", { class: "warn", title: run.missing, text: "! no problem at the steps that are there" });
  if (run.issues === 0)
    return h("span", {
      class: "good",
      text:
        run.check === "checking"
          ? `✓ no problem in ${plural(run.checked, "step")}, checking …`
          : "✓ no problem detected",
    });
  if (run.state === "unknown") return h("span", { class: "quiet", text: "being read …" });
  const words = {
    checking: "checking …",
    waiting: run.steps ? "waiting to be checked" : "",
    off: "open to check",
    done: "not checked",
  };
  return h("span", { class: "quiet", text: words[run.check] ?? run.check });
}
