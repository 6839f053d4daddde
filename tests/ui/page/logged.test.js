// What was logged: which values a step shows, and the words below them.

import assert from "node:assert/strict";
import test from "node:test";
import { shownAt, wordsOf } from "../../../layers/smdebug_core/python/smdebug/ui/page/logged_at_step.js";

const value = (name, step, worker = "worker_0") => ({ name, step, worker });

test("a step shows of each name the last value until then, always in the same order", () => {
  const values = [value("a", 0), value("b", 5), value("a", 5), value("b", 9, "worker_1")];
  assert.deepEqual(
    shownAt(values, 4).map((each) => [each.name, each.step]),
    [["a", 0]],
  );
  assert.deepEqual(
    shownAt(values, 9).map((each) => [each.name, each.step, each.worker]),
    [
      ["a", 5, "worker_0"],
      ["b", 5, "worker_0"],
      ["b", 9, "worker_1"],
    ],
  );
});

test("what was left out is said", () => {
  const found = { values: [], left_out: { "too large": 2 }, omitted: 40, problem: "" };
  assert.deepEqual(wordsOf(found), [
    "2 values not kept: too large.",
    "This report holds the last values; 40 earlier ones are in the run.",
  ]);
});
