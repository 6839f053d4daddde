// A detected problem: its headline, the evidence, what to try.

import { button, h } from "./dom.js";

export function issueCard(issue, place, onsetClicked) {
  const rows = issue.parts.flatMap(([label, texts]) => [
    h("dt", { text: label }),
    h(
      "dd",
      {},
      ...texts.map((text) =>
        /^https:\/\//.test(text)
          ? h("div", {}, h("a", { href: text, text, rel: "noreferrer", target: "_blank" }))
          : h("div", { text }),
      ),
    ),
  ]);
  return h(
    "article",
    { class: "card issue", tabindex: "-1" },
    h("h3", { class: "bad", text: `${place + 1}. ${issue.headline}` }),
    h("div", { text: issue.sentence }),
    h("dl", {}, ...rows),
    onsetClicked
      ? h(
          "p",
          {},
          button(`Show step ${issue.since}`, () => onsetClicked(issue), { class: "link" }),
        )
      : null,
  );
}
