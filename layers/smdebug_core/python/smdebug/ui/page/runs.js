// The list of runs: a table that draws only the rows on the screen.

import { get } from "./api.js";
import { button, h, menu, replace, select } from "./dom.js";
import { ago, count, duration, moment, number, plural } from "./format.js";
import { noRuns } from "./no_runs.js";
import { oneAtATime } from "./refreshing.js";
import { arranged, BY_NAME, BY_TAG, distinguishing, isPinned, parameterNames, shareOf, tagsOf } from "./runs_order.js";
import { stepOf, valueOf } from "./run_values.js";
import { verdictOf } from "./run_verdict.js";
import { sparkline } from "./sparkline.js";

const ROW = 34;
const GROUPS = { [BY_TAG]: "tag", [BY_NAME]: "name" };
const STATES = ["all", "with problems", "training", "failed", "ended", "unreadable"];

// Columns of parameters, unless others are chosen.
const mostColumns = () =>
  [1000, 1200, 1500, 1600, 1800, 2000, 2200].filter((width) => window.innerWidth >= width).length;

const words_of = (value) =>
  value === undefined || value === null ? "–" : typeof value === "number" ? number(value) : String(value);

export function runsScreen({ main, crumbs, address, remember, report }) {
  let runs = [];
  let rows = [];
  let at = -1;
  const picked = new Set();
  const drawCurves = [];
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
    type: "search",
    placeholder: "Search runs ( / )",
    title: "Words of names, verdicts and configuration; conditions such as loss<0.2 lr=1e-3; failing",
    "aria-label": "Search runs",
    value: chosen.search,
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

  const shownParameters = () =>
    chosen.columns === null
      ? parameters.slice(0, mostColumns())
      : chosen.columns.split("|").filter((name) => parameters.includes(name));

  const hasCost = () => runs.some((run) => run.cost !== null);

  function drawHead() {
    const known = columns.map(([key]) => key).join("|");
    columns = [
      ["", ""],
      ["name", "Run"],
      ["state", "State"],
      ["last_step", "Step"],
      ["", "Loss curve"],
      ["loss", "Loss"],
      ["issues", "Verdict"],
      ...shownParameters().map((name) => [`=${name}`, name]),
      ["duration", "Duration"],
      ["saved", "Last saved"],
      ...(hasCost() ? [["cost", "Cost"]] : []),
    ];
    if (heads.length && known === columns.map(([key]) => key).join("|")) return;
    heads = columns.map(([key, text]) =>
      h(
        "th",
        { scope: "col", class: isLess(key) },
        key
          ? button(text, () => choose({ sort: key, down: chosen.sort === key && !chosen.down }), {
              title: `Sort by ${text}`,
            })
          : h("span", { text: text || "✓", "aria-label": text || "Selected" }),
      ),
    );
    replace(headRow, ...heads);
  }

  const isLess = (key) => (["duration", "saved", "cost"].includes(key) || key.startsWith("=") ? "less" : "");
  box.append(table);
  replace(crumbs, "Runs");
  replace(
    main,
    h("h1", { text: "Runs" }),
    h(
      "div",
      { class: "bar" },
      search,
      select("Show", STATES, chosen.state, (state) => choose({ state })),
      tags,
      groups,
      columnsMenu,
      h("span", { class: "grow" }),
      compare,
    ),
    errors,
    summary,
    box,
    empty,
  );

  function choose(changes) {
    Object.assign(chosen, changes);
    remember({ ...chosen, down: chosen.down ? "1" : "", state: chosen.state === "all" ? "" : chosen.state });
    if (chosen.columns === "") remember({ columns: "|" }); // chosen: none
    arrange();
  }

  function arrange() {
    drawHead();
    rows = arranged(runs, chosen);
    heads.forEach((head, place) => {
      const [name] = columns[place];
      if (name === chosen.sort) head.setAttribute("aria-sort", chosen.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    // A folder without runs is listed as the place of one that has not begun.
    const isEmpty = !looking && runs.every((run) => !run.steps && run.state === "waiting" && places.length === 1);
    replace(
      empty,
      isEmpty
        ? noRuns(places)
        : runs.length
          ? rows.length
            ? null
            : h("p", { class: "quiet", text: "No run matches. Clear the search and the filters to see all runs." })
          : h("p", { class: "quiet", role: "status", text: "Looking for runs …" }),
    );
    box.hidden = !rows.length || isEmpty;
    const training = runs.filter((run) => run.state === "training").length;
    const troubled = runs.filter((run) => run.issues).length;
    summary.textContent =
      `${plural(runs.length, "run")}, ${training} training, ${troubled} with problems` +
      (rows.length === runs.length || chosen.group ? "" : `; ${rows.length} shown`);
    summary.hidden = isEmpty;
    draw();
  }

  function draw() {
    const height = box.clientHeight || 600;
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 8);
    const last = Math.min(rows.length, first + Math.ceil(height / ROW) + 16);
    const space = (size) =>
      h("tr", { class: "space", "aria-hidden": "true" }, h("td", { colspan: columns.length, height: size }));
    table.setAttribute("aria-rowcount", rows.length + 1);
    replace(
      body,
      space(first * ROW),
      ...rows.slice(first, last).map((run, place) => row(run, first + place)),
      space((rows.length - last) * ROW),
    );
    drawCurves.splice(0).forEach((drawCurve) => drawCurve());
    const compared = comparedRuns();
    compare.disabled = compared.length < 2;
    compare.textContent =
      picked.size === 1 && compared.length > 1
        ? "Compare with the baseline"
        : picked.size
          ? `Compare ${picked.size}`
          : "Compare";
  }

  function row(run, place) {
    if (run.group !== undefined) {
      return h(
        "tr",
        { class: "group" },
        h("th", {
          colspan: columns.length,
          scope: "rowgroup",
          text: `${GROUPS[chosen.group] || chosen.group} = ${run.group} (${run.members.length})`,
        }),
      );
    }
    const canvas = h("canvas", {
      role: "img",
      "aria-label": run.curve.length ? `${run.loss_name || "loss"}, now ${number(run.loss)}` : "no loss yet",
    });
    drawCurves.push(() => sparkline(canvas, run.curve)); // once it is in the page
    const check = h("input", { type: "checkbox", "aria-label": `Select ${run.name}`, onchange: () => pick(run) });
    check.checked = picked.has(run.id);
    return h(
      "tr",
      { class: `${picked.has(run.id) ? "picked" : ""} ${place === at ? "at" : ""}`, "aria-rowindex": place + 2 },
      h("td", {}, check),
      h(
        "td",
        { title: run.path, class: tagsOf(run).length ? "named tagged" : "named" },
        isPinned(run)
          ? h("span", { class: "pin", text: "★", role: "img", "aria-label": "Pinned as a baseline" })
          : null,
        h("a", { href: `#/run/${run.id}`, text: run.name, title: run.configuration.note || null }),
        tagsOf(run).length ? tagButtons(run) : null,
      ),
      h("td", {
        text: run.error ? `${run.state}: ${run.error}` : run.state,
        title: run.error || null,
        class: `${run.error ? "bad" : ""} state-${run.state}`,
      }),
      h("td", {}, h("span", { text: count(stepOf(run)) }), progress_of(run)),
      h("td", {}, canvas),
      h("td", { text: number(run.loss) }),
      h("td", { class: "wide", title: run.issue }, verdictOf(run)),
      ...shownParameters().map((name) =>
        h("td", {
          class: "less",
          text: words_of(valueOf(run, name)),
          title: String(valueOf(run, name) ?? "not recorded"),
        }),
      ),
      h("td", { class: "less", text: duration(run.duration) }),
      h("td", { class: "less", text: ago(run.last_saved), title: moment(run.last_saved) }),
      !hasCost()
        ? null
        : h("td", { class: "less", text: run.cost === null ? "–" : `$${run.cost.toFixed(2)}`, title: run.cost_title }),
    );
  }

  function progress_of(run) {
    const share = shareOf(run);
    return share === null || run.state !== "training"
      ? null
      : h("progress", {
          max: 1,
          value: share,
          "aria-label": `${Math.round(100 * share)} % of the steps`,
          title: `${Math.round(100 * share)} % of the steps`,
        });
  }

  function tagButtons(run) {
    const buttons = tagsOf(run).slice(0, 4);
    return h(
      "span",
      { class: "tags" },
      ...buttons.map((tag) =>
        button(tag, () => setTag(tag === chosen.tag ? "" : tag), {
          class: "tag",
          "aria-pressed": String(tag === chosen.tag),
          title: `Only runs tagged ${tag}`,
        }),
      ),
    );
  }

  function setTag(tag) {
    tagSelect.value = tag;
    choose({ tag });
  }

  function pick(run) {
    if (!picked.delete(run.id)) picked.add(run.id);
    draw();
  }

  // A single run is compared with the baselines. What is compared, is compared with the first run: a baseline.
  function comparedRuns() {
    const pinned = runs.filter((run) => isPinned(run) && run.state !== "gone").map((run) => run.id);
    const first = pinned.filter((id) => picked.size === 1 || picked.has(id));
    return picked.size ? [...new Set([...first, ...picked])] : [];
  }

  function openComparison() {
    const compared = comparedRuns();
    if (compared.length >= 2) location.hash = `#/compare/${compared.join(",")}`;
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
    const names = parameterNames(runs);
    parameters = distinguishing(runs, names);
    const allTags = [...new Set(runs.flatMap(tagsOf))].sort();
    const key = JSON.stringify([names, allTags, parameters]);
    if (key === known) return;
    known = key;
    replace(
      groups,
      runs.length
        ? select(
            "Group by",
            [
              ["", "nothing"],
              [BY_NAME, "name without its number"],
              ...(allTags.length ? [[BY_TAG, "tag"]] : []),
              ...names.sort().map((name) => [name, name]),
            ],
            chosen.group,
            (group) => choose({ group }),
          )
        : null,
    );
    replace(
      tags,
      allTags.length
        ? select("Tag", [["", "any"], ...allTags.map((tag) => [tag, tag])], chosen.tag, (tag) => choose({ tag }))
        : null,
    );
    tagSelect = tags.querySelector("select") || { value: "" };
    replace(
      columnsMenu,
      parameters.length
        ? menu(
            "Columns",
            "Columns of parameters",
            parameters.slice(0, 60).map((name) => {
              const check = h("input", {
                type: "checkbox",
                onchange: () => {
                  const shown = shownParameters();
                  choose({
                    columns: (check.checked ? [...shown, name] : shown.filter((each) => each !== name)).join("|"),
                  });
                },
              });
              check.checked = shownParameters().includes(name);
              return h("label", {}, check, h("span", { text: name }));
            }),
          )
        : null,
    );
  }

  let closed = false;
  const resize = () => draw();
  window.addEventListener("resize", resize);
  return {
    refresh: oneAtATime(
      async () => {
        const found = await get("runs");
        runs = found.runs;
        looking = found.looking;
        places = found.places;
        describeParameters();
        replace(errors, ...found.errors.map((text) => h("p", { class: "problem", text })));
        arrange();
      },
      { isClosed: () => closed },
    ),
    key(key) {
      if (key === "j" || key === "ArrowDown") move(1);
      else if (key === "k" || key === "ArrowUp") move(-1);
      else if (
        key === "Enter" &&
        rows[at]?.id &&
        document.activeElement?.tagName !== "BUTTON" &&
        document.activeElement?.tagName !== "A"
      )
        location.hash = `#/run/${rows[at].id}`;
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
