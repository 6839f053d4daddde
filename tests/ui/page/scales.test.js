// Round steps and values of axes, the window of steps, and the colours of the heat map.

import assert from "node:assert/strict";
import test from "node:test";
import { cellsOf, largest, smallest } from "../../../layers/smdebug_core/python/smdebug/ui/page/heat_cells.js";
import { TimeLine, ticksOf } from "../../../layers/smdebug_core/python/smdebug/ui/page/timeline.js";

test("ticks are round, within the window, and not more than there is room for", () => {
  assert.deepEqual(ticksOf(0, 100, 5), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(ticksOf(3, 7, 20), [3, 4, 5, 6, 7]);
});

test("a window stays within the steps, and zooming out of them shows all", () => {
  const time = new TimeLine(() => {});
  time.extend(0, 1000);
  time.zoom(0.5, 100);
  assert.deepEqual(time.window, [50, 550]);
  time.pan(-1);
  assert.deepEqual(time.window, [0, 500]);
  time.zoom(4);
  assert.ok(time.isWhole);
});

test("a cell that is not finite counts always, one that was not measured never", () => {
  assert.equal(largest(3, 255), 255);
  assert.equal(smallest(255, 3), 255);
  assert.equal(smallest(0, 3), 3);
  const low = Float32Array.of(1e-3, 1, NaN, 0, 5);
  const high = Float32Array.of(1e-3, 1, NaN, 0, Infinity);
  const { cells } = cellsOf({ low, high }, "rms", "high");
  assert.equal(cells[2], 0);
  assert.equal(cells[3], 1);
  assert.equal(cells[4], 255);
  assert.ok(cells[0] < cells[1]);
});
