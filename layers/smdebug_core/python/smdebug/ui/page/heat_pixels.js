// The pixels of the heat map. Of several cells in one place the chief one counts, so none is left out.

import { COLOURS } from "./heat_cells.js";

// For each pixel the columns whose steps fall on it; between two saved steps, the one before.
function columnsOf({ first, columns }, [from, to], width) {
  const starts = new Int32Array(width + 1);
  let at = 0;
  for (let pixel = 0; pixel <= width; pixel++) {
    const step = from + ((to - from) * pixel) / width;
    while (at < columns && first[at] < step) at++;
    starts[pixel] = at;
  }
  while (at < columns && first[at] <= to) at++; // the last step belongs to the last pixel
  starts[width] = at;
  return starts;
}

/**
 * Paint the rows that are visible from `top` on over the steps of the window.
 * @param {ImageData} image
 * @param {object} what
 * @param {{first: number[], last: number[], columns: number}} what.data
 * @param {{cells: Uint8Array}[]} what.rows
 * @param {number} what.rowHeight
 * @param {number} what.top
 * @param {number[]} what.window
 * @param {(a: number, b: number) => number} what.chief which of two cells in one place counts
 * @param {number} what.gap between rows
 */
export function paint(image, { data, rows, rowHeight, top, window: [from, to], chief, gap }) {
  const { width, height } = image;
  const starts = columnsOf(data, [from, to], width);
  const { last, columns } = data;
  const beyond = columns ? Math.floor(((last[columns - 1] + 1 - from) / (to - from)) * width) + 1 : 0;
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(0);
  const line = new Uint8Array(width);
  // Of rows thinner than a pixel, the chief one counts.
  const shared = rowHeight < 1 ? new Uint8Array(width * height) : null;
  const begin = Math.floor(top / rowHeight);
  const end = Math.min(rows.length, Math.ceil((top + height) / rowHeight));
  for (let row = begin; row < end; row++) {
    const { cells } = rows[row];
    for (let pixel = 0; pixel < width; pixel++) {
      const start = starts[pixel];
      const stop = starts[pixel + 1];
      let value = 0;
      if (stop > start) for (let at = start; at < stop; at++) value = chief(cells[at], value);
      else if (start > 0 && pixel < beyond) value = cells[start - 1];
      line[pixel] = value;
    }
    const y0 = Math.max(0, Math.round(row * rowHeight - top));
    const y1 = Math.min(height, Math.max(y0 + 1, Math.round((row + 1) * rowHeight - top) - gap));
    for (let y = y0; y < y1; y++) {
      const start = y * width;
      for (let pixel = 0; pixel < width; pixel++) {
        const value = shared ? (shared[start + pixel] = chief(line[pixel], shared[start + pixel])) : line[pixel];
        pixels[start + pixel] = COLOURS[value];
      }
    }
  }
}
