// Curves over steps, drawn by uPlot: both extremes of each stretch, the onsets of problems, a shared window.

import uPlot from "./vendored/uplot-1.6.32.esm.js";
import { get } from "./api.js";
import { button, color, debounced, download, h, menu, sized } from "./dom.js";
import { count, number } from "./format.js";

export const CURVES = ["curve", "curve2", "curve3", "curve4", "curve5", "curve6"];

// The window of steps that all charts of a screen share.
export class TimeLine {
  constructor(changed) {
    this.first = 0;
    this.last = 1;
    this.from = null;
    this.to = null;
    this.listeners = new Set();
    this.pointed = new Set();
    this.onsets = [];
    this.changed = changed;
  }

  get window() {
    return [this.from ?? this.first, Math.max(this.to ?? this.last, (this.from ?? this.first) + 1)];
  }

  get isWhole() {
    return this.from === null && this.to === null;
  }

  extend(first, last) {
    if (first === this.first && last === this.last) return;
    [this.first, this.last] = [first, Math.max(last, first + 1)];
    this.tell();
  }

  show(from, to) {
    const width = Math.max(2, to - from);
    if (from <= this.first && to >= this.last) [this.from, this.to] = [null, null];
    else {
      from = Math.max(this.first, Math.min(from, this.last - width));
      [this.from, this.to] = [from, Math.min(this.last, from + width)];
    }
    this.changed(this);
    this.tell();
  }

  zoom(factor, around) {
    const [from, to] = this.window;
    const middle = around ?? (from + to) / 2;
    this.show(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  pan(share) {
    const [from, to] = this.window;
    const by = (to - from) * share;
    this.show(from + by, to + by);
  }

  tell() {
    this.listeners.forEach((listener) => listener());
  }

  // Point at a step (null: at none) on every chart but the one under the pointer.
  point(step, source) {
    this.pointed.forEach((listener) => listener(step, source));
  }
}

// The ink of the run at a place: six colours, then the same ones dashed, then dotted.
export function inkOf(place) {
  return { stroke: color(CURVES[place % CURVES.length]), dash: [[], [8, 4], [2, 3], [10, 3, 2, 3]][Math.floor(place / CURVES.length) % 4] };
}

// The onsets of problems as numbered dashed lines, and in red the steps whose values are not finite.
export function marksPlugin(time, missing = () => []) {
  return {
    hooks: {
      draw: (chart) => {
        const { ctx } = chart;
        const { left, top, width, height } = chart.bbox;
        const ratio = devicePixelRatio || 1;
        ctx.save();
        ctx.fillStyle = color("bad");
        missing().forEach(([first, last]) => {
          const from = Math.max(left, chart.valToPos(first, "x", true));
          const to = Math.min(left + width, chart.valToPos(last, "x", true));
          if (to >= from) ctx.fillRect(from - ratio, top + height - 4 * ratio, to - from + 2 * ratio, 4 * ratio);
        });
        ctx.strokeStyle = color("bad");
        ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
        ctx.textBaseline = "middle";
        ctx.textAlign = "left";
        ctx.setLineDash([4 * ratio, 3 * ratio]);
        time.onsets.forEach(({ step, label, ink }, place) => {
          const x = chart.valToPos(step, "x", true);
          if (x < left || x > left + width) return;
          ctx.strokeStyle = ink === undefined ? color("bad") : inkOf(ink).stroke;
          ctx.beginPath();
          ctx.moveTo(x, top);
          ctx.lineTo(x, top + height);
          ctx.stroke();
          const text = label || String(place + 1);
          const row = top + (label ? 16 * ratio * place : 0); // names are long: below each other
          const size = ctx.measureText(text).width + 8 * ratio;
          const start = x + size > left + width ? x - size : x;
          ctx.fillStyle = ink === undefined ? color("bad") : inkOf(ink).stroke;
          ctx.fillRect(start, row, size, 15 * ratio);
          ctx.fillStyle = color("back");
          ctx.fillText(text, start + 4 * ratio, row + 8 * ratio);
        });
        ctx.restore();
      },
    },
  };
}

// A line has no length at a value between two gaps: these are drawn as points.
function alone(chart, curve, shown) {
  if (shown) return null;
  const values = chart.data[curve];
  const near = (at, by) => {
    while (values[at + by] === undefined && at + by >= 0 && at + by < values.length) at += by;
    return values[at + by] ?? null;
  };
  const found = [];
  const [first, last] = chart.series[0].idxs;
  for (let at = first; at <= last; at++) {
    if (values[at] !== null && values[at] !== undefined && near(at, -1) === null && near(at, 1) === null) found.push(at);
  }
  return found;
}

const ALONE = { show: false, size: 5, filter: alone };

function axes(log, words = number) {
  const style = { stroke: color("quiet"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 }, font: "11px system-ui, sans-serif" };
  return [
    { ...style, size: 28, values: (_, ticks) => ticks.map((tick) => tick.toLocaleString("en-US")) },
    { ...style, size: 56, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : log ? tick.toExponential(0).replace("e+", "e") : words(tick))) },
  ];
}

