// Several runs side by side: what was configured differently, their curves, where they diverge, their verdicts.

import { get } from "./api.js";
import { CURVES, SeriesChart, TimeLine } from "./charts.js";
import { h, replace } from "./dom.js";
import { count, number, plural } from "./format.js";
import { issueCard } from "./run.js";

export function compareScreen({ main, crumbs, report }, ids) {
  const time = new TimeLine(() => {});
  const charts = new Map();
  const table = h("div", { class: "table" });
  const verdicts = h("div", { class: "cards" });
  const curves = h("div", { class: "charts" });
  const configuration = h("div");
  replace(crumbs, h("a", { href: "#/", text: "Runs" }), " / Compare");
  replace(main, h("h1", { text: `Compare ${plural(ids.length, "run")}` }),
    h("section", { "aria-label": "Where they diverge" }, h("h2", { text: "Where they diverge" }), table),
    h("section", { "aria-label": "Verdicts" }, h("h2", { text: "Verdicts" }), verdicts),
    h("section", { "aria-label": "Curves" }, h("h2", { text: "Curves" }), curves),
    h("section", { "aria-label": "Configuration" }, h("h2", { text: "Configuration" }), configuration));

  function divergence(run, place) {
    if (place === 0) return "the others are compared with this run";
    if (run.error) return run.error;
    if (!run.ready) return "being read …";
    if (!run.divergence) return "no difference in the statistics of common steps";
    const { step, kind, tensor, rms } = run.divergence;
    return `step ${count(step)}: ${kind} of ${tensor} (rms ${number(rms[0])} and ${number(rms[1])})`;
  }

  async function refresh() {
    const found = await get("compare", { runs: ids.join(",") });
    replace(table, h("table", {}, h("thead", {}, h("tr", {}, ...["run", "steps", "first difference", "verdict"].map((text) => h("th", { scope: "col", text })))),
      h("tbody", {}, ...found.runs.map((run, place) => h("tr", {},
        h("th", { scope: "row" }, h("a", { href: `#/run/${run.id}`, text: run.name })), h("td", { text: count(run.steps) }),
        h("td", { class: "wide", text: divergence(run, place), title: divergence(run, place) }),
        h("td", { class: run.issues.length ? "bad" : run.checked ? "good" : "quiet", text: run.issues.length ? `✗ ${run.issues[0].headline}` : run.checked ? `✓ no problem in ${plural(run.checked, "saved step")}` : "not checked yet" }))))));
    replace(verdicts, ...found.runs.map((run) => h("div", {}, h("h3", { text: run.name }),
      run.issues.length ? run.issues.slice(0, 3).map((issue, at) => issueCard(issue, at)) : h("p", { class: run.checked ? "good" : "quiet", text: run.checked ? "No problem detected." : "Not checked yet." }))));
    const last = Math.max(1, ...found.runs.map((run) => run.steps));
    for (const name of found.series.slice(0, 12)) {
      // A run that is still read may not have the series yet.
      const sources = found.runs.filter((run) => run.series.includes(name)).map((run) => ({ run: run.id, name, label: run.name }));
      const known = charts.get(name);
      if (known?.sources.length === sources.length) continue;
      const chart = new SeriesChart(name, sources, time, { height: 220, report });
      charts.set(name, chart);
      if (known) known.element.replaceWith(chart.element);
      else curves.append(chart.element);
      known?.close();
    }
    await Promise.all([...charts.values()].map((chart) => chart.load()));
    const steps = [...charts.values()].flatMap((chart) => chart.found.flatMap((each) => (each?.last.length ? [each.last.at(-1)] : [])));
    time.onsets = found.runs.flatMap((run) => (run.divergence ? [{ step: run.divergence.step }] : []));
    if (time.isWhole) time.extend(0, Math.max(last, ...steps));
    replace(configuration, found.configuration.length
      ? h("div", { class: "table" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "parameter" }), ...found.runs.map((run) => h("th", { scope: "col", text: run.name })))),
        h("tbody", {}, ...found.configuration.map((row) => h("tr", {}, h("th", { scope: "row", text: row.name }), ...row.values.map((value) => h("td", { text: value === null ? "–" : String(value) })))))))
      : h("p", { class: "quiet", text: "The runs record no configuration that differs." }));
    document.documentElement.dataset.ready = found.runs.every((run) => run.ready && run.checked >= run.steps) ? "yes" : "part";
  }

  return {
    refresh,
    key(key) {
      if (key === "+" || key === "=") time.zoom(0.5);
      else if (key === "-") time.zoom(2);
      else if (key === "ArrowLeft") time.pan(-0.25);
      else if (key === "ArrowRight") time.pan(0.25);
      else if (key === "0") time.show(time.first, time.last);
      else return false;
      return true;
    },
    redraw: () => charts.forEach((chart) => chart.rebuild()),
    close: () => charts.forEach((chart) => chart.close()),
    colours: CURVES,
  };
}
