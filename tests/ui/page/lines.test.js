import assert from "node:assert/strict";
import test from "node:test";
import {
  linesOf,
  bestInWords,
  smoothed,
  sourcesOf,
  stretchAt,
  wordsOfStretch,
} from "../../../layers/smdebug_core/python/smdebug/ui/page/lines.js";

const runOf = (name, modes) => ({ name, series: [{ name: "loss", count: 1, modes }] });

test("the best value says its step, and its epoch if there is one", () => {
  const best = { value: 0.05, is_highest: false, step: 1200, epoch: null };
  assert.equal(bestInWords(best, String), "lowest 0.05 at step 1,200");
  assert.equal(bestInWords({ ...best, is_highest: true, epoch: 3 }, String), "highest 0.05 at step 1,200, epoch 3");
});

test("validation is a line of its own, and training alone is none", () => {
  assert.deepEqual(linesOf(runOf("a", ["TRAIN"]), "loss"), []);
  const labels = sourcesOf([{ id: "x", run: runOf("a", ["TRAIN", "EVAL"]) }], "loss").map(({ label }) => label);
  assert.deepEqual(labels, ["training", "validation"]);
});

test("lines of two runs have the run's name, and inks of their own", () => {
  const both = ["TRAIN", "EVAL"];
  const runs = [
    { id: "x", run: runOf("a", both) },
    { id: "y", run: runOf("b", both) },
  ];
  const found = sourcesOf(runs, "loss").map(({ label, place }) => [label, place]);
  assert.deepEqual(found, [
    ["a, training", 0],
    ["a, validation", 2],
    ["b, training", 1],
    ["b, validation", 3],
  ]);
});

test("smoothing keeps a constant, the first value and gaps", () => {
  assert.deepEqual(
    smoothed([2, 2, 2], 0.9).map((value) => Math.round(value * 1e9) / 1e9),
    [2, 2, 2],
  );
  assert.deepEqual(smoothed([1, undefined, null], 0.5), [1, undefined, null]);
  assert.ok(smoothed([0, 1], 0.5)[1] < 1);
});

test("a step is read in its stretch or in the nearest one, and without a step in the last", () => {
  const curve = { first: [0, 10, 30], last: [4, 12, 30], low: [1, 2, 4], high: [1, 3, 4], not_finite: [0, 0, 1] };
  assert.deepEqual(
    [0, 4, 6, 8, 11, 20, 22, 99, null].map((step) => stretchAt(curve, step)),
    [0, 0, 0, 1, 1, 1, 2, 2, 2],
  );
  const words = [0, 1, 2].map((at) => wordsOfStretch(curve, at, String));
  assert.deepEqual(words, ["1", "2 to 3", "not finite"]);
});