// One chart of one or several scalars: `sources` are [{run, name, label}].
export class SeriesChart {
  constructor(title, sources, time, { height = 170, log = false, report, words = number } = {}) {
    this.sources = sources;
    this.time = time;
    this.height = height;
    this.words = words;
    this.log = log;
    this.title = title;
    this.report = report;
    this.found = sources.map(() => null);
    this.asked = 0;
    this.place = h("div");
    this.note = h("span", { class: "quiet note" });
    this.readout = h("output", { class: "readout" });
    this.hidden = new Set();
    this.logButton = button("Log scale", () => {
      this.log = !this.log;
      this.logButton.setAttribute("aria-pressed", String(this.log));
      this.remark();
      this.rebuild();
    }, { "aria-pressed": String(log) });
    this.legend = sources.length > 1 ? h("div", { class: "keys-of-curves", role: "group", "aria-label": `Curves of ${title}` }) : null;
    this.element = h("figure", { class: "chart pairs", role: "group", "aria-label": title },
      h("header", {}, h("span", { class: "title", text: title, title }), this.note, this.readout,
        menu("⋯", `Scale and export of ${title}`, [this.logButton,
          button("Save as PNG", () => this.picture()),
          button("Save as SVG", () => this.drawing()),
          sources.length === 1 ? button("Save every value as CSV", () => this.table()) : null])),
      this.place, this.legend);
    this.pointer = (step, source) => this.point(step, source);
    time.pointed.add(this.pointer);
    this.listener = () => {
      this.scale();
      this.later();
    };
    time.listeners.add(this.listener);
    this.later = debounced(90, () => this.load().catch((error) => report?.(error)));
    this.observer = new ResizeObserver(() => this.chart && this.chart.setSize({ width: this.width, height: this.height }));
    this.observer.observe(this.place);
  }

  get width() {
    return Math.max(200, this.place.clientWidth || 400);
  }

  async load() {
    const mine = ++this.asked;
    const [from, to] = this.time.window;
    const range = this.time.isWhole ? {} : { first: Math.floor(from), last: Math.ceil(to) };
    const found = await Promise.all(this.sources.map(({ run, name }) =>
      get(`run/${run}/series`, { name, ...range, points: Math.round(this.width * 1.5) }).catch((error) => {
        if (error.status === 404) return null;
        throw error;
      })));
    if (mine !== this.asked || !this.element.isConnected) return;
    this.found = found;
    const odd = found.reduce((sum, each) => sum + (each ? each.not_finite.reduce((a, b) => a + b, 0) : 0), 0);
    this.odd = odd;
    this.remark();
    if (this.chart) {
      this.chart.setData(this.data(), false);
      this.scale();
      this.read(null);
    } else this.rebuild();
  }

  data() {
    const steps = [...new Set(this.found.flatMap((each) => (each ? each.first : [])))].sort((a, b) => a - b);
    const place = new Map(steps.map((step, at) => [step, at]));
    const columns = [steps];
    for (const each of this.found) {
      const low = new Array(steps.length).fill(undefined);
      const high = new Array(steps.length).fill(undefined);
      each?.first.forEach((step, at) => {
        low[place.get(step)] = this.log && !(each.low[at] > 0) ? null : each.low[at];
        high[place.get(step)] = this.log && !(each.high[at] > 0) ? null : each.high[at];
      });
      columns.push(high, low);
    }
    return columns;
  }

  // Whether a stretch has values that the chart cannot show: NaN, infinite, or not positive on a logarithmic scale.
  isOdd(each, at) {
    return each.not_finite[at] > 0 || (this.log && each.low[at] !== null && each.low[at] <= 0);
  }

