// Numbers, times and names as people read them.

import assert from "node:assert/strict";
import test from "node:test";
import {
  bytes,
  count,
  duration,
  inWords,
  isOfMachine,
  number,
  percent,
  plural,
  statisticName,
  titleOf,
} from "../../../layers/smdebug_core/python/smdebug/ui/page/format.js";

test("a number has four digits, and a power of ten where it is very large or small", () => {
  assert.deepEqual([0, 1234.56, 0.00012345, -2e7, null, NaN].map(number), [
    "0",
    "1,235",
    "1.23e-4",
    "-2.00e7",
    "–",
    "NaN",
  ]);
});

test("counts, shares and sizes have their units", () => {
  assert.deepEqual([plural(1, "step"), plural(2500, "step"), count(null)], ["1 step", "2,500 steps", "–"]);
  assert.deepEqual([percent(2 / 3), percent(null)], ["66.67%", "–"]);
  assert.deepEqual([bytes(999), bytes(1_500_000)], ["999 B", "1.5 MB"]);
});

test("a duration is as exact as its length allows, and none is negative", () => {
  assert.deepEqual([5, 600, 7200, 400_000, -1, null].map(duration), ["5 s", "10 min", "2.0 h", "4.6 d", "–", "–"]);
});

test("names of series and statistics are words", () => {
  assert.equal(titleOf("system/step_seconds"), "Seconds per step");
  assert.equal(titleOf("system/gpu1_utilisation_percent"), "GPU 1: utilisation, %");
  assert.equal(titleOf("learning_rate/0/1"), "Learning rate, group 1");
  assert.equal(statisticName("p05"), "5 % quantile");
  assert.equal(inWords("NoIssuesFound"), "no issues found");
});

test("the pace of a Trainer is of the machine, and what it learns is not", () => {
  const names = [
    "system/cpu_percent",
    "eval_runtime",
    "train_samples_per_second",
    "val/tokens_per_second",
    "total_flos",
  ];
  assert.deepEqual(names.filter(isOfMachine), names);
  assert.deepEqual(["loss", "runtimes", "eval_loss", "samples_per_second_loss"].filter(isOfMachine), []);
});
