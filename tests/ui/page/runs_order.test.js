// The list of runs: which match, their order, and the parameters that distinguish them.

import assert from "node:assert/strict";
import test from "node:test";
import {
  arranged,
  BY_NAME,
  BY_TAG,
  distinguishing,
  parameterNames,
  shareOf,
} from "../../../layers/smdebug_core/python/smdebug/ui/page/runs_order.js";

const run = (name, more = {}) => ({
  ...{ name, state: "ended", issue: "", issues: 0, loss: null, last_step: 9, last_saved: 0 },
  ...{ configuration: {}, metrics: {} },
  ...more,
});
const chosen = (changes) => ({ search: "", state: "all", sort: "name", down: false, group: "", tag: "", ...changes });
const names = (rows) => rows.map((row) => row.name ?? `(${row.group})`);

test("runs match by every word, their state and their tag", () => {
  const runs = [run("a", { issues: 1, issue: "loss is NaN" }), run("b", { configuration: { tags: "x, y" } })];
  assert.deepEqual(names(arranged(runs, chosen({ search: "NAN loss" }))), ["a"]);
  assert.deepEqual(names(arranged(runs, chosen({ state: "with problems" }))), ["a"]);
  assert.deepEqual(names(arranged(runs, chosen({ tag: "y" }))), ["b"]);
});

test("a parameter is sorted by size, before texts, before what is missing; groups keep their runs", () => {
  const runs = [run("a"), run("b", { configuration: { lr: 10 } }), run("c", { configuration: { lr: 9 } })];
  assert.deepEqual(names(arranged(runs, chosen({ sort: "=lr" }))), ["c", "b", "a"]);
  assert.deepEqual(names(arranged(runs, chosen({ group: "lr" }))), ["(–)", "a", "(9)", "c", "(10)", "b"]);
});

test("what differs in most runs comes first, and a share needs a known total", () => {
  const runs = [1, 2, 3].map((lr) => run(String(lr), { configuration: { batch: 8, lr, max_steps: 20 } }));
  assert.deepEqual(distinguishing(runs, parameterNames(runs)), ["lr", "batch", "max_steps"]);
  assert.equal(shareOf(runs[0]), 0.5);
  assert.equal(shareOf(run("d")), null);
});

test("evaluations are no steps of a training, neither in the order nor in the share", () => {
  const runs = [
    run("a", { last_step: 163, training_step: 124, configuration: { max_steps: 250 } }),
    run("b", { last_step: 150 }),
  ];
  assert.deepEqual(names(arranged(runs, chosen({ sort: "last_step" }))), ["a", "b"]);
  assert.equal(shareOf(runs[0]), 0.5);
});

test("a pinned run comes first in every order", () => {
  const runs = [run("a"), run("b"), run("c", { configuration: { pinned: true } })];
  assert.deepEqual(names(arranged(runs, chosen({}))), ["c", "a", "b"]);
  assert.deepEqual(names(arranged(runs, chosen({ down: true }))), ["c", "b", "a"]);
});

test("groups are by tag, of which a run is in several, or by name without its number", () => {
  const runs = [run("a", { configuration: { tags: "x, y" } }), run("a-2", { configuration: { tags: "y" } }), run("b")];
  assert.deepEqual(names(arranged(runs, chosen({ group: BY_TAG }))), ["(–)", "b", "(x)", "a", "(y)", "a", "a-2"]);
  assert.deepEqual(names(arranged(runs, chosen({ group: BY_NAME }))), ["(a)", "a", "a-2", "(b)", "b"]);
});
