// Layers by steps: the heat map with its choices, the panel of one tensor, and the numbers at the last step.

import { get } from "./api.js";
import { Folded, h, replace, select } from "./dom.js";
import { count, number, statisticName } from "./format.js";
import { HeatMap } from "./heatmap.js";
import { table } from "./tables.js";
import { TensorPanel } from "./tensor.js";

/** @typedef {import("./types/answers.js").RunAnswer} RunAnswer */
/** @typedef {import("./types/answers.js").NumbersAnswer} NumbersAnswer */

const SHOWN = ["min", "max", "mean", "std", "abs_mean", "rms", "zeros", "non_finite"];

export class HeatSection {
  /** @param {import("./run.js").Shared} shared */
  constructor({ id, time, values, report, remember }) {
    this.id = id;
    this.values = values;
    this.report = report;
    this.remember = remember;
    this.chosen = {
      kind: values.get("kind") || "",
      statistic: values.get("statistic") || "rms",
      extreme: values.get("extreme") || "high",
    };
    this.panel = new TensorPanel(id, time, {
      report,
      remember,
      statistic: values.get("of_tensor") || "rms",
      closed: (kind, name) => this.heat.leave(name),
    });
    this.heat = new HeatMap(id, time, {
      report,
      remember,
      tree: values.get("tree") || "",
      fit: values.get("fit") === "1",
      chosen: (kind, tensor, step) => {
        this.panel.show(kind, tensor, step).catch(report);
      },
    });
    this.controls = h("div", { class: "bar" });
    this.numbers = new Folded({ opened: () => this.showNumbers().catch(report) });
    this.filter = h("input", {
      type: "search",
      placeholder: "part of a name",
      "aria-label": "Filter tensors",
      oninput: () => this.listNumbers(),
    });
    this.list = h("div");
    this.element = h(
      "section",
      { "aria-label": "Layers by steps" },
      h("h2", { text: "Layers by steps" }),
      this.controls,
      this.heat.element,
      this.panel.element,
      this.numbers.element,
    );
    /** What the controls were made for. */
    this.made = "";
    /** @type {NumbersAnswer | null} */
    this.found = null;
    this.wasAddressed = false;
  }

  /** The tensor that the panel shows, or "". */
  get tensor() {
    return this.panel.name;
  }

  /** @param {RunAnswer} run */
  async show(run) {
    const kinds = run.kinds.map((each) => each.name);
    this.element.hidden = !kinds.length;
    if (!kinds.length) return;
    if (!kinds.includes(this.chosen.kind)) this.chosen.kind = kinds[0];
    const key = JSON.stringify([run.kinds, this.chosen]);
    if (key !== this.made) {
      this.made = key;
      this.makeControls(run);
    }
    await this.heat.choose(this.chosen.kind, this.chosen.statistic, this.chosen.extreme);
    this.numbers.show("Numbers at the last step", this.filter, this.list);
    if (this.numbers.open) await this.showNumbers();
    if (this.panel.isOpen) await this.panel.refresh().catch(this.report);
    else await this.openAddressed(run);
  }

  /** @param {RunAnswer} run */
  makeControls(run) {
    const again = (changes) => {
      Object.assign(this.chosen, changes);
      this.remember(this.chosen);
      this.show(run).catch(this.report);
    };
    const kinds = run.kinds.map((each) => [each.name, `${each.name} (${each.tensors})`]);
    const statistics = run.statistics.map((name) => [name, statisticName(name)]);
    const cells = [
      ["high", "largest"],
      ["low", "smallest"],
    ];
    replace(
      this.controls,
      select("Tensors", kinds, this.chosen.kind, (kind) => again({ kind })),
      select("Statistic", statistics, this.chosen.statistic, (statistic) => again({ statistic })),
      select("Cell", cells, this.chosen.extreme, (extreme) => again({ extreme })),
      h("span", { class: "grow" }),
      ...this.heat.controls(),
    );
  }

  /**
   * Open the tensor of an address that was sent, once its kind is read.
   * @param {RunAnswer} run
   */
  async openAddressed(run) {
    const [kind, tensor, step] = [
      this.values.get("of") || this.chosen.kind,
      this.values.get("tensor"),
      this.values.get("step"),
    ];
    if (this.wasAddressed || !tensor || !run.kinds.some((each) => each.name === kind)) return;
    this.heat.current = tensor;
    try {
      await this.panel.show(kind, tensor, step === null ? undefined : Number(step));
      this.wasAddressed = true;
    } catch (error) {
      if (error.status !== 409) this.report(error); // 409: not opened yet
    }
  }

  async showNumbers() {
    this.found = await get(`run/${this.id}/numbers`, { kind: this.chosen.kind });
    this.listNumbers();
  }

  listNumbers() {
    if (!this.found) return;
    const { names, shapes, first, last, low, high } = this.found;
    const wanted = this.filter.value.trim().toLowerCase();
    const cell = (statistic, at) => {
      const [least, most] = [low[statistic]?.[at], high[statistic]?.[at]];
      return least === most ? number(most) : `${number(least)} to ${number(most)}`;
    };
    const rows = names.flatMap((name, at) => {
      if (!name.toLowerCase().includes(wanted)) return [];
      const steps = first[at] === last[at] ? count(last[at]) : `${count(first[at])}–${count(last[at])}`;
      return [[name, steps, shapes[at], ...SHOWN.map((statistic) => cell(statistic, at))]];
    });
    const heads = ["tensor", "step", "shape", ...SHOWN.map(statisticName)];
    replace(this.list, table("Numbers at the last step", heads, rows, { named: true, numbers: true }));
  }

  redraw() {
    this.heat.redraw();
    this.panel.redraw();
  }

  close() {
    this.heat.close();
    this.panel.close();
  }
}
