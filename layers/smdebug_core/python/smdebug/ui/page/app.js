// The frame of the page: which screen is shown, whether it is live, light or dark, the keyboard.

import { live } from "./api.js";
import { compareScreen } from "./compare.js";
import { dialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { runScreen } from "./run.js";
import { runsScreen } from "./runs.js";

const main = document.getElementById("main");
const crumbs = document.getElementById("crumbs");
const status = document.getElementById("live");
const problem = document.getElementById("problem");
let screen = null;
let stopLive = () => {};
let shown = null;
let list = "#/"; // with the search, the filters and the order that were chosen last

export function report(error) {
  problem.hidden = !error;
  problem.textContent = error ? error.message || String(error) : "";
}

// An address: `#/run/ID?kind=gradients`.
export function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  return { name, what: rest.join("/"), values: new URLSearchParams(query || "") };
}

// Keep what is chosen in the address, without a new entry in the history.
export function remember(values) {
  const { name, what, values: known } = address();
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined || value === null || value === "") known.delete(key);
    else known.set(key, value);
  }
  const query = known.toString();
  history.replaceState(null, "", `#/${[name, what].filter(Boolean).join("/")}${query ? `?${query}` : ""}`);
  shown = location.hash;
  if (!name) list = location.hash;
}

function connected(yes, message) {
  status.textContent = yes ? "live" : "not connected";
  status.classList.toggle("is-live", yes);
  document.documentElement.dataset.connected = yes ? "yes" : "no";
  if (message) report(new Error(message));
  else if (!yes) report(new Error("The connection to smdebug ui is lost. The page may be out of date. It tries to reconnect every 2 seconds."));
  else report(null);
}

async function show() {
  const { name, what } = address();
  if (location.hash === shown) return; // what is chosen is in the address, too: another range is another view
  shown = location.hash;
  stopLive();
  screen?.close?.();
  report(null);
  if (!name) list = location.hash || "#/";
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
  stopLive = live(
    runs,
    () => mine.refresh().then(() => document.documentElement.dataset.connected === "no" || report(null), report),
    connected,
  );
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

function help() {
  const rows = SHORTCUTS.map(([keys, text]) => [h("dt", {}, h("kbd", { text: keys })), h("dd", { text })]);
  dialog("Keyboard shortcuts", h("dl", { class: "keys" }, ...rows.flat()));
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "Escape" && typing && !event.target.closest("dialog")) event.target.blur();
    return;
  }
  if (event.key === "?") help();
  else if (event.key === "u") location.hash = list;
  else if (!screen?.key?.(event.key, event)) return;
  event.preventDefault();
});

function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  screen?.redraw?.();
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
window.addEventListener("hashchange", show);
try {
  theme(localStorage.getItem("smdebug-theme"));
} catch {
  // as above
}
show();
