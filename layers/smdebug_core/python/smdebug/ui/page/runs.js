// The list of runs: a table that draws only the rows on the screen.

import { get } from "./api.js";
import { button, color, h, replace, select, sized } from "./dom.js";
import { count, duration, moment, number, plural } from "./format.js";

const ROW = 34;
const SORTS = {
  name: (run) => run.name.toLowerCase(),
  state: (run) => run.state,
  last_step: (run) => run.last_step ?? -1,
  loss: (run) => run.loss ?? Infinity,
  issues: (run) => -(run.issues ?? -1),
  saved: (run) => -(run.last_saved ?? 0),
  duration: (run) => duration_of(run) ?? -1,
  cost: (run) => run.cost ?? -1,
};
const STATES = ["all", "with problems", "training", "ended", "unreadable"];

function duration_of(run) {
  return run.first_saved && run.last_saved ? run.last_saved - run.first_saved : null;
}

export function sparkline(canvas, values, width = 120, height = 24) {
  const context = sized(canvas, width, height);
  context.clearRect(0, 0, width, height);
  const finite = values.filter((value) => value !== null);
  if (!finite.length) return;
  let low = Math.min(...finite);
  let high = Math.max(...finite);
  const scale = low > 0 && high > 100 * low ? Math.log : (value) => value;
  [low, high] = [scale(low), scale(high)];
  const reach = high - low || 1;
  const x = (at) => 1 + (at / Math.max(1, values.length - 1)) * (width - 2);
  context.strokeStyle = color("curve");
  context.lineWidth = 1.3;
  context.beginPath();
  let pen = false;
  values.forEach((value, at) => {
    if (value === null) {
      pen = false;
      return;
    }
    const y = height - 2 - ((scale(value) - low) / reach) * (height - 4);
    if (pen) context.lineTo(x(at), y);
    else context.moveTo(x(at), y);
    pen = true;
  });
  context.stroke();
  context.fillStyle = color("bad");
  values.forEach((value, at) => value === null && context.fillRect(x(at) - 1, 0, 2, height));
}

