// What was true of the steps of a run, and what the rules reported at them, as tables.

import { Folded, button, h, replace } from "./dom.js";
import { count, factName, plural } from "./format.js";
import { table } from "./tables.js";

/** @typedef {import("./types/answers.js").RunAnswer} RunAnswer */
/** @typedef {import("./types/answers.js").LogAnswer} LogAnswer */

const MOST_ROWS = 500;
const MOST_MODES = 200;

export class FactsTable {
  constructor() {
    this.folded = new Folded();
    this.element = h("section", { "aria-label": "What was true of the steps" }, this.folded.element);
  }

  /**
   * @param {RunAnswer} run
   * @param {any[][]} changes step, name and value of each change
   */
  show(run, changes) {
    const modes = run.modes.slice(0, MOST_MODES).map(([first, last, mode]) => {
      const until = first === last ? "1 step" : `to step ${count(last)}`;
      return [first, "mode", `${mode.toLowerCase()} ${until}`];
    });
    const rows = [...modes, ...changes].sort((a, b) => a[0] - b[0]).slice(0, MOST_ROWS);
    const cells = rows.map(([step, name, value]) => [count(step), factName(name), String(value)]);
    this.folded.show(
      rows.length ? `Facts: ${plural(rows.length, "change")}` : null,
      table("Facts", ["step", "fact", "value"], cells),
    );
  }
}

export class RuleLog {
  /** @param {import("./run.js").Shared} shared */
  constructor({ showStep }) {
    this.showStep = showStep;
    this.element = h("section", { "aria-label": "What the rules reported" });
  }

  /** @param {LogAnswer} found */
  show(found) {
    const rows = found.lines
      .slice(0, MOST_ROWS)
      .map(({ step, rule, message }) => [
        button(String(step), () => this.showStep(step), { class: "link" }),
        rule,
        message,
      ]);
    replace(
      this.element,
      found.total ? h("h2", { text: `What the rules reported (${count(found.total)})` }) : null,
      found.total ? table("Reports of the rules", ["step", "rule", "message"], rows) : null,
    );
  }
}
