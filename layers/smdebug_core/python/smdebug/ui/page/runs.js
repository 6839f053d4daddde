// The list of runs: a table that draws only the rows on the screen.

import { get } from "./api.js";
import { button, color, h, menu, replace, select, sized } from "./dom.js";
import { ago, count, duration, moment, number, plural } from "./format.js";
import { oneAtATime } from "./refreshing.js";

const ROW = 34;
const SORTS = {
  name: (run) => run.name.toLowerCase(),
  state: (run) => run.state,
  last_step: (run) => run.last_step ?? -1,
  loss: (run) => run.loss ?? Infinity,
  issues: (run) => -(run.issues ?? -1),
  saved: (run) => -(run.last_saved ?? 0),
  duration: (run) => run.duration ?? -1,
  cost: (run) => run.cost ?? -1,
};
const STATES = ["all", "with problems", "training", "ended", "unreadable"];

const NOT_PARAMETERS = new Set(["tags", "note", "commit"]);
const TOTALS = ["max_steps", "total_steps", "num_train_steps", "num_steps", "steps"];
const mostColumns = () => [1000, 1200, 1500, 1600, 1800, 2000, 2200].filter((width) => window.innerWidth >= width).length; // of parameters, unless others are chosen

const tagsOf = (run) => String(run.configuration.tags || "").split(", ").filter(Boolean);
const words_of = (value) => (value === undefined || value === null ? "–" : typeof value === "number" ? number(value) : String(value));

// How far a training is, where its configuration says how long it will take.
function share_of(run) {
  const total = TOTALS.map((name) => run.configuration[name]).find((value) => typeof value === "number" && value > 0);
  return total && run.last_step !== null ? Math.min(1, (run.last_step + 1) / total) : null;
}

// Numbers by size, before texts by letters; what is missing comes last.
function byValue(name) {
  return (run) => {
    const value = run.configuration[name];
    return typeof value === "number" ? [0, value] : value === undefined || value === null ? [2, ""] : [1, String(value)];
  };
}