export function runsScreen({ main, crumbs, address, remember, report }) {
  let runs = [];
  let rows = [];
  let at = -1;
  const picked = new Set();
  const values = address().values;
  const chosen = {
    search: values.get("search") || "",
    state: values.get("state") || "all",
    sort: values.get("sort") || "saved",
    down: values.get("down") === "1",
    group: values.get("group") || "",
  };
  const search = h("input", {
    type: "search", placeholder: "Search names, verdicts, configuration ( / )", "aria-label": "Search runs", value: chosen.search,
    oninput: () => choose({ search: search.value }),
  });
  const compare = button("Compare", () => openComparison(), { disabled: true });
  const groups = h("span");
  const summary = h("p", { class: "quiet", role: "status" });
  const errors = h("div");
  const body = h("tbody");
  const box = h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Runs", onscroll: () => draw() });
  const columns = [
    ["", ""], ["name", "Run"], ["state", "State"], ["last_step", "Step"], ["", "Loss curve"], ["loss", "Loss"],
    ["issues", "Verdict"], ["duration", "Duration"], ["saved", "Last saved"], ["cost", "Cost"],
  ];
  const heads = columns.map(([key, text]) =>
    h("th", { scope: "col", class: ["Duration", "Last saved", "Cost"].includes(text) ? "less" : "" },
      key ? button(text, () => choose({ sort: key, down: chosen.sort === key && !chosen.down })) : h("span", { text: text || "✓", "aria-label": text || "Selected" })));
  const table = h("table", {}, h("thead", {}, h("tr", {}, ...heads)), body);
  box.append(table);
  replace(crumbs, "Runs");
  replace(main,
    h("h1", { text: "Runs" }),
    h("div", { class: "bar" }, search,
      select("Show", STATES, chosen.state, (state) => choose({ state })), groups,
      h("span", { class: "grow" }), compare),
    errors, summary, box);

  function choose(changes) {
    Object.assign(chosen, changes);
    remember({ ...chosen, down: chosen.down ? "1" : "", state: chosen.state === "all" ? "" : chosen.state });
    arrange();
  }

  function arrange() {
    const words = chosen.search.toLowerCase().split(/\s+/).filter(Boolean);
    rows = runs.filter((run) => {
      if (chosen.state === "with problems" ? !run.issues : chosen.state !== "all" && run.state !== chosen.state) return false;
      const text = `${run.name} ${run.issue} ${JSON.stringify(run.configuration)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const key = SORTS[chosen.sort] || SORTS.saved;
    const order = (a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.name < b.name ? -1 : 1);
    rows.sort((a, b) => (chosen.down ? -order(a, b) : order(a, b)));
    if (chosen.group) {
      const value = (run) => String(run.configuration[chosen.group] ?? "–");
      const by = new Map();
      rows.forEach((run) => by.set(value(run), [...(by.get(value(run)) || []), run]));
      rows = [...by].sort(([a], [b]) => a.localeCompare(b, undefined, { numeric: true }))
        .flatMap(([name, members]) => [{ group: name, members }, ...members]);
    }
    heads.forEach((head, place) => {
      const [name] = columns[place];
      if (name === chosen.sort) head.setAttribute("aria-sort", chosen.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const troubled = runs.filter((run) => run.issues).length;
    summary.textContent = `${plural(runs.length, "run")}, ${runs.filter((run) => run.state === "training").length} training, ${troubled} with problems` +
      (rows.length === runs.length || chosen.group ? "" : `; ${rows.length} shown`);
    draw();
  }

  function draw() {
    const height = box.clientHeight || 600;
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 8);
    const last = Math.min(rows.length, first + Math.ceil(height / ROW) + 16);
    const space = (size) => h("tr", { class: "space", "aria-hidden": "true" }, h("td", { colspan: columns.length, height: size }));
    table.setAttribute("aria-rowcount", rows.length + 1);
    replace(body, space(first * ROW), ...rows.slice(first, last).map((run, place) => row(run, first + place)), space((rows.length - last) * ROW));
    body.querySelectorAll("canvas").forEach((canvas) => sparkline(canvas, canvas.values));
    compare.disabled = picked.size < 2;
    compare.textContent = picked.size ? `Compare ${picked.size}` : "Compare";
  }

  function row(run, place) {
    if (run.group !== undefined) {
      return h("tr", { class: "group" }, h("th", { colspan: columns.length, scope: "rowgroup", text: `${chosen.group} = ${run.group} (${run.members.length})` }));
    }
    const canvas = h("canvas", { role: "img", "aria-label": run.curve.length ? `${run.loss_name || "loss"}, now ${number(run.loss)}` : "no loss yet" });
    canvas.values = run.curve;
    const check = h("input", { type: "checkbox", "aria-label": `Select ${run.name}`, onchange: () => pick(run) });
    check.checked = picked.has(run.id);
    return h("tr", { class: `${picked.has(run.id) ? "picked" : ""} ${place === at ? "at" : ""}`, "aria-rowindex": place + 2 },
      h("td", {}, check),
      h("td", { title: run.path }, h("a", { href: `#/run/${run.id}`, text: run.name })),
      h("td", { text: run.error ? `${run.state}: ${run.error}` : run.state, title: run.error || null, class: run.error ? "bad" : "" }),
      h("td", { text: count(run.last_step) }),
      h("td", {}, canvas),
      h("td", { text: number(run.loss) }),
      h("td", { class: "wide", title: run.issue }, verdict(run)),
      h("td", { class: "less", text: duration(duration_of(run)) }),
      h("td", { class: "less", text: moment(run.last_saved) }),
      h("td", { class: "less", text: run.cost === null ? "–" : `$${number(run.cost)}` }));
  }

  function verdict(run) {
    if (run.issues === null) return h("span", { class: "quiet", text: "open to check" });
    if (!run.issues) return h("span", { class: "good", text: "✓ no problem detected" });
    return h("span", { class: "bad", text: `✗ ${run.issue}` });
  }

  function pick(run) {
    if (!picked.delete(run.id)) picked.add(run.id);
    draw();
  }

  function openComparison() {
    if (picked.size >= 2) location.hash = `#/compare/${[...picked].join(",")}`;
  }

  function move(by) {
    do at = Math.min(rows.length - 1, Math.max(0, at + by));
    while (rows[at]?.group !== undefined && at > 0 && at < rows.length - 1);
    const top = at * ROW;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + 2 * ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + 3 * ROW - box.clientHeight;
    draw();
  }

  const resize = () => draw();
  window.addEventListener("resize", resize);
  return {
    async refresh() {
      const found = await get("runs");
      runs = found.runs;
      replace(errors, ...found.errors.map((text) => h("p", { class: "problem", text })));
      const names = [...new Set(runs.flatMap((run) => Object.keys(run.configuration)))].sort();
      replace(groups, names.length ? select("Group by", [["", "nothing"], ...names.map((name) => [name, name])], chosen.group, (group) => choose({ group })) : null);
      arrange();
    },
    key(key) {
      if (key === "j" || key === "ArrowDown") move(1);
      else if (key === "k" || key === "ArrowUp") move(-1);
      else if (key === "Enter" && rows[at]?.id && document.activeElement?.tagName !== "BUTTON" && document.activeElement?.tagName !== "A") location.hash = `#/run/${rows[at].id}`;
      else if (key === "x" && rows[at]?.id) pick(rows[at]);
      else if (key === "c") openComparison();
      else if (key === "/") search.focus();
      else return false;
      return true;
    },
    redraw: draw,
    close: () => window.removeEventListener("resize", resize),
    report,
  };
}
