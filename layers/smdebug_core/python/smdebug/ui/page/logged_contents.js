// A logged value as an element: an image, a text, a table, a matrix, bars or a player. Text is only set as text.

import { fileUrl, get } from "./api.js";
import { color, h, sized } from "./dom.js";
import { count, number } from "./format.js";
import { table } from "./tables.js";

/** @typedef {import("./types/answers.js").LoggedValueAnswer} LoggedValueAnswer */

const SMALL = 160; // pixels: an image below is enlarged, with sharp edges
const ROWS = 200; // of a table, on the page
const HEIGHT = 140; // of bars
const FILES = { image: "image", audio: "sound" };

/** @param {LoggedValueAnswer} value */
const named = ({ name, step, caption }) => `${name} at step ${step}${caption ? `: ${caption}` : ""}`;

export class LoggedContents {
  /** @param {string} id of the run */
  constructor(id) {
    this.id = id;
    /** @type {Map<string, Promise<any>>} */
    this.known = new Map();
  }

  /**
   * What the value holds: the address of its file, or its JSON. It is asked for once.
   * @param {LoggedValueAnswer} value
   */
  content({ worker, number: at, kind }) {
    const key = `${worker}/${at}`;
    let found = this.known.get(key);
    if (!found) {
      const what = FILES[kind];
      found = (what ? fileUrl : get)(`run/${this.id}/logged/${what || "value"}`, { worker, number: at });
      found.catch(() => this.known.delete(key));
      this.known.set(key, found);
    }
    return found;
  }

  /** @param {LoggedValueAnswer} value */
  async element(value) {
    const content = await this.content(value);
    switch (value.kind) {
      case "image":
        return imageOf(value, content);
      case "audio":
        return h("audio", { controls: true, preload: "metadata", src: content, "aria-label": named(value) });
      case "text":
        return h("pre", { tabindex: "0", text: content.text, "aria-label": named(value), role: "region" });
      case "table":
        return tableOf(value, content);
      case "confusion_matrix":
        return matrixOf(value, content);
      default:
        return barsOf(value, content);
    }
  }

  close() {
    for (const each of this.known.values()) {
      each.then((found) => typeof found === "string" && URL.revokeObjectURL(found)).catch(() => {});
    }
    this.known.clear();
  }
}

/**
 * @param {LoggedValueAnswer} value
 * @param {string} src
 */
function imageOf(value, src) {
  const [height, width] = value.shape;
  const isSmall = Math.max(width, height) < SMALL;
  return h("img", { src, alt: named(value), width, height, class: isSmall ? "small" : "", loading: "lazy" });
}

/**
 * @param {LoggedValueAnswer} value
 * @param {{columns: string[], rows: any[][]}} content
 */
function tableOf(value, { columns, rows }) {
  const text = (cell) => (cell === null ? "" : typeof cell === "number" ? number(cell) : String(cell));
  const found = table(
    named(value),
    columns,
    rows.slice(0, ROWS).map((row) => row.map(text)),
  );
  if (rows.length > ROWS) found.append(h("p", { class: "quiet", text: `${count(rows.length - ROWS)} more rows` }));
  return found;
}

/**
 * @param {LoggedValueAnswer} value
 * @param {{classes: string[], counts: number[][]}} content
 */
function matrixOf(value, { classes, counts }) {
  const found = table(
    `${named(value)}: a row for each true class`,
    ["true \\ predicted", ...classes],
    counts.map((row, at) => [classes[at], ...row.map((each) => count(each))]),
    { named: true, numbers: true },
  );
  [...found.querySelectorAll("tbody tr")].forEach((row, at) => {
    const total = counts[at].reduce((sum, each) => sum + each, 0) || 1;
    [...row.querySelectorAll("td")].forEach((cell, column) => {
      cell.style.setProperty("--share", `${Math.round((50 * counts[at][column]) / total)}%`);
      cell.classList.add(at === column ? "right" : "wrong");
    });
  });
  return found;
}

/**
 * @param {LoggedValueAnswer} value
 * @param {{counts: number[], edges: number[], not_finite: number}} content
 */
function barsOf(value, { counts, edges }) {
  const total = counts.reduce((sum, each) => sum + each, 0);
  const words = `${named(value)}: ${count(total)} values from ${number(edges[0])} to ${number(edges.at(-1))}`;
  const canvas = h("canvas", { role: "img", "aria-label": words });
  const ends = h("div", { class: "ends quiet" }, h("span", { text: number(edges[0]) }));
  ends.append(h("span", { text: `${count(total)} values` }), h("span", { text: number(edges.at(-1)) }));
  const draw = () => {
    const width = canvas.parentElement?.clientWidth || 240;
    const context = sized(canvas, width, HEIGHT);
    const highest = Math.max(1, ...counts);
    context.clearRect(0, 0, width, HEIGHT);
    context.fillStyle = color("curve");
    counts.forEach((each, at) => {
      const left = (at * width) / counts.length;
      const high = (each / highest) * (HEIGHT - 4);
      context.fillRect(left, HEIGHT - high, Math.max(1, width / counts.length - 1), high);
    });
    context.fillStyle = color("line");
    context.fillRect(0, HEIGHT - 1, width, 1);
  };
  const box = h("div", { class: "bars" }, canvas, ends);
  new ResizeObserver(draw).observe(box);
  return box;
}