function compared(a, b) {
  const [left, right] = Array.isArray(a) ? [a, b] : [[0, a], [0, b]];
  return left[0] - right[0] || (left[1] < right[1] ? -1 : left[1] > right[1] ? 1 : 0);
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
  const each = (width - 2) / Math.max(1, values.length - 1);
  values.forEach((value, at) => value === null && context.fillRect(x(at) - each / 2, 0, Math.max(2, each), height));
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
    tag: values.get("tag") || "",
    columns: values.has("columns") ? values.get("columns") : null,
  };
  let parameters = [];
  let looking = true;
  let places = [];
  const search = h("input", {
    type: "search", placeholder: "Search runs ( / )", title: "Names, verdicts and configuration", "aria-label": "Search runs", value: chosen.search,
    oninput: () => choose({ search: search.value }),
  });
  const compare = button("Compare", () => openComparison(), { disabled: true });
  const groups = h("span", { class: "joined" });
  const summary = h("p", { class: "quiet", role: "status" });
  const errors = h("div");
  const empty = h("div");
  const tags = h("span", { class: "joined" });
  const columnsMenu = h("span", { class: "joined" });
  const body = h("tbody");
  const box = h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Runs", onscroll: () => draw() });
  let columns = [];
  let heads = [];
  const headRow = h("tr");
  const table = h("table", {}, h("thead", {}, headRow), body);

  const shownParameters = () => (chosen.columns === null ? parameters.slice(0, mostColumns()) : chosen.columns.split("|").filter((name) => parameters.includes(name)));

  const hasCost = () => runs.some((run) => run.cost !== null);

  function drawHead() {
    const known = columns.map(([key]) => key).join("|");
    columns = [
      ["", ""], ["name", "Run"], ["state", "State"], ["last_step", "Step"], ["", "Loss curve"], ["loss", "Loss"],
      ["issues", "Verdict"], ...shownParameters().map((name) => [`=${name}`, name]), ["duration", "Duration"], ["saved", "Last saved"],
      ...(hasCost() ? [["cost", "Cost"]] : []),
    ];
    if (heads.length && known === columns.map(([key]) => key).join("|")) return;
    heads = columns.map(([key, text]) => h("th", { scope: "col", class: isLess(key) },
      key ? button(text, () => choose({ sort: key, down: chosen.sort === key && !chosen.down }), { title: `Sort by ${text}` }) : h("span", { text: text || "✓", "aria-label": text || "Selected" })));
    replace(headRow, ...heads);
  }

  const isLess = (key) => (["duration", "saved", "cost"].includes(key) || key.startsWith("=") ? "less" : "");
  box.append(table);
  replace(crumbs, "Runs");
  replace(main,
    h("h1", { text: "Runs" }),
    h("div", { class: "bar" }, search,
      select("Show", STATES, chosen.state, (state) => choose({ state })), tags, groups, columnsMenu,
      h("span", { class: "grow" }), compare),
    errors, summary, box, empty);

  function choose(changes) {
    Object.assign(chosen, changes);
    remember({ ...chosen, down: chosen.down ? "1" : "", state: chosen.state === "all" ? "" : chosen.state });
    if (chosen.columns === "") remember({ columns: "|" }); // chosen: none
    arrange();
  }

  function arrange() {
    const words = chosen.search.toLowerCase().split(/\s+/).filter(Boolean);
    rows = runs.filter((run) => {
      if (chosen.state === "with problems" ? !run.issues : chosen.state !== "all" && run.state !== chosen.state) return false;
      if (chosen.tag && !tagsOf(run).includes(chosen.tag)) return false;
      const text = `${run.name} ${run.issue} ${JSON.stringify(run.configuration)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const key = chosen.sort.startsWith("=") ? byValue(chosen.sort.slice(1)) : SORTS[chosen.sort] || SORTS.saved;
    const order = (a, b) => compared(key(a), key(b)) || (a.name < b.name ? -1 : 1);
    drawHead();
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
    // A folder without runs is listed as the place of one that has not begun.
    const isEmpty = !looking && runs.every((run) => !run.steps && run.state === "waiting" && places.length === 1);
    replace(empty, isEmpty ? nothing() : runs.length ? (rows.length ? null : h("p", { class: "quiet", text: "No run matches. Clear the search and the filters to see all runs." })) : h("p", { class: "quiet", role: "status", text: "Looking for runs …" }));
    box.hidden = !rows.length || isEmpty;
    const troubled = runs.filter((run) => run.issues).length;
    summary.textContent = `${plural(runs.length, "run")}, ${runs.filter((run) => run.state === "training").length} training, ${troubled} with problems` +
      (rows.length === runs.length || chosen.group ? "" : `; ${rows.length} shown`);
    summary.hidden = isEmpty;
    draw();
  }

  // What to do about an empty folder.
  function nothing() {
    return h("div", { class: "card nothing" },
      h("h2", { text: "No runs so far" }),
      h("p", { text: places.length ? `There is no run in ${places.join(", ")}. A run appears here by itself once a training saves its first step.` : "A run appears here by itself once a training saves its first step." }),
      h("p", { text: "Watch a training without changing its script, or with one line in it:" }),
      h("pre", { text: 'smdebug run train.py\n\nimport smdebug\nsmdebug.start("runs/a")' }),
      h("p", { class: "quiet", text: "If the runs are in another folder or a bucket, name it: smdebug ui PATH or smdebug ui s3://bucket/prefix." }));
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
      h("td", { title: run.path }, h("a", { href: `#/run/${run.id}`, text: run.name }), ...tagsOf(run).slice(0, 4).map((tag) =>
        button(tag, () => setTag(tag === chosen.tag ? "" : tag), { class: "tag", "aria-pressed": String(tag === chosen.tag), title: `Only runs tagged ${tag}` }))),
      h("td", { text: run.error ? `${run.state}: ${run.error}` : run.state, title: run.error || null, class: `${run.error ? "bad" : ""} state-${run.state}` }),
      h("td", {}, h("span", { text: count(run.last_step) }), progress_of(run)),
      h("td", {}, canvas),
      h("td", { text: number(run.loss) }),
      h("td", { class: "wide", title: run.issue }, verdict(run)),
      ...shownParameters().map((name) => h("td", { class: "less", text: words_of(run.configuration[name]), title: String(run.configuration[name] ?? "not recorded") })),
      h("td", { class: "less", text: duration(run.duration) }),
      h("td", { class: "less", text: ago(run.last_saved), title: moment(run.last_saved) }),
      !hasCost() ? null : h("td", { class: "less", text: run.cost === null ? "–" : `$${run.cost.toFixed(2)}`, title: run.cost_title }));
  }

  function progress_of(run) {
    const share = share_of(run);
    return share === null || run.state !== "training" ? null : h("progress", { max: 1, value: share, "aria-label": `${Math.round(100 * share)} % of the steps`, title: `${Math.round(100 * share)} % of the steps` });
  }

  function verdict(run) {
    if (run.issues) return h("span", { class: "bad", text: `✗ ${run.issue}` });
    if (run.issues === 0 && run.passed === 0) return h("span", { class: "quiet", title: "The run lacks the data that the rules check", text: "no rule could check it" });
    if (run.issues === 0) return h("span", { class: "good", text: run.check === "checking" ? `✓ no problem in ${plural(run.checked, "step")}, checking …` : "✓ no problem detected" });
    if (run.state === "unknown") return h("span", { class: "quiet", text: "being read …" });
    const words = { checking: "checking …", waiting: run.steps ? "waiting to be checked" : "", off: "open to check", done: "not checked" };
    return h("span", { class: "quiet", text: words[run.check] ?? run.check });
  }

  function setTag(tag) {
    tagSelect.value = tag;
    choose({ tag });
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

  let tagSelect = { value: "" };
  let known = "";

  // Choices of parameters and tags: those that distinguish the runs come first.
  function describeParameters() {
    const values = new Map();
    for (const run of runs) {
      for (const [name, value] of Object.entries(run.configuration)) {
        if (!values.has(name)) values.set(name, new Set());
        values.get(name).add(String(value));
      }
    }
    const names = [...values.keys()];
    // How many runs have another value than most: a parameter that only one run changes tells little.
    const differing = new Map(names.map((name) => {
      const times = new Map();
      for (const run of runs) times.set(String(run.configuration[name]), (times.get(String(run.configuration[name])) || 0) + 1);
      return [name, runs.length - Math.max(...times.values())];
    }));
    parameters = names.filter((name) => !NOT_PARAMETERS.has(name)).sort((a, b) => differing.get(b) - differing.get(a) || a.localeCompare(b));
    const allTags = [...new Set(runs.flatMap(tagsOf))].sort();
    const key = JSON.stringify([names, allTags, parameters]);
    if (key === known) return;
    known = key;
    replace(groups, names.length ? select("Group by", [["", "nothing"], ...names.sort().map((name) => [name, name])], chosen.group, (group) => choose({ group })) : null);
    replace(tags, allTags.length ? select("Tag", [["", "any"], ...allTags.map((tag) => [tag, tag])], chosen.tag, (tag) => choose({ tag })) : null);
    tagSelect = tags.querySelector("select") || { value: "" };
    replace(columnsMenu, parameters.length ? menu("Columns", "Columns of parameters", parameters.slice(0, 60).map((name) => {
      const check = h("input", { type: "checkbox", onchange: () => {
        const shown = shownParameters();
        choose({ columns: (check.checked ? [...shown, name] : shown.filter((each) => each !== name)).join("|") });
      } });
      check.checked = shownParameters().includes(name);
      return h("label", {}, check, h("span", { text: name }));
    })) : null);
  }

  let closed = false;
  const resize = () => draw();
  window.addEventListener("resize", resize);
  return {
    refresh: oneAtATime(async () => {
      const found = await get("runs");
      runs = found.runs;
      looking = found.looking;
      places = found.places;
      describeParameters();
      replace(errors, ...found.errors.map((text) => h("p", { class: "problem", text })));
      arrange();
    }, { isClosed: () => closed }),
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
    close() {
      closed = true;
      window.removeEventListener("resize", resize);
    },
    report,
  };
}
