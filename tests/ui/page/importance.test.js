import assert from "node:assert/strict";
import test from "node:test";
import {
  groupsOf,
  importances,
  placesOn,
  ranksOf,
  shareBetween,
} from "../../../layers/smdebug_core/python/smdebug/ui/page/importance.js";

const RUNS = Array.from({ length: 16 }, (_, at) => at);

test("equal values share their mean rank", () => {
  assert.deepEqual(ranksOf([3, 1, 3, 2]), [2.5, 0, 2.5, 1]);
});

test("groups that decide the loss explain its ranks, and groups that do not hardly do", () => {
  const losses = RUNS.map((at) => (at % 2 ? 1 : 5) + at / 100);
  const adam = RUNS.map((at) => (at % 2 ? "adam" : "sgd"));
  const other = RUNS.map((at) => (at % 4 < 2 ? "a" : "b"));
  assert.ok(shareBetween(adam, losses) > 0.7);
  assert.ok(shareBetween(other, losses) < 0.1);
  assert.equal(
    shareBetween(
      RUNS.map(() => 1),
      losses,
    ),
    0,
  );
});

test("an optimum in the middle is seen", () => {
  const rates = RUNS.map((at) => 10 ** (-4 + at / 5));
  const losses = RUNS.map((at) => Math.abs(at - 7.5));
  assert.ok(shareBetween(groupsOf(rates), losses) > 0.5);
  const [rate] = importances(
    rates.map((lr) => ({ lr })),
    losses,
  );
  assert.ok(rate.best[0] > 1e-3 && rate.best[1] < 0.02);
});

test("the parameter that decides comes first, with an interval around it", () => {
  const noise = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3];
  const configurations = RUNS.map((at) => ({ seed: noise[at], lr: 10 ** -(at % 4), same: 1, name: `run ${at}` }));
  const losses = RUNS.map((at) => (at % 4) + noise[at] / 100);
  const found = importances(configurations, losses);
  assert.deepEqual(
    found.map(({ name }) => name),
    ["lr", "seed"],
  );
  const [lr, seed] = found;
  assert.deepEqual(lr.best, [1]);
  assert.ok(lr.low <= lr.share && lr.share <= lr.high && lr.low > 0.8);
  assert.ok(seed.share < lr.low && seed.high > seed.low);
  assert.deepEqual(importances(configurations, losses), found, "resampling gives the same again");
});

test("few runs have no importance", () => {
  assert.deepEqual(
    importances(
      RUNS.slice(0, 7).map((at) => ({ lr: at })),
      RUNS.slice(0, 7),
    ),
    [],
  );
});

test("values over powers of ten are on a logarithmic axis, and names one after the other", () => {
  const rates = placesOn([0.001, 0.01, 0.1, null]);
  assert.ok(rates.isLog);
  assert.deepEqual(
    rates.places.map((place) => (place === null ? null : Math.round(10 * place) / 10)),
    [0, 0.5, 1, null],
  );
  assert.deepEqual(placesOn(["b", "a", "c"]).places, [0.5, 0, 1]);
});
