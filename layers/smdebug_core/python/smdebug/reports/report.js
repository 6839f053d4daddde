"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const floats = (text) => new Float32Array(bytes(text).buffer);
  const statistics = ["abs_mean", "std", "minimum", "maximum", "mean"];
  for (const item of data.series) for (const name of statistics) item[name] = floats(item[name]);
  const four = d3.format(".4~g");
  const short = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? d3.format(".1~e")(x) : d3.format(".3~g")(x));
  const style = { background: "transparent", color: "inherit", fontSize: "12px", overflow: "visible" };
  const span = (steps) => (steps.length ? [d3.min(steps), Math.max(d3.max(steps), d3.min(steps) + 1)] : [0, 1]);
  // One triangle per step, in a lane of its own below the curve, with the names of all rules.
  const marked = (pairs) => Array.from(d3.group(pairs, (p) => p.step), ([step, some]) => ({ step, rules: Array.from(new Set(some.map((p) => p.rule))) }));
  const allMarks = marked(data.marks.flatMap((item) => item.steps.map((step) => ({ rule: item.rule, step }))));
  const LANE = 13;
  const lane = (marks, r) => Plot.dot(marks, { x: "step", frameAnchor: "bottom", dy: -4, symbol: "triangle", fill: "var(--bad)", r, title: (m) => `${m.rules.join(", ")}, step ${m.step}` });
  const rulesAt = (marks, step) => marks.filter((m) => m.step === step).map((m) => `\n▲ ${m.rules.join(", ")}`).join("");
  // Room for the labels of an axis, whatever their length.
  const leftOf = (values) => 14 + 6.7 * Math.max(2, ...values.map((v) => short(v).length));
  const ticks = (width) => Math.max(2, Math.floor(width / 75));

  // A scale from 1e-30 to 1e30 needs no more than a few labels.
  function logDomain(values) {
    const known = values.filter((v) => v > 0 && Number.isFinite(v));
    if (!known.length) return [0.1, 1];
    const low = d3.min(known), high = d3.max(known);
    return low === high ? [low / 2, high * 2] : [low, high];
  }

  function logTicks([low, high], count = 4) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    if (last - first < 1) return d3.ticks(low, high, 3).filter((v) => v > 0);
    const stride = Math.max(1, Math.ceil((last - first) / count));
    return d3.range(first, last + 1, stride).map((e) => 10 ** e);
  }

  const curve = (at, width) => line(data.curves, at, width, allMarks);
  const system = (at, width) => line(data.system, at, width, []);

  function line(items, at, width, found) {
    const item = items[at];
    const points = item.steps.map((step, i) => ({ step, value: item.values[i] }));
    const behind = item.other.steps.map((step, i) => ({ step, value: item.other.values[i] }));
    const known = points.filter((p) => p.value !== null);
    const values = [...points, ...behind].map((p) => p.value).filter((v) => v !== null);
    const positive = values.length > 0 && d3.min(values) > 0;
    const isLog = positive && d3.max(values) / d3.min(values) > 50;
    const [low, high] = values.length ? d3.extent(values) : [0, 1];
    const odd = points.filter((p) => p.value === null);
    const marks = [
      Plot.gridY({ strokeOpacity: 0.12 }),
      ...(behind.length ? [Plot.lineY(behind, { x: "step", y: "value", stroke: "var(--other)", strokeDasharray: "4 3", ariaDescription: "the other run" })] : []),
      Plot.lineY(points, { x: "step", y: "value", stroke: "var(--accent)", strokeWidth: 1.6 }),
      lane(found, 3.5),
      Plot.dot(odd, { x: "step", frameAnchor: "top", symbol: "times", stroke: "var(--bad)", r: 4 }),
      Plot.tip(known, Plot.pointerX({ x: "step", y: "value", title: (p) => `step ${p.step}\n${four(p.value)}${rulesAt(found, p.step)}` })),
    ];
    if (known.length === 1) marks.push(Plot.dot(known, { x: "step", y: "value", fill: "var(--accent)" }));
    const domain = low === high ? [low - 0.5 * (Math.abs(low) || 1), high + 0.5 * (Math.abs(high) || 1)] : [low, high];
    const labels = isLog ? logTicks(domain) : d3.ticks(...d3.nice(...domain, 5), 5);
    return Plot.plot({
      width, height: 220, style, marginLeft: leftOf(labels), marginBottom: 36, insetBottom: found.length ? LANE : 3,
      x: { domain: span(items.flatMap((c) => [c, c.other]).filter((c) => c.steps.length).flatMap((c) => [c.steps[0], c.steps[c.steps.length - 1]])), label: "step", ticks: ticks(width), tickFormat: d3.format("~s") },
      y: { type: isLog ? "log" : "linear", domain, label: null, tickFormat: short, ...(isLog ? { ticks: labels } : { ticks: 5, nice: true }) },
      marks,
    });
  }

  const groupOf = (at) => data.groups.find((g) => at >= g.first && at < g.first + g.count);
  const shown = () => document.getElementById("statistic").value;
  const domains = new Map();

  function domainOf(group, kind) {
    const key = `${group.first} ${kind}`;
    if (!domains.has(key)) {
      const of = data.series.slice(group.first, group.first + group.count);
      const names = kind === "size" ? ["abs_mean", "std"] : ["minimum", "maximum"];
      const values = of.flatMap((item) => names.flatMap((name) => Array.from(item[name]).filter(Number.isFinite)));
      domains.set(key, kind === "size" ? logDomain(values) : values.length ? d3.extent(values) : [0, 1]);
    }
    return domains.get(key);
  }

  function multiple(at, width) {
    const item = data.series[at], kind = shown();
    let domain = domainOf(groupOf(at), kind);
    if (domain[0] === domain[1]) domain = [domain[0] - 0.5, domain[1] + 0.5];
    const isLog = kind === "size", found = marked(item.marks.map(([step, rule]) => ({ step, rule })));
    const fit = (v) => (Number.isFinite(v) && (!isLog || v > 0) ? v : null);
    const points = data.steps
      .map((step, i) => ({ step, i, main: fit(item[isLog ? "abs_mean" : "mean"][i]), std: fit(item.std[i]), low: fit(item.minimum[i]), high: fit(item.maximum[i]), zero: item.abs_mean[i] === 0 }))
      .filter((p) => !Number.isNaN(item.abs_mean[p.i]) || !Number.isNaN(item.mean[p.i]) || !Number.isNaN(item.std[p.i]));
    const marks = [Plot.gridY({ strokeOpacity: 0.12, ...(isLog ? { ticks: logTicks(domain) } : {}) })];
    if (isLog) {
      marks.push(
        Plot.lineY(points, { x: "step", y: "std", stroke: "var(--second)", strokeDasharray: "3 2" }),
        Plot.lineY(points, { x: "step", y: "main", stroke: "var(--accent)", strokeWidth: 1.6 }),
        Plot.dot(points.filter((p) => p.zero), { x: "step", frameAnchor: "bottom", r: 2, fill: "var(--accent)" }),
      );
    } else {
      marks.push(
        Plot.areaY(points.filter((p) => p.low !== null && p.high !== null), { x: "step", y1: "low", y2: "high", fill: "var(--accent)", fillOpacity: 0.2 }),
        Plot.lineY(points, { x: "step", y: "main", stroke: "var(--accent)", strokeWidth: 1.6 }),
      );
    }
    if (points.length === 1) marks.push(Plot.dot(points, { x: "step", y: "main", fill: "var(--accent)", r: 3 }));
    marks.push(
      lane(found, 2.6),
      Plot.dot(item.odd, { x: (p) => p[0], frameAnchor: "top", symbol: "times", stroke: "var(--bad)", r: 3 }),
      Plot.tip(points, Plot.pointerX({ x: "step", y: "main", anchor: "bottom", title: (p) => {
        const i = p.i;
        return `step ${p.step}\nmean |x| ${four(item.abs_mean[i])}\nstd ${four(item.std[i])}\nmin ${four(item.minimum[i])}\nmax ${four(item.maximum[i])}${rulesAt(found, p.step)}`;
      } })),
    );
    return Plot.plot({
      width, height: 120, style, marginLeft: leftOf(isLog ? logTicks(domain, 3) : d3.ticks(...domain, 4)), marginRight: 14, marginTop: 8, marginBottom: 22, insetBottom: found.length ? 10 : 3,
      x: { domain: span(data.steps), label: null, ticks: 3, tickFormat: d3.format("~s") },
      y: { type: isLog ? "log" : "linear", domain, label: null, tickFormat: short, ...(isLog ? { ticks: logTicks(domain, 3) } : { ticks: 4 }) },
      marks,
    });
  }

  function distribution(at, width) {
    const item = data.distributions[at];
    const shares = bytes(item.shares);
    const value = (t) => item.unit * Math.sinh(t);
    const height = (item.high - item.low) / item.bins;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches && !printing;
    const positions = d3.range(item.steps.length);
    // One picture element instead of thousands of rectangles; rows of the picture run from the top.
    const cells = positions.flatMap((x) => d3.range(item.bins).map((bin) => ({ x, bin, share: shares[x * item.bins + bin] })));
    const everyFew = Math.max(1, Math.ceil(item.steps.length / ticks(width)));
    return Plot.plot({
      width, height: 220, style, marginLeft: leftOf(d3.ticks(item.low, item.high, 6).map(value)), marginBottom: 32,
      x: { domain: [-0.5, item.steps.length - 0.5], label: "step", ticks: positions.filter((i) => i % everyFew === 0), tickFormat: (i) => d3.format("~s")(item.steps[i]) },
      y: { domain: [item.low, item.high], label: null, ticks: 6, tickFormat: (t) => short(value(t)) },
      color: { type: "linear", domain: [0, 255], range: dark ? ["#15171b", "#82b1ff"] : ["#ffffff", "#123f8f"], interpolate: "rgb" },
      marks: [
        Plot.raster(cells, { x: "x", y: (c) => item.low + (c.bin + 0.5) * height, fill: "share", width: item.steps.length, height: item.bins,
          x1: -0.5, x2: item.steps.length - 0.5, y1: item.low, y2: item.high, imageRendering: "pixelated" }),
        Plot.frame({ strokeOpacity: 0.3 }),
        item.low < 0 && item.high > 0 ? Plot.ruleY([0], { strokeOpacity: 0.35, strokeDasharray: "2 3" }) : null,
        Plot.tip(cells.filter((c) => c.share > 0), Plot.pointer({ x: "x", y: (c) => item.low + (c.bin + 0.5) * height,
          title: (c) => `step ${item.steps[c.x]}\n${four(value(item.low + c.bin * height))} to ${four(value(item.low + (c.bin + 1) * height))}` })),
      ],
    });
  }

  function workers(at, width) {
    const item = data.workers[at];
    const points = item.steps.map((step, i) => ({ step, spread: item.spread[i] }));
    const top = d3.max(data.workers.flatMap((w) => w.spread)) || 1;
    return Plot.plot({
      width, height: 115, style, marginLeft: 52, marginRight: 14, marginTop: 8, marginBottom: 22,
      x: { domain: span(data.steps), label: null, ticks: 3, tickFormat: d3.format("~s") },
      y: { domain: [0, top], label: null, ticks: 3, tickFormat: (v) => `${short(100 * v)}%` },
      marks: [
        Plot.gridY({ strokeOpacity: 0.12 }),
        Plot.lineY(points, { x: "step", y: "spread", stroke: "var(--accent)", strokeWidth: 1.6 }),
        Plot.tip(points, Plot.pointerX({ x: "step", y: "spread", title: (p) => `step ${p.step}\n${four(100 * p.spread)} %` })),
      ],
    });
  }

  const draw = { curve, system, multiple, distribution, workers };
  const figures = Array.from(document.querySelectorAll("figure.chart"));
  let printing = false;

  // A page is not laid out for paper when its drawings are made for it: these fit A4 and Letter.
  const onPaper = (figure) => (figure.dataset.kind in { multiple, workers } ? 208 : figure.matches(":only-child") ? 680 : 325);

  function render(figure) {
    const place = figure.querySelector(".plot");
    const width = printing ? onPaper(figure) : Math.max(180, Math.min(1150, Math.floor(place.getBoundingClientRect().width) || 320));
    if (figure.dataset.drawn === `${width}`) return;
    place.replaceChildren(draw[figure.dataset.kind](+figure.dataset.at, width));
    for (const svg of place.querySelectorAll("svg")) svg.setAttribute("aria-hidden", "true");
    figure.dataset.drawn = `${width}`;
  }
  const again = (some) => {
    for (const figure of some) if (figure.dataset.drawn) { delete figure.dataset.drawn; render(figure); }
  };
  const renderAll = () => figures.forEach(render);

  // What is not seen yet is drawn when it comes near the screen, and all of it before printing.
  const near = new IntersectionObserver(
    (seen) => seen.filter((item) => item.isIntersecting).forEach((item) => render(item.target)), { rootMargin: "600px" });
  figures.forEach((figure) => near.observe(figure));
  if (location.hash === "#all") renderAll();
  let pending;
  addEventListener("resize", () => { clearTimeout(pending); pending = setTimeout(() => figures.forEach((f) => f.dataset.drawn && render(f)), 120); });
  addEventListener("beforeprint", () => { printing = true; figures.forEach((f) => delete f.dataset.drawn); renderAll(); });
  addEventListener("afterprint", () => { printing = false; again(figures); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => again(figures.filter((f) => f.dataset.kind === "distribution")));

  const statistic = document.getElementById("statistic"), filter = document.getElementById("filter");
  if (statistic) statistic.addEventListener("change", () => {
    for (const kind of ["size", "range"]) document.getElementById(`legend-${kind}`).hidden = kind !== statistic.value;
    again(figures.filter((f) => f.dataset.kind === "multiple"));
  });
  if (filter) {
    filter.form.addEventListener("submit", (event) => event.preventDefault());
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      let count = 0;
      for (const figure of figures) if (figure.dataset.kind === "multiple") {
        figure.hidden = !figure.dataset.name.toLowerCase().includes(wanted);
        count += !figure.hidden;
      }
      for (const row of document.querySelectorAll("tr[data-tensor]")) row.hidden = !row.dataset.tensor.toLowerCase().includes(wanted);
      document.getElementById("matching").textContent = wanted ? `${count} of ${data.series.length}` : "";
    });
  }
  document.documentElement.dataset.ready = "yes";
})();
