// Tables of plain rows, which scroll within the page where they are too large.

import { h } from "./dom.js";

/** @typedef {string | HTMLElement | null} Cell */

/**
 * @param {string} label what the table is, for a screen reader
 * @param {string[]} heads
 * @param {Cell[][]} rows the first cell of a row is its name if `named`
 * @param {{named?: boolean, numbers?: boolean}} options `numbers` puts all cells but the first to the right
 */
export function table(label, heads, rows, { named = false, numbers = false } = {}) {
  const head = h("tr", {}, ...heads.map((text) => h("th", { scope: "col", text })));
  const body = rows.map((cells) =>
    h(
      "tr",
      {},
      ...cells.map((cell, at) =>
        h(named && at === 0 ? "th" : "td", { scope: named && at === 0 ? "row" : null }, cell ?? ""),
      ),
    ),
  );
  return h(
    "div",
    { class: `log${numbers ? " numbers" : ""}`, tabindex: "0", role: "region", "aria-label": label },
    h("table", {}, h("thead", {}, head), h("tbody", {}, ...body)),
  );
}
