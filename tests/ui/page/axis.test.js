import assert from "node:assert/strict";
import test from "node:test";
import {
  Axis,
  NO_AXES,
  across,
  axesOf,
  back,
  markOf,
  placeInWords,
  placesBetween,
} from "../../../layers/smdebug_core/python/smdebug/ui/page/axis.js";
import { lastEpochs } from "../../../layers/smdebug_core/python/smdebug/ui/page/lines.js";

// Ten training steps, an evaluation of three, ten training steps; an epoch has five of them.
const RUN = {
  training_steps: [
    [0, 0],
    [9, 9],
    [13, 10],
    [22, 19],
  ],
  epochs: [
    [0, 0],
    [5, 1],
    [10, 2],
    [15, 3],
    [20, 4],
  ],
  no_epochs: "",
  times: [
    [0, 0],
    [10, 20],
    [22, 140],
  ],
};

test("steps of the run and training steps are on one line", () => {
  assert.equal(across(RUN.training_steps, 5), 5);
  assert.equal(across(RUN.training_steps, 13), 10);
  assert.equal(across(RUN.training_steps, 30), 19);
  assert.equal(back(RUN.training_steps, 15), 18);
  assert.equal(across([], 7), 7);
});

test("a step has a place on each axis, and the place leads back to it", () => {
  const places = { steps: 18, training: 15, epochs: 3, time: 100 };
  for (const [name, place] of Object.entries(places)) {
    const axis = new Axis(RUN, /** @type {any} */ (name));
    assert.equal(axis.at(18), place);
    assert.equal(axis.stepAt(place), 18);
  }
});

test("an evaluation is at the end of its epoch", () => {
  const curve = { first: [10], training_steps: [9] };
  assert.deepEqual(new Axis(RUN, "epochs").placesOf(curve, true), [2]);
  assert.deepEqual(new Axis(RUN, "epochs").placesOf(curve, false), [1.8]);
});

test("the mean of an epoch is drawn where the epoch ends", () => {
  assert.equal(new Axis(RUN, "epochs").endOfEpoch(3), 3);
  assert.equal(new Axis(RUN, "training").endOfEpoch(3), 15);
  assert.equal(new Axis(RUN, "steps").endOfEpoch(3), 18);
  assert.equal(new Axis(RUN, "time").endOfEpoch(3), 100);
});

test("an axis that no run has is not offered, and says why", () => {
  const labels = axesOf([{ ...NO_AXES, no_epochs: "one epoch so far" }]).map(({ label }) => label);
  assert.deepEqual(labels, [
    "Every step",
    "Training steps (the same)",
    "Epochs (one epoch so far)",
    "Time (not recorded)",
  ]);
  assert.ok(axesOf([NO_AXES, RUN]).every(({ isOffered }) => isOffered));
  assert.ok(new Axis(NO_AXES, "time").isMissing);
  assert.ok(!new Axis(NO_AXES, "training").isMissing);
});

test("a place is said as people say it", () => {
  assert.deepEqual(
    [0, 75, 3661, 0.5].map((seconds) => markOf("time", seconds)),
    ["0 s", "1:15", "1:01:01", "0.5 s"],
  );
  assert.equal(placeInWords("epochs", 2.414), "epoch 2.41");
  assert.equal(placeInWords("time", 75.4), "after 1:15");
  assert.equal(placeInWords("training", 1200.9), "step 1,200");
});

test("the last epochs have the mean of each line", () => {
  const of = (...means) => /** @type {any} */ ({ epoch_means: means });
  const lines = [of([1, 3], [2, 2], [3, 1]), of([2, 2.5]), null];
  assert.deepEqual(lastEpochs(lines, 2), [
    [2, [2, 2.5, null]],
    [3, [1, null, null]],
  ]);
});

test("marks of an axis are at round places", () => {
  assert.deepEqual(placesBetween("steps", 0, 95, 5), [0, 20, 40, 60, 80]);
  assert.deepEqual(placesBetween("time", 0, 7000, 5), [0, 1800, 3600, 5400]);
  assert.deepEqual(placesBetween("epochs", 0, 0.9, 5), [0, 0.2, 0.4, 0.6, 0.8]);
});
