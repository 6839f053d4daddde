// A cell of the heat map in words.

import { number, statisticName } from "./format.js";

/**
 * @param {import("./types/answers.js").Matrix} data
 * @param {{rows: number[], node: {full?: string, path: string}}} row
 * @param {number} column
 * @param {string} statistic
 */
export function cellInWords({ columns, low, high, first, last }, row, column, statistic) {
  const cell = row.rows[0] * columns + column;
  const steps = first[column] === last[column] ? `step ${first[column]}` : `steps ${first[column]}–${last[column]}`;
  const value = row.rows.length > 1 ? `${row.rows.length} tensors` : between(low[cell], high[cell]);
  return `${row.node.full || row.node.path} · ${steps} · ${statisticName(statistic)} ${value}`;
}

/**
 * @param {number} low
 * @param {number} high
 */
function between(low, high) {
  if (high === Infinity) return "not finite";
  if (Number.isNaN(high)) return "not measured";
  return low === high ? number(high) : `${number(low)} to ${number(high)}`;
}
