// A dialog: a title, its content, and actions of which each closes it unless it fails.

import { button, h } from "./dom.js";

export function dialog(title, content, actions = []) {
  const close = () => {
    box.close();
    box.remove();
  };
  const box = h(
    "dialog",
    { "aria-label": title, onclose: () => box.remove() },
    h("h2", { text: title }),
    content,
    h(
      "p",
      { class: "actions" },
      ...actions.map(([text, act, kind]) =>
        button(
          text,
          async () => {
            try {
              if ((await act()) !== false) close();
            } catch (error) {
              const line = box.querySelector(".problem") || h("p", { class: "problem", role: "alert" });
              line.textContent = error.message;
              content.append(line);
            }
          },
          { class: kind || "" },
        ),
      ),
      button(actions.length ? "Cancel" : "Close", close),
    ),
  );
  document.body.append(box);
  box.showModal();
  return box;
}
