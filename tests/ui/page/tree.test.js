// The tree of modules: which rows are shown, and how an address keeps what is open.

import assert from "node:assert/strict";
import test from "node:test";
import {
  foldingOf,
  openAll,
  openFor,
  shownRows,
  treeOf,
  unfold,
} from "../../../layers/smdebug_core/python/smdebug/ui/page/tree.js";

const NAMES = ["encoder.0.weight", "encoder.0.bias", "encoder.1.weight", "head.weight"];
const shown = (tree) => shownRows(tree).map((row) => row.name);

test("modules with a single child are one row, and a folded module has all of its tensors", () => {
  const tree = treeOf(NAMES);
  assert.deepEqual(shown(tree), ["encoder", "head/weight"]);
  assert.deepEqual(shownRows(tree)[0].rows, [0, 1, 2]);
});

test("modules are opened from the outside to the inside while there is room", () => {
  const tree = treeOf(NAMES);
  openFor(tree, 4);
  assert.deepEqual(shown(tree), ["encoder", "0", "1/weight", "head/weight"]);
  openAll(tree, true);
  assert.deepEqual(shown(tree), ["encoder", "0", "weight", "bias", "1/weight", "head/weight"]);
});

test("an address opens the modules that it was made of", () => {
  const names = Array.from({ length: 60 }, (_, at) => `layer${Math.floor(at / 6)}.${at % 6}.weight`);
  for (const open of [["layer3"], [], ["layer0", "layer9"]]) {
    const tree = treeOf(names);
    for (const child of tree.children.values()) child.open = open.includes(child.path);
    const again = treeOf(names);
    unfold(again, foldingOf(tree, names) || "some");
    assert.deepEqual(shown(again), shown(tree));
  }
});
