// What the training has logged to be looked at: images, text, tables, sound. One slider steps through all of it.

import { get } from "./api.js";
import { button, h, replace } from "./dom.js";
import { count } from "./format.js";
import { shownAt, wordsOf } from "./logged_at_step.js";
import { LoggedContents } from "./logged_contents.js";

/** @typedef {import("./types/answers.js").LoggedAnswer} LoggedAnswer */
/** @typedef {import("./types/answers.js").LoggedValueAnswer} LoggedValueAnswer */

export class Logged {
  /** @param {import("./run.js").Shared} shared */
  constructor({ id, report }) {
    this.id = id;
    this.report = report;
    this.contents = new LoggedContents(id);
    /** @type {LoggedAnswer} */
    this.found = { values: [], left_out: {}, omitted: 0, problem: "" };
    /** @type {number[]} */
    this.steps = [];
    this.at = 0;
    this.shown = "";
    this.turn = 0;
    this.slider = h("input", { type: "range", min: 0, value: 0, "aria-label": "Step of what was logged" });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.earlier = button("‹", () => this.go(this.at - 1), { "aria-label": "Earlier", title: "Earlier" });
    this.later = button("›", () => this.go(this.at + 1), { "aria-label": "Later", title: "Later" });
    this.label = h("output", { class: "logged-step" });
    this.bar = h("div", { class: "logged-bar" }, this.earlier, this.slider, this.later, this.label);
    this.words = h("div");
    this.cards = h("div", { class: "logged-cards" });
    this.element = h(
      "section",
      { "aria-label": "Logged", hidden: true },
      h("h2", { text: "Logged" }),
      this.bar,
      this.cards,
      this.words,
    );
  }

  /** @param {import("./types/answers.js").RunAnswer} run */
  async show(run) {
    const key = JSON.stringify([run.steps_read, run.state]);
    if (key === this.shown) return;
    this.found = await get(`run/${this.id}/logged`);
    this.shown = key;
    const wasLast = this.at >= this.steps.length - 1;
    const step = this.steps[this.at];
    this.steps = [...new Set(this.found.values.map((value) => value.step))];
    this.slider.max = String(Math.max(0, this.steps.length - 1));
    this.bar.hidden = this.steps.length < 2;
    replace(this.words, ...wordsOf(this.found).map((text) => h("p", { class: "quiet", text })));
    this.element.hidden = !this.steps.length && !this.words.childElementCount;
    await this.go(wasLast ? this.steps.length - 1 : this.steps.indexOf(step));
  }

  /** @param {number} at */
  async go(at) {
    if (!this.steps.length) return;
    this.at = Math.max(0, Math.min(this.steps.length - 1, at));
    const step = this.steps[this.at];
    this.slider.value = String(this.at);
    this.slider.setAttribute("aria-valuetext", `step ${step}`);
    this.label.textContent = `step ${count(step)} · ${count(this.at + 1)} of ${count(this.steps.length)}`;
    this.earlier.disabled = this.at === 0;
    this.later.disabled = this.at === this.steps.length - 1;
    const turn = ++this.turn;
    const values = shownAt(this.found.values, step);
    const workers = new Set(this.found.values.map((value) => value.worker));
    const cards = await Promise.all(values.map((value) => this.card(value, step, workers.size > 1)));
    if (turn === this.turn) replace(this.cards, ...cards);
  }

  /**
   * @param {LoggedValueAnswer} value
   * @param {number} step
   * @param {boolean} isOfSeveral whether several workers have logged
   */
  async card(value, step, isOfSeveral) {
    let content;
    try {
      content = await this.contents.element(value);
    } catch (error) {
      content = h("p", { class: "warn", text: error.message });
    }
    const from = [isOfSeveral ? value.worker : "", value.step === step ? "" : `from step ${count(value.step)}`];
    return h(
      "figure",
      { class: `logged ${value.kind}` },
      h(
        "figcaption",
        {},
        h("strong", { text: value.name }),
        h("span", { class: "quiet", text: from.filter(Boolean).join(" · ") }),
      ),
      content,
      value.caption ? h("p", { class: "caption", text: value.caption }) : null,
      value.note ? h("p", { class: "quiet", text: value.note }) : null,
    );
  }

  redraw() {
    this.go(this.at).catch(this.report);
  }

  close() {
    this.turn += 1;
    this.contents.close();
  }
}
