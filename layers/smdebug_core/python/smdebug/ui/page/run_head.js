// What a run is: its name, its state in a line, its configuration, and how far it was read.

import { report as held } from "./api.js";
import { across } from "./axis.js";
import { Folded, h, replace } from "./dom.js";
import { ago, count, duration, moment, plural } from "./format.js";

/** @typedef {import("./types/answers.js").RunAnswer} RunAnswer */

const WRITTEN = new Set(["tags", "note", "pinned"]);

export class RunHead {
  constructor() {
    this.title = h("h1", { text: "…" });
    this.crumb = h("span", { text: "…" });
    this.line = h("div", { class: "facts-line" });
    this.written = h("div", { class: "written" });
    this.configuration = new Folded();
    this.progress = h("div");
    this.damage = new Folded();
    this.element = h(
      "div",
      {},
      this.line,
      this.written,
      this.configuration.element,
      this.progress,
      this.damage.element,
    );
    this.configured = "";
  }

  /** @param {RunAnswer} run */
  show(run) {
    this.title.textContent = this.crumb.textContent = run.name;
    document.title = `${run.issues.length ? `✗ ${run.issues.length} ` : ""}${run.name} · smdebug`;
    const words = [
      run.state,
      run.last_step === null ? null : stepInWords(run),
      `${plural(run.steps, "step")} saved`,
      run.workers.length > 1 ? plural(run.workers.length, "worker") : null,
      run.duration === null ? null : duration(run.duration),
    ];
    const saved = held ? moment(run.last_saved) : ago(run.last_saved);
    replace(
      this.line,
      ...words.filter(Boolean).map((text) => h("span", { text })),
      run.cost === null ? null : h("span", { text: `$${run.cost.toFixed(2)}`, title: run.cost_title }),
      h("span", { text: run.path }),
      run.last_saved ? h("span", { text: `last saved ${saved}`, title: moment(run.last_saved) }) : null,
    );
    this.showWritten(run);
    this.showConfiguration(run);
    this.showProgress(run);
  }

  /**
   * What people have written about it.
   * @param {RunAnswer} run
   */
  showWritten({ configuration: { tags, note, pinned } }) {
    const texts = String(tags || "")
      .split(", ")
      .filter(Boolean);
    replace(
      this.written,
      pinned ? h("span", { class: "tag", text: "★ baseline" }) : null,
      ...texts.map((text) => h("span", { class: "tag", text })),
      note ? h("p", { class: "note", text: String(note) }) : null,
    );
    this.written.hidden = !this.written.childNodes.length;
  }

  /** @param {RunAnswer} run */
  showConfiguration(run) {
    const known = Object.entries(run.configuration).filter(([name]) => !WRITTEN.has(name));
    const key = JSON.stringify(known);
    if (this.configured === key) return;
    this.configured = key;
    const first = known.slice(0, 4).map(([name, value]) => `${name} ${value}`);
    const summary = `Configuration: ${first.join(", ")}${known.length > 4 ? " …" : ""}`;
    const rows = known.flatMap(([name, value]) => [h("dt", { text: name }), h("dd", { text: String(value) })]);
    this.configuration.show(known.length ? summary : null, h("dl", { class: "pairs-of-values" }, ...rows));
  }

  /** @param {RunAnswer} run */
  showProgress(run) {
    const hasRules = !run.damaged.some(([place]) => place === "rules"); // without, nothing is checked
    const behind = (hasRules ? Math.min(run.steps_read, run.steps_checked) : run.steps_read) < run.steps;
    const isReading = (run.state === "reading" || behind) && !run.error;
    const of = plural(run.steps, "step");
    const what =
      run.state === "reading"
        ? "Reading the list of steps …"
        : run.steps_read < run.steps
          ? `Reading: ${count(run.steps_read)} of ${of}`
          : `Checking: ${count(run.steps_checked)} of ${of}`;
    const bar = { max: Math.max(1, 2 * run.steps), value: run.steps_read + run.steps_checked, "aria-label": what };
    replace(
      this.progress,
      ...run.notes.map((text) => h("p", { class: held ? "notice" : "problem", role: held ? null : "status", text })),
      run.error ? h("p", { class: "problem", role: "alert", text: run.error }) : null,
      run.missing ? h("p", { class: "problem", role: "status", text: `${run.missing}.` }) : null,
      isReading ? h("p", { class: "quiet" }, h("progress", bar), ` ${what}`) : null,
    );
    const summary = `${plural(run.damaged.length, "part")} of the run cannot be read; the rest is shown`;
    const places = run.damaged.map(([place, why]) => h("li", { text: `${place}: ${why}` }));
    this.damage.show(run.damaged.length ? summary : null, h("ul", {}, ...places));
    this.damage.warn();
  }
}

// The last step as people count them: of the training alone, where evaluations are counted as well.
/** @param {RunAnswer} run */
function stepInWords(run) {
  const trained = across(run.training_steps, run.last_step);
  const counted = trained === run.last_step ? "" : ` (${count(run.last_step)} with evaluations)`;
  return `step ${count(trained)}${counted}`;
}
