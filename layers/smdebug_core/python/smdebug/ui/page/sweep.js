// A sweep in one picture: a line for each run across its parameters to its best loss, and how much each matters.

import { color, h, replace } from "./dom.js";
import { number } from "./format.js";
import { FEWEST_RUNS, importances, placesOn } from "./importance.js";
import { table } from "./tables.js";

const MOST_AXES = 7;
const [WIDTH, HEIGHT, TOP, BOTTOM, SIDE] = [1000, 250, 34, 226, 70];

function svg(tag, properties, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

const words = (value) => (typeof value === "number" ? number(value) : String(value));
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** @typedef {{name: string, configuration: Record<string, any>, best: number}} SweptRun */

export class Sweep {
  constructor() {
    this.picture = h("div", { class: "sweep" });
    this.numbers = h("div");
    this.element = h(
      "section",
      { "aria-label": "Sweep", hidden: true },
      h("h2", { text: "Parameters and the best loss" }),
      this.picture,
      this.numbers,
    );
    this.known = "";
  }

  /** @param {SweptRun[]} runs those that have a loss */
  show(runs) {
    const known = JSON.stringify(runs);
    if (known === this.known) return;
    this.known = known;
    this.runs = runs;
    const losses = runs.map(({ best }) => best);
    this.parameters =
      runs.length < FEWEST_RUNS
        ? []
        : importances(
            runs.map(({ configuration }) => configuration),
            losses,
          );
    this.element.hidden = !this.parameters.length;
    if (this.element.hidden) return;
    this.redraw();
    replace(
      this.numbers,
      h("p", {
        class: "quiet",
        text:
          "Importance is the share of the variance of the best losses' ranks that a parameter explains alone, " +
          "in up to four groups of its values, beyond chance. 90 % of resampled sweeps are in the interval. " +
          "Parameters that change together share it.",
      }),
      table(
        "Importance of the parameters",
        ["parameter", "importance", "interval", "lowest losses at"],
        this.parameters.map(({ name, share, low, high, best }) => [
          name,
          share.toFixed(2),
          `${low.toFixed(2)} to ${high.toFixed(2)}`,
          best.map(words).join(" to "),
        ]),
        { named: true, numbers: true },
      ),
    );
  }

  redraw() {
    if (this.element.hidden || !this.runs) return;
    const axes = [
      ...this.parameters.slice(0, MOST_AXES).map(({ name, values }) => ({ name, values })),
      { name: "best loss", values: this.runs.map(({ best }) => best) },
    ].map((axis) => ({ ...axis, ...placesOn(axis.values) }));
    const across = (at) => SIDE + (at * (WIDTH - 2 * SIDE)) / (axes.length - 1);
    const up = (place) => BOTTOM - place * (BOTTOM - TOP);
    const order = this.runs.map((_, at) => at).sort((a, b) => this.runs[b].best - this.runs[a].best);
    const lines = order.map((run, rank) => {
      const points = axes.flatMap(({ places }, at) =>
        places[run] === null ? [] : [`${across(at).toFixed(1)},${up(places[run]).toFixed(1)}`],
      );
      const isBest = rank === order.length - 1;
      const line = svg("polyline", {
        points: points.join(" "),
        fill: "none",
        stroke: color(isBest ? "good" : "accent"),
        "stroke-width": isBest ? 3 : 1.5,
        "stroke-opacity": isBest ? 1 : (0.15 + (0.65 * rank) / order.length).toFixed(2),
      });
      const title = svg("title", {});
      title.textContent = `${this.runs[run].name}: ${number(this.runs[run].best)}`;
      line.append(title);
      return line;
    });
    const text = (x, y, content, ink = "quiet") => {
      const element = svg("text", { x, y, "text-anchor": "middle", "font-size": 12, fill: color(ink) });
      element.textContent = content;
      return element;
    };
    const frames = axes.flatMap(({ name, ends, isLog }, at) => [
      svg("line", { x1: across(at), x2: across(at), y1: TOP, y2: BOTTOM, stroke: color("line") }),
      text(across(at), 12, short(isLog ? `${name} (log)` : name, 22), "text"),
      text(across(at), 27, short(words(ends[1]), 14)),
      text(across(at), BOTTOM + 16, short(words(ends[0]), 14)),
    ]);
    const best = this.runs[order.at(-1)];
    const said = `The best is ${best.name}: ${number(best.best)}`;
    const label = `${this.runs.length} runs across ${axes.length - 1} parameters. ${said}`;
    replace(
      this.picture,
      svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, ...frames, ...lines),
      h("p", {
        class: "quiet",
        text: `Each line is a run. ${said} (green).`,
      }),
    );
  }
}