  missing() {
    return this.found.flatMap((each) => (each ? each.first.flatMap((first, at) => (this.isOdd(each, at) ? [[first, each.last[at]]] : [])) : []));
  }

  remark() {
    const below = this.log && this.found.some((each) => each?.low.some((value) => value !== null && value <= 0));
    const words = [this.odd ? `${this.odd.toLocaleString("en-US")} not finite` : "", below ? "values of 0 or less are marked below" : ""];
    this.note.textContent = words.filter(Boolean).join(", ");
    this.note.className = this.odd ? "bad note" : "quiet note";
  }

  inkAt(at) {
    return inkOf(this.sources[at].place ?? at);
  }

  rebuild() {
    this.chart?.destroy();
    const series = [{ label: "step" }];
    const bands = [];
    this.sources.forEach(({ label, name }, at) => {
      const ink = { ...this.inkAt(at), width: 1.4, points: ALONE, show: !this.hidden.has(at) };
      series.push({ label: label || name, ...ink }, { label: `${label || name} (smallest)`, ...ink });
      bands.push({ series: [2 * at + 1, 2 * at + 2], fill: color("band") });
    });
    const time = this.time;
    this.chart = new uPlot({
      width: this.width, height: this.height, series, bands, axes: axes(this.log, this.words),
      scales: { x: { time: false, range: () => time.window }, y: { distr: this.log ? 3 : 1 } },
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false },
      plugins: [marksPlugin(time, () => this.missing()), { hooks: {
        setSelect: (chart) => {
          if (chart.select.width < 4) return;
          time.show(chart.posToVal(chart.select.left, "x"), chart.posToVal(chart.select.left + chart.select.width, "x"));
          chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        },
        setCursor: (chart) => {
          if (this.isPointedAt) return;
          const inside = chart.cursor.left >= 0;
          const step = inside ? chart.posToVal(chart.cursor.left, "x") : null;
          this.read(step);
          time.point(step, this);
        },
      } }],
    }, this.data(), this.place);
    this.chart.over.addEventListener("dblclick", () => time.show(time.first, time.last));
    this.read(null);
  }

  // Show the values at a step that another chart points at.
  point(step, source) {
    if (source === this || !this.chart) return;
    this.isPointedAt = true;
    this.chart.setCursor({ left: step === null ? -10 : this.chart.valToPos(step, "x"), top: step === null ? -10 : 0 });
    this.isPointedAt = false;
    this.read(step);
  }

  valueAt(each, step) {
    if (!each || !each.first.length) return null;
    let at = each.first.length - 1;
    if (step !== null) {
      while (at > 0 && each.first[at] > step) at--;
      if (at + 1 < each.first.length && each.first[at + 1] - step < step - each.last[at]) at++;
    }
    const words = each.not_finite[at] ? "not finite" : each.low[at] === each.high[at] ? this.words(each.high[at]) : `${this.words(each.low[at])} to ${this.words(each.high[at])}`;
    const range = each.first[at] === each.last[at] ? `step ${count(each.first[at])}` : `steps ${count(each.first[at])}–${count(each.last[at])}`;
    return { words, range };
  }

  read(step) {
    if (!this.legend) {
      const found = this.valueAt(this.found[0], step);
      this.readout.textContent = found ? (step === null ? found.words : `${found.range}: ${found.words}`) : "";
      return;
    }
    this.readout.textContent = step === null ? "" : `step ${count(Math.round(step))}`;
    if (this.legend.childElementCount !== this.sources.length) {
      this.legend.replaceChildren(...this.sources.map(({ label, name }, at) => h("button", {
        type: "button", "aria-pressed": String(!this.hidden.has(at)), title: "Show or hide this curve",
        onclick: () => { if (!this.hidden.delete(at)) this.hidden.add(at); this.legend.replaceChildren(); this.rebuild(); },
      }, swatch(this.sources[at].place ?? at), h("span", { text: label || name }), h("b"))));
    }
    this.sources.forEach((_, at) => (this.legend.children[at].lastChild.textContent = this.valueAt(this.found[at], step)?.words ?? "–"));
  }

  scale() {
    if (!this.chart) return;
    const [min, max] = this.time.window;
    this.chart.setScale("x", { min, max });
  }

  picture() {
    this.chart?.ctx.canvas.toBlob((image) => download(`${this.title}.png`, image));
  }

  async table() {
    const { blob } = await import("./api.js");
    const { run, name } = this.sources[0];
    download(`${this.title}.csv`, await blob(`run/${run}/export.csv`, { name }));
  }

  drawing() {
    if (this.chart) download(`${this.title}.svg`, svgOf(this.title, this.chart, this.sources), "image/svg+xml");
  }

  close() {
    this.time.listeners.delete(this.listener);
    this.time.pointed.delete(this.pointer);
    this.observer.disconnect();
    this.chart?.destroy();
  }
}

