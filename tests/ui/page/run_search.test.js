// The search in the list of runs: words, conditions and `failing`.

import assert from "node:assert/strict";
import test from "node:test";
import { matcher } from "../../../layers/smdebug_core/python/smdebug/ui/page/run_search.js";

const RUNS = [
  {
    ...{ name: "first", state: "ended", issue: "", issues: 0, loss: 0.1, steps: 9, last_step: 90, duration: 5 },
    configuration: { "optimizer.lr": 0.001, optimizer: "Adam", amp: true, tags: "sweep, old", note: "a b" },
    metrics: { accuracy: 0.9 },
  },
  {
    ...{ name: "second", state: "training", issue: "loss is NaN", issues: 2, loss: null, steps: 3, last_step: 2 },
    configuration: { lr: 0.01, "model.lr": 1, optimizer: "SGD", amp: false },
    metrics: {},
  },
];
const found = (search) => RUNS.filter(matcher(search)).map((run) => run.name);

const SEARCHES = {
  "": ["first", "second"],
  "NAN second": ["second"],
  failing: ["second"],
  "loss<0.2": ["first"],
  "loss<=0.1": ["first"],
  "loss<0.1": [],
  "loss>=0": ["first"], // the other has none
  "loss!=0.1": ["second"],
  "lr=1e-3": ["first"],
  "lr=0.01": ["second"], // its own name comes before one that ends so
  "lr>0 failing": ["second"],
  "optimizer=adam": ["first"],
  "optimizer~d": ["first", "second"],
  "amp=true": ["first"],
  "amp=1": [],
  "tags=old": ["first"],
  "tags=ol": [],
  "tags!=old": ["second"],
  "accuracy>0.8": ["first"],
  "steps<5": ["second"],
  "problems>=2": ["second"],
  'note="a b"': ["first"],
  "nothing=1": [],
  "learning_rate=0.001": [], // measured, which it was not
  "optimizer<3": [],
  "loss<": [], // not finished: a word
};

test("runs match by words, conditions and whether they fail", () => {
  for (const [search, names] of Object.entries(SEARCHES)) assert.deepEqual(found(search), names, search);
});

test("the measured learning rate is the lr of a run whose configuration names none", () => {
  const measured = { ...RUNS[0], configuration: { seed: 16777217 }, metrics: { learning_rate: 0.0010000000474974513 } };
  assert.ok(matcher("lr=1e-3")(measured));
  assert.ok(matcher("lr<2e-3")(measured));
  assert.ok(!matcher("lr=1.001e-3")(measured));
  assert.ok(!matcher("seed=16777216")(measured));
  assert.ok(!matcher("lr=1e-3")({ ...measured, configuration: { lr: 0.1 } }));
});
