// Several runs side by side: what was configured differently, their curves, where they diverge, their verdicts.

import { get, report as held } from "./api.js";
import { AxisChoice } from "./axis_choice.js";
import { ChartView } from "./chart_view.js";
import { divergenceOf } from "./divergence.js";
import { button, h, replace } from "./dom.js";
import { count, number, plural, titleOf, wordsOf } from "./format.js";
import { issueCard } from "./issue.js";
import { oneAtATime } from "./refreshing.js";
import { swatch } from "./inks.js";
import { sourcesOf } from "./lines.js";
import { Sweep } from "./sweep.js";
import { SeriesChart } from "./series_chart.js";
import { smoothingOf } from "./smoothing.js";
import { timeLineOf } from "./timeline.js";

const keyOf = (sources) => sources.map(({ run, mode }) => `${run} ${mode ?? ""}`).join();

// The names of some runs; of all of them, only their number.
const namesOf = (members, total) =>
  members.length === total && total > 2 ? `all ${total} runs` : members.map((run) => run.name).join(", ");

export function compareScreen({ main, crumbs, report, address, remember, list }, ids) {
  const { values } = address();
  const time = timeLineOf(values, remember);
  const view = new ChartView(values, remember);
  const charts = new Map();
  const table = h("div", { class: "table" });
  const verdicts = h("div", { class: "cards" });
  const others = h("p", { class: "quiet" });
  const lossPlace = h("div");
  const curves = h("div", { class: "charts" });
  const more = h("p");
  let showsAll = values.get("all") === "1";
  let closed = false;
  const refresh = oneAtATime(draw, { isClosed: () => closed });
  const configuration = h("div");
  const axis = new AxisChoice(view);
  const sweep = new Sweep();
  /** @type {Map<string, import("./axis.js").HasAxes>} */
  const runs = new Map();
  replace(crumbs, h("a", { href: held ? "#/" : list, text: held ? "Report" : "Runs" }), " / Compare");
  replace(
    main,
    h("h1", { text: `Compare ${plural(ids.length, "run")}` }),
    h("section", { "aria-label": "Configuration" }, h("h2", { text: "Configuration" }), configuration),
    sweep.element,
    h("section", { "aria-label": "Where they diverge" }, h("h2", { text: "Where they diverge" }), table),
    h("section", { "aria-label": "Verdicts" }, h("h2", { text: "Verdicts" }), verdicts, others),
    h(
      "section",
      { "aria-label": "Curves" },
      h(
        "div",
        { class: "bar" },
        h("h2", { text: "Curves" }),
        h("span", { class: "grow" }),
        axis.element,
        smoothingOf(view),
      ),
      lossPlace,
      curves,
      more,
    ),
  );

  function divergence(run, place) {
    return place === 0 ? "the others are compared with this run" : divergenceOf(run);
  }

  // The problems of each run that has some; the others in one sentence.
  function drawVerdicts(runs) {
    const failing = runs.flatMap((run, place) => (run.issues.length ? [{ run, place }] : []));
    replace(
      verdicts,
      ...failing.map(({ run, place }) =>
        h(
          "div",
          {},
          h("h3", {}, swatch(place), h("span", { text: run.name })),
          run.issues.slice(0, 3).map((issue, at) => issueCard(issue, at)),
          run.issues.length > 3
            ? h(
                "p",
                {},
                h("a", { href: `#/run/${run.id}`, text: `Show ${plural(run.issues.length - 3, "more problem")}` }),
              )
            : null,
        ),
      ),
    );
    const groups = [
      ["No problem detected", runs.filter((run) => !run.issues.length && run.passed && !run.missing)],
      ["No problem at the steps that are there", runs.filter((run) => !run.issues.length && run.passed && run.missing)],
      ["No rule could check", runs.filter((run) => !run.issues.length && !run.passed && run.checked)],
      ["Not checked yet", runs.filter((run) => !run.issues.length && !run.passed && !run.checked)],
    ].filter(([, members]) => members.length);
    replace(
      others,
      ...groups.map(([words, members]) =>
        h("span", {
          class: "listed",
          text: `${words}: ${namesOf(members, runs.length)}. `,
        }),
      ),
    );
  }

  // Where runs diverge from the first, one mark for each step.
  function onsetsOf(runs) {
    const at = new Map();
    runs.forEach(
      (run, place) =>
        run.divergence && at.set(run.divergence.step, [...(at.get(run.divergence.step) || []), { run, place }]),
    );
    return [...at]
      .sort(([a], [b]) => a - b)
      .slice(0, 4)
      .map(([step, members]) =>
        members.length === 1
          ? { step, label: `${members[0].run.name.slice(0, 24)} differs`, ink: members[0].place }
          : { step, label: `${members.length} runs differ`, ink: null },
      );
  }

  function drawConfiguration({ configuration: rows, runs }) {
    if (!rows.length) {
      const isRead = runs.every((run) => run.ready || run.error);
      const text = isRead ? "The runs record no configuration that differs." : "Being read …";
      replace(configuration, h("p", { class: "quiet", text }));
      return;
    }
    const differ = rows.filter((row) => new Set(row.values.filter((value) => value !== null)).size > 1);
    const others = rows.filter((row) => !differ.includes(row));
    const said = `${plural(others.length, "parameter")} that only some of the runs record`;
    replace(
      configuration,
      differ.length ? configurationTable("Configuration that differs", differ, runs) : null,
      others.length
        ? h(
            "details",
            { open: !differ.length },
            h("summary", { text: said }),
            configurationTable("Configuration of some of the runs", others, runs),
          )
        : null,
    );
  }

  async function draw() {
    const found = await get("compare", { runs: ids.join(",") });
    replace(
      table,
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...["run", "steps", "first difference", "verdict"].map((text) => h("th", { scope: "col", text })),
          ),
        ),
        h(
          "tbody",
          {},
          ...found.runs.map((run, place) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, swatch(place), h("a", { href: `#/run/${run.id}`, text: run.name })),
              h("td", { text: count(run.steps) }),
              h("td", { class: "difference", text: divergence(run, place), title: divergence(run, place) }),
              h("td", {
                class: run.issues.length ? "bad" : run.missing ? "warn" : run.passed ? "good" : "quiet",
                title: run.missing || null,
                text: run.issues.length
                  ? `✗ ${run.issues[0].headline}`
                  : run.checked && !run.passed
                    ? "no rule could check it"
                    : run.checked
                      ? withoutProblem(run)
                      : "not checked yet",
              }),
            ),
          ),
        ),
      ),
    );
    found.runs.forEach((run) => runs.set(run.id, run));
    axis.show(found.runs);
    drawVerdicts(found.runs);
    drawConfiguration(found);
    const last = Math.max(1, ...found.runs.map((run) => run.steps));
    const is_loss = (name) =>
      name.toLowerCase() === "loss" ? 0 : /loss/i.test(name) ? 1 : name.startsWith("system/") ? 3 : 2;
    const names = [...found.series].sort((a, b) => is_loss(a) - is_loss(b) || (a < b ? -1 : 1));
    replace(
      more,
      !showsAll && names.length > 12
        ? button(`Show ${plural(names.length - 12, "more chart")}`, () => {
            showsAll = true;
            remember({ all: "1" });
            refresh().catch(report);
          })
        : null,
    );
    for (const name of showsAll ? names : names.slice(0, 12)) {
      // A run that is still read may not have the series yet, or no evaluation.
      const sources = sourcesOf(
        found.runs.map((run) => ({ id: run.id, run })),
        name,
      );
      const key = keyOf(sources);
      const known = charts.get(name);
      if (known && known.key === key) continue;
      const chart = new SeriesChart(titleOf(name), sources, time, {
        height: name === names[0] ? 340 : 220,
        view,
        report,
        isNamed: true,
        runOf: (id) => runs.get(id),
        words: name.startsWith("system/") ? wordsOf(name) : number,
      });
      chart.key = key;
      charts.set(name, chart);
      if (known) known.element.replaceWith(chart.element);
      else (name === names[0] && is_loss(name) < 2 ? lossPlace : curves).append(chart.element);
      known?.close();
    }
    await Promise.all([...charts.values()].map((chart) => chart.load()));
    if (charts.has(names[0]) && is_loss(names[0]) < 2) sweep.show(sweptRuns(found.runs, charts.get(names[0])));
    const steps = [...charts.values()].flatMap((chart) =>
      chart.found.flatMap((each) => (each?.last.length ? [each.last.at(-1)] : [])),
    );
    time.onsets = onsetsOf(found.runs);
    time.extend(0, Math.max(last, ...steps));
    document.documentElement.dataset.ready = found.runs.every((run) => run.ready && run.checked >= run.steps)
      ? "yes"
      : "part";
  }

  return {
    refresh,
    key: (key) => time.key(key),
    redraw() {
      charts.forEach((chart) => chart.rebuild());
      sweep.redraw();
    },
    close() {
      closed = true;
      charts.forEach((chart) => chart.close());
    },
  };
}

