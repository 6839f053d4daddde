// The frame of the page: which screen is shown, whether it is live, light or dark, the keyboard, printing.

import { address, goTo, remember as keep, shown } from "./address.js";
import { live, report as held } from "./api.js";
import { compareScreen } from "./compare.js";
import { dialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { openForPrint } from "./printing.js";
import { runScreen } from "./run.js";
import { runsScreen } from "./runs.js";

/** @typedef {import("./types/screens.js").Screen} Screen */

const main = document.getElementById("main");
const crumbs = document.getElementById("crumbs");
const status = document.getElementById("live");
const problem = document.getElementById("problem");
/** @type {Screen | null} */
let screen = null;
let stopLive = () => {};
let list = "#/"; // with the search, the filters and the order that were chosen last

/** @param {Error | null} error */
function report(error) {
  problem.hidden = !error;
  problem.textContent = error ? error.message || String(error) : "";
}

/** @param {Record<string, any>} values */
function remember(values) {
  keep(values);
  if (!address().name) list = shown();
}

/**
 * @param {boolean} yes
 * @param {string} [message]
 */
function connected(yes, message) {
  status.textContent = yes ? "live" : "not connected";
  status.classList.toggle("is-live", yes);
  document.documentElement.dataset.connected = yes ? "yes" : "no";
  if (message) report(new Error(message));
  else if (yes) report(null);
  else
    report(
      new Error(
        "The connection to smdebug ui is lost. The page may be out of date. It tries to reconnect every 2 seconds.",
      ),
    );
}

// A report begins with its run, which it compares with the other one.
function firstOf(report) {
  return `#/run/${report.run}${report.other ? `?with=${report.other}` : ""}`;
}

function show() {
  if (held && !["run", "compare"].includes(address().name)) goTo(firstOf(held));
  const { name, what } = address();
  stopLive();
  screen?.close();
  report(null);
  if (!name) list = shown() || "#/";
  const frame = { main: replace(main), crumbs: replace(crumbs), report, address, remember, list };
  let runs = [];
  if (name === "run") {
    screen = runScreen(frame, what);
    runs = [what];
  } else if (name === "compare") {
    runs = what.split(",").filter(Boolean);
    screen = compareScreen(frame, runs);
  } else {
    screen = runsScreen(frame);
  }
  const mine = screen;
  if (held) {
    status.textContent = `report of ${held.made}`;
    status.classList.add("is-report");
    mine.refresh().catch(report);
  } else {
    stopLive = live(
      runs,
      () => mine.refresh().then(() => document.documentElement.dataset.connected === "no" || report(null), report),
      connected,
    );
  }
  main.focus({ preventScroll: true });
}

const SHORTCUTS = [
  ["j, k", "next or previous run of the list, or problem of a run"],
  ["↓, ↑", "next or previous run of the list"],
  ["Enter", "open"],
  ["x", "select the run for comparison"],
  ["c", "compare the selected runs"],
  ["/", "search"],
  ["+, −", "zoom in or out in time"],
  ["←, →", "pan in time"],
  ["0", "show all steps"],
  ["u", "back to the list"],
  ["Esc", "close this list, a menu or a tensor; leave a field"],
  ["?", "this list"],
];
const OF_LISTS = new Set(["↓, ↑", "x", "c", "/", "u"]);

function help() {
  const known = held ? SHORTCUTS.filter(([keys]) => !OF_LISTS.has(keys)) : SHORTCUTS;
  const rows = known.map(([keys, text]) => [h("dt", {}, h("kbd", { text: keys })), h("dd", { text })]);
  dialog("Keyboard shortcuts", h("dl", { class: "keys" }, ...rows.flat()));
}

document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const typing = target.closest?.("input, select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "Escape" && typing && !target.closest("dialog")) target.blur();
    return;
  }
  if (event.key === "?") help();
  else if (event.key === "u") location.hash = list;
  else if (!screen?.key(event.key)) return;
  event.preventDefault();
});

/** @param {string | null} [name] */
function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  screen?.redraw();
}

document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const name = dark ? "light" : "dark";
  try {
    localStorage.setItem("smdebug-theme", name);
  } catch {
    // storage may be switched off: the choice lasts until the page is closed
  }
  theme(name);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the part behind # is the address of the screen
  main.focus();
});
document.getElementById("help").addEventListener("click", help);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme());
window.addEventListener("hashchange", () => {
  if (location.hash === shown()) return; // what is chosen is in the address, too: another range is another view
  goTo(location.hash);
  show();
});
openForPrint(() => screen?.redraw());
try {
  theme(localStorage.getItem("smdebug-theme"));
} catch {
  // as above
}
show();
