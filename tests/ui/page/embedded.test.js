// The answers in a report: windows, heat maps and histories are cut from blocks as the server computes them.

import assert from "node:assert/strict";
import test from "node:test";
import { Embedded } from "../../../layers/smdebug_core/python/smdebug/ui/page/embedded.js";

const packed = (numbers) => Buffer.from(Float32Array.from(numbers).buffer).toString("base64");

function block(high = null) {
  return {
    names: ["a", "b"],
    tensors: 2,
    folded: false,
    statistics: ["rms", "non_finite"],
    first: [0, 10],
    last: high ? [9, 10] : [0, 10],
    low: packed([1, 2, 3, NaN, 0, 0, 0, 4]),
    high: high && packed(high),
  };
}

const answers = (kind) => new Embedded({ "run/x/kind/k": kind, "run/x/at/k/a": { step: 3, name: "a" } });

test("a statistic is infinite where values are not finite, and NaN where nothing was measured", () => {
  const matrix = answers(block()).matrix("run/x/matrix", { kind: "k", statistic: "rms" });
  assert.deepEqual([...matrix.high], [1, 2, 3, Infinity]);
  assert.equal(matrix.low, matrix.high);
  assert.ok(matrix.exact);
  const odd = answers(block()).matrix("run/x/matrix", { kind: "k", statistic: "non_finite" });
  assert.deepEqual([...odd.high], [0, 0, 0, 4]);
});

test("joined steps have both extremes", () => {
  const joined = answers(block([1, 5, 3, 6, 0, 0, 0, 0]));
  const matrix = joined.matrix("run/x/matrix", { kind: "k", statistic: "rms" });
  assert.ok(!matrix.exact);
  assert.deepEqual([...matrix.low].slice(0, 3), [1, 2, 3]);
  assert.deepEqual([...matrix.high], [1, 5, 3, 6]);
  const history = joined.get("run/x/tensor", { kind: "k", name: "a" });
  assert.deepEqual(history.low.rms, [1, 2]);
  assert.deepEqual(history.high.rms, [1, 5]);
  assert.ok(!history.exact);
});

test("a history has a row of the block, with null for what is unknown", () => {
  const history = answers(block()).get("run/x/tensor", { kind: "k", name: "b" });
  assert.deepEqual(history.high, { rms: [3, null], non_finite: [0, 4] });
  assert.ok(history.exact);
});

test("what was left out of a series is filled in", () => {
  const held = new Embedded({
    "run/x/series/loss": { name: "loss", first: [0, 1], low: [2, null], last: null, high: null, not_finite: null },
  });
  const series = held.get("run/x/series", { name: "loss", first: 0, points: 5 });
  assert.deepEqual(
    [series.last, series.high, series.not_finite],
    [
      [0, 1],
      [2, null],
      [0, 0],
    ],
  );
});

test("a tensor without an answer of its own has its last step; one that is unknown is a 404", () => {
  assert.equal(answers(block()).get("run/x/at", { kind: "k", name: "a" }).step, 3);
  assert.deepEqual(answers(block()).get("run/x/at", { kind: "k", name: "b" }).workers, {});
  assert.throws(() => answers(block()).get("run/x/tensor", { kind: "k", name: "c" }), { status: 404 });
  assert.throws(() => answers(block()).get("run/y"), { status: 404 });
});
