// Printing: what is folded is opened, everything is drawn in dark on white, and afterwards all is as before.

export const isPrinting = () => document.documentElement.dataset.printing === "yes";

/** @param {() => void} redraw */
export function openForPrint(redraw) {
  /** @type {HTMLDetailsElement[]} */
  let opened = [];
  let theme = "";
  window.addEventListener("beforeprint", () => {
    theme = document.documentElement.dataset.theme || "";
    document.documentElement.dataset.theme = "light";
    document.documentElement.dataset.printing = "yes";
    opened = [...document.querySelectorAll("main details:not([open]):not(.menu)")].map(
      (each) => /** @type {HTMLDetailsElement} */ (each),
    );
    opened.forEach((each) => (each.open = true));
    redraw();
  });
  window.addEventListener("afterprint", () => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    delete document.documentElement.dataset.printing;
    opened.forEach((each) => (each.open = false));
    opened = [];
    redraw();
  });
}
