// The colours of the heat map: a statistic of every tensor and step as the index of a colour.

const NOT_FINITE = 255;
const STOPS = [
  [68, 1, 84],
  [59, 82, 139],
  [33, 145, 140],
  [94, 201, 98],
  [253, 231, 37],
];
const SIGNED = new Set(["mean", "min", "max", "p01", "p05", "p25", "p50", "p75", "p95", "p99"]);

export const COLOURS = (() => {
  const table = new Uint32Array(256);
  for (let at = 1; at < 255; at++) {
    const place = ((at - 1) / 253) * (STOPS.length - 1);
    const below = Math.min(STOPS.length - 2, Math.floor(place));
    const share = place - below;
    const [r, g, b] = STOPS[below].map((value, part) => Math.round(value + (STOPS[below + 1][part] - value) * share));
    table[at] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  table[NOT_FINITE] = (255 << 24) | (60 << 16) | (30 << 8) | 230;
  return table;
})();

// The index of the cell that counts where several share a place: the largest, or of the smallest values the
// smallest (0: not measured). A value that is not finite counts always.
export const largest = (a, b) => (a > b ? a : b);
export const smallest = (a, b) =>
  a === NOT_FINITE || b === NOT_FINITE ? NOT_FINITE : a === 0 || b === 0 ? a || b : a < b ? a : b;

// A colour of the table as text, for what is drawn by shapes: `share` is its place from the lowest to the highest.
export function inkAt(share) {
  const value = COLOURS[1 + Math.round(share * 253)];
  return `rgb(${value & 255},${(value >> 8) & 255},${(value >> 16) & 255})`;
}

// The colours of all cells, logarithmic over the middle of the values, and the exponents at which they begin and end.
export function cellsOf(data, statistic, extreme) {
  const { low, high } = data;
  const source = extreme === "low" ? low : high;
  const signed = SIGNED.has(statistic);
  const values = new Float32Array(source.length);
  const sizes = [];
  const every = Math.max(1, Math.floor(source.length / 20000));
  for (let at = 0; at < source.length; at++) {
    // Of signed values the one that is farther from 0 counts.
    if (high[at] === Infinity) {
      values[at] = Infinity; // a value that is not finite in any of its steps
      continue;
    }
    const value = signed && extreme !== "low" ? Math.max(Math.abs(low[at]), Math.abs(high[at])) : Math.abs(source[at]);
    values[at] = value;
    if (at % every === 0 && value > 0 && value < Infinity) sizes.push(value);
  }
  sizes.sort((a, b) => a - b);
  // The colours end at the outstanding values: the largest, or of the smallest values the smallest.
  const at_share = (share) => (sizes.length ? Math.log10(sizes[Math.floor((sizes.length - 1) * share)]) : -1);
  let [bottom, top] = [at_share(0.02), at_share(0.98)];
  for (const value of values) {
    if (!(value > 0 && value < Infinity)) continue;
    if (extreme === "low") bottom = Math.min(bottom, Math.log10(value));
    else top = Math.max(top, Math.log10(value));
  }
  const range = [bottom, Math.max(top, bottom + 0.1)];
  const reach = range[1] - range[0];
  const cells = new Uint8Array(values.length);
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (Number.isNaN(value)) continue;
    if (value === Infinity) cells[at] = NOT_FINITE;
    else if (value === 0) cells[at] = 1;
    else cells[at] = 1 + Math.max(0, Math.min(253, Math.round(((Math.log10(value) - bottom) / reach) * 253)));
  }
  if (statistic === "non_finite") for (let at = 0; at < cells.length; at++) if (source[at] > 0) cells[at] = NOT_FINITE;
  return { cells, range };
}
