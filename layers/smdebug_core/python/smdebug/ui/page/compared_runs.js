// Where the run of a report and the one that it is compared with diverge; their curves share the charts.

import { get, report as held } from "./api.js";
import { Folded, h, replace } from "./dom.js";
import { count, number } from "./format.js";
import { divergenceOf } from "./divergence.js";
import { table } from "./tables.js";

/** @typedef {import("./types/answers.js").ComparisonAnswer} ComparisonAnswer */

export class ComparedRuns {
  /** @param {import("./run.js").Shared} shared */
  constructor({ id, other }) {
    this.ids = [id, other];
    this.heading = h("h2", { text: "Compared" });
    this.content = h("div");
    this.collections = new Folded({ open: Boolean(held) });
    this.element = h("section", { "aria-label": "Comparison" }, this.heading, this.content, this.collections.element);
  }

  async show() {
    /** @type {ComparisonAnswer} */
    const found = await get("compare", { runs: this.ids.join(",") });
    const [run, other] = found.runs;
    this.heading.textContent = `Compared with ${other.name}`;
    const { values } = found;
    const rows = (values ? values.configuration : found.configuration).map((row) => [
      row.name,
      ...row.values.map((value) => (value === null ? "–" : String(value))),
    ]);
    replace(
      this.content,
      values ? h("p", { text: values.outcome }) : null,
      other.divergence || !values ? h("p", { text: `Statistics: ${divergenceOf(other)}.` }) : null,
      rows.length
        ? table("Configuration that differs", ["configuration", run.name, other.name], rows, { named: true })
        : h("p", { class: "quiet", text: "The runs record no configuration that differs." }),
    );
    this.showCollections(values?.collections || []);
  }

  /** @param {import("./types/answers.js").ComparedCollection[]} collections */
  showCollections(collections) {
    const heads = ["collection", "tensors", "different", "values", "different", "first step", "largest |a − b|"];
    const rows = collections.map((each) => [
      each.name,
      count(each.tensors),
      count(each.tensors_different),
      count(each.compared),
      count(each.different),
      count(each.first_step),
      each.different ? number(each.largest) : "",
    ]);
    this.collections.show(
      rows.length ? "Differences by collection" : null,
      table("Differences by collection", heads, rows, { named: true, numbers: true }),
    );
  }

  redraw() {}

  close() {}
}