// A short piece of a run's curve, which distinguishes the runs of a comparison.
export function swatch(place) {
  const canvas = h("canvas", { class: "swatch", "aria-hidden": "true" });
  const context = sized(canvas, 18, 8);
  const { stroke, dash } = inkOf(place);
  context.strokeStyle = stroke;
  context.lineWidth = 2.5;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(0, 4);
  context.lineTo(18, 4);
  context.stroke();
  return canvas;
}

const escaped = (text) => text.replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);

// What a chart shows, as a drawing: the curves with both extremes, and the ends of the axes.
export function svgOf(title, chart, sources) {
  const width = chart.width;
  const height = chart.height;
  const lines = chart.data.slice(1).map((values, at) => {
    const points = values.map((value, place) => (value === null || value === undefined ? null
      : `${chart.valToPos(chart.data[0][place], "x").toFixed(1)},${chart.valToPos(value, "y").toFixed(1)}`)).filter(Boolean);
    return `<polyline fill="none" stroke="${escaped(inkOf(sources[at >> 1].place ?? at >> 1).stroke)}" stroke-dasharray="${inkOf(sources[at >> 1].place ?? at >> 1).dash.join(" ")}" stroke-width="1.4" points="${points.join(" ")}"/>`;
  });
  const { x, y } = chart.scales;
  const text = (px, py, words, anchor = "start") => `<text x="${px}" y="${py}" font-size="11" font-family="system-ui" text-anchor="${anchor}">${escaped(words)}</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-70 -20 ${width + 90} ${height + 20}"><rect x="-70" y="-20" width="100%" height="100%" fill="white"/>` +
    lines.join("") + text(0, -6, title) + text(0, height - 34, number(x.min)) + text(width - 70, height - 34, number(x.max), "end") +
    text(-6, 10, number(y.max), "end") + text(-6, height - 52, number(y.min), "end") +
    sources.map((source, at) => `<title>${escaped(source.label || source.name)}</title>`).join("") + "</svg>";
}

// A chart of values that are here already: quantiles of a tensor, its extremes.
export function plainChart(place, title, steps, curves, time, { height = 190, bands = [], missing = () => [] } = {}) {
  const width = Math.max(200, place.clientWidth || 500);
  const series = [{ label: "step" }, ...curves.map(({ name, ink }) => ({ label: name, stroke: color(ink), width: 1.2, points: ALONE }))];
  let pointedAt = false;
  const chart = new uPlot({
    title, width, height, series, axes: axes(false), bands: bands.map((pair) => ({ series: pair, fill: color("band") })),
    scales: { x: { time: false, range: () => time.window } }, legend: { show: true, live: true },
    cursor: { drag: { x: true, y: false, setScale: false }, y: false }, plugins: [marksPlugin(time, missing), { hooks: {
      setSelect: () => {
        const { left, width: wide } = chart.select;
        if (wide < 4) return;
        time.show(chart.posToVal(left, "x"), chart.posToVal(left + wide, "x"));
        chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      },
      setCursor: (self) => !pointedAt && time.point(self.cursor.left >= 0 ? self.posToVal(self.cursor.left, "x") : null, self),
    } }],
  }, [steps, ...curves.map(({ values }) => values)], place);
  const listener = () => chart.setScale("x", { min: time.window[0], max: time.window[1] });
  const pointer = (step, source) => {
    if (source === chart) return;
    pointedAt = true;
    chart.setCursor({ left: step === null ? -10 : chart.valToPos(step, "x"), top: step === null ? -10 : 0 });
    pointedAt = false;
  };
  chart.over.addEventListener("dblclick", () => time.show(time.first, time.last));
  time.listeners.add(listener);
  time.pointed.add(pointer);
  return { chart, show: (found, values) => { chart.setData([found, ...values], false); listener(); }, close: () => { time.listeners.delete(listener); time.pointed.delete(pointer); chart.destroy(); } };
}
