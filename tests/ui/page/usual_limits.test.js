// The limits of an axis that many runs share.

import assert from "node:assert/strict";
import test from "node:test";
import { usualLimits } from "../../../layers/smdebug_core/python/smdebug/ui/page/usual_limits.js";

const curve = (...values) => ({ low: values, high: values });
const FALLING = [curve(2, 1.5, 1), curve(2.2, 1.4, 0.9), curve(2.1, 1.6, 1.2)];

test("runs that are alike share an axis with all of their values", () => {
  assert.equal(usualLimits(FALLING), null);
  assert.equal(usualLimits([...FALLING, curve(6, 4, 3)]), null);
  assert.equal(usualLimits([curve(1, 1, 1), curve(1, 1, 1)]), null);
});

test("a run that explodes does not flatten the others, whichever way, even a single one", () => {
  assert.deepEqual(usualLimits([...FALLING, curve(2, 50, 1e9)]), [0.9, 2.2]);
  assert.deepEqual(usualLimits([curve(2, -1e5, -1e6), ...FALLING]), [0.9, 2.2]);
  assert.deepEqual(usualLimits([curve(2, 50, 1e9), curve(2, 1.5, 1)]), [1, 2]);
});

test("a run at another level is not hidden, nor one that begins lower", () => {
  assert.equal(usualLimits([curve(1e-3, 5e-4), curve(0.1, 0.05)]), null);
  assert.equal(usualLimits([curve(0.9, 0.91), curve(0.1, 0.99)]), null);
});

test("a jump of a few values in an ordinary run is cut, too", () => {
  const jump = curve(...Array.from({ length: 100 }, (_, at) => (at === 40 ? 1e6 : 2 - at / 100)));
  const [low, high] = usualLimits([...FALLING, jump]);
  assert.ok(low >= 0.9 && high <= 2.2);
});

test("values that are missing or not finite limit nothing, and one run is shown as it is", () => {
  assert.equal(usualLimits([null, { low: [null, NaN], high: [null, Infinity] }, ...FALLING]), null);
  assert.equal(usualLimits([curve(1, 1e9)]), null);
  assert.equal(usualLimits([]), null);
});
