// Which workers' copies of the model differ from most others, and when.

import { get } from "./api.js";
import { button, h, replace } from "./dom.js";
import { count, plural } from "./format.js";
import { Strip, WORKER_STATES, rowsOfWorkers } from "./strips.js";

/** @typedef {import("./types/answers.js").RanksAnswer} RanksAnswer */

const MANY = 64;
const MOST_NAMED = 8;

export class Replicas {
  /** @param {import("./run.js").Shared} shared */
  constructor({ id, time }) {
    this.id = id;
    this.element = h("section", { "aria-label": "Workers by steps" });
    this.strip = new Strip("Copies of the model by worker", time);
    /** With many workers, those that are as most others are left out. @type {boolean | null} */
    this.onlyDifferent = null;
  }

  /** @param {import("./types/answers.js").RunAnswer} run */
  async show(run) {
    if (run.workers.length > 1) this.draw(await get(`run/${this.id}/ranks`));
  }

  /** @param {RanksAnswer} found */
  draw(found) {
    const { workers, steps, state } = found;
    if (!steps.length) return;
    const different = workers.filter((_, row) => state[row].includes(1));
    this.onlyDifferent ??= workers.length > MANY && different.length > 0;
    const words = wordsOf(found, different);
    const toggle = button(
      "Only workers that differ",
      () => {
        this.onlyDifferent = !this.onlyDifferent;
        this.draw(found);
      },
      { "aria-pressed": String(this.onlyDifferent) },
    );
    replace(
      this.element,
      h("h2", { text: "Copies of the model by worker" }),
      h(
        "div",
        { class: "bar" },
        h("span", { class: different.length ? "bad" : "quiet", text: words }),
        h("span", { class: "grow" }),
        different.length && different.length < workers.length ? toggle : null,
      ),
      this.strip.element,
    );
    this.strip.show(rowsOfWorkers(found, this.onlyDifferent), words, WORKER_STATES);
  }

  redraw() {
    this.strip.draw();
  }

  close() {
    this.strip.close();
  }
}

/**
 * @param {RanksAnswer} found
 * @param {string[]} different
 */
function wordsOf({ workers, steps, state }, different) {
  if (!different.length)
    return `All ${workers.length} workers have the same parameters at ${plural(steps.length, "compared step")}.`;
  const first = steps[Math.min(...state.map((row) => row.indexOf(1)).filter((at) => at >= 0))];
  const more = different.length - MOST_NAMED;
  const some = different.slice(0, MOST_NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
  const verb = different.length === 1 ? "differs" : "differ";
  const who = `${different.length} of ${workers.length} workers ${verb} from most others`;
  return `${who}, first at step ${count(first)}: ${some}`;
}
