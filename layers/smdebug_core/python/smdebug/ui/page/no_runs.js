// What to do about an empty folder.

import { h } from "./dom.js";

/** @param {string[]} places */
export function noRuns(places) {
  return h(
    "div",
    { class: "card nothing" },
    h("h2", { text: "No runs so far" }),
    h("p", {
      text: places.length
        ? `There is no run in ${places.join(", ")}. A run appears here by itself once a training saves its first step.`
        : "A run appears here by itself once a training saves its first step.",
    }),
    h("p", { text: "Watch a training without changing its script, or with one line in it:" }),
    h("pre", { text: 'smdebug run train.py\n\nimport smdebug\nsmdebug.start("runs/a")' }),
    h("p", {
      class: "quiet",
      text: "If the runs are in another folder or a bucket, name it: smdebug ui PATH or smdebug ui s3://bucket/prefix.",
    }),
  );
}