// The runs that have a best loss: that of the validation, if all of them have one.
function sweptRuns(runs, chart) {
  const bestOf = (run, mode) => {
    const at = chart.sources.findIndex((each) => each.run === run.id && (each.mode ?? "TRAIN") === mode);
    return chart.found[at]?.best?.value ?? null;
  };
  const mode = runs.every((run) => bestOf(run, "EVAL") !== null) ? "EVAL" : "TRAIN";
  return runs.flatMap((run) => {
    const best = bestOf(run, mode);
    return best === null ? [] : [{ name: run.name, configuration: run.configuration, best }];
  });
}

function withoutProblem(run) {
  const steps = plural(run.checked, "saved step");
  return run.missing ? `! no problem in ${steps}, others are missing` : `✓ no problem in ${steps}`;
}

/**
 * A column for each run; many runs with few parameters have a row each.
 * @param {string} name
 * @param {{name: string, values: any[]}[]} rows
 * @param {{name: string}[]} runs
 */
function configurationTable(name, rows, runs) {
  const words = (value) => (value === null ? "–" : String(value));
  const cell = (value) => h("td", { text: words(value), title: words(value) });
  const headOf = (run, place, scope) => h("th", { scope, title: run.name }, swatch(place), run.name);
  const isTall = runs.length > 5 && rows.length <= runs.length;
  const [head, body] = isTall
    ? [
        [h("th", { scope: "col", text: "run" }), ...rows.map((row) => h("th", { scope: "col", text: row.name }))],
        runs.map((run, place) => [headOf(run, place, "row"), ...rows.map((row) => cell(row.values[place]))]),
      ]
    : [
        [h("th", { scope: "col", text: "parameter" }), ...runs.map((run, place) => headOf(run, place, "col"))],
        rows.map((row) => [h("th", { scope: "row", text: row.name }), ...row.values.map(cell)]),
      ];
  const lines = body.map((cells) => h("tr", {}, cells));
  return h(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": name },
    h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, lines)),
  );
}
