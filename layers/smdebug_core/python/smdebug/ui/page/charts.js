// Curves over steps, drawn by uPlot: both extremes of each stretch, the onsets of problems, a shared window.

import uPlot from "./vendored/uplot-1.6.32.esm.js";
import { get } from "./api.js";
import { button, color, debounced, download, h } from "./dom.js";
import { number } from "./format.js";

export const CURVES = ["curve", "curve2", "curve3", "curve4", "curve5", "curve6"];

// The window of steps that all charts of a screen share.
export class TimeLine {
  constructor(changed) {
    this.first = 0;
    this.last = 1;
    this.from = null;
    this.to = null;
    this.listeners = new Set();
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
}

export function onsetsPlugin(time) {
  return {
    hooks: {
      draw: (chart) => {
        const { ctx } = chart;
        const { left, top, width, height } = chart.bbox;
        ctx.save();
        ctx.strokeStyle = color("bad");
        ctx.fillStyle = color("bad");
        ctx.font = `${11 * devicePixelRatio}px system-ui`;
        ctx.setLineDash([4, 3]);
        time.onsets.forEach(({ step }, place) => {
          const x = chart.valToPos(step, "x", true);
          if (x < left || x > left + width) return;
          ctx.beginPath();
          ctx.moveTo(x, top);
          ctx.lineTo(x, top + height);
          ctx.stroke();
          ctx.fillText(String(place + 1), x + 3, top + 10 * devicePixelRatio);
        });
        ctx.restore();
      },
    },
  };
}

function axes(log) {
  const style = { stroke: color("quiet"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 }, font: "11px system-ui" };
  return [
    { ...style, values: (_, ticks) => ticks.map((tick) => tick.toLocaleString("en-US")) },
    { ...style, size: 62, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : log ? tick.toExponential(0).replace("e+", "e") : number(tick))) },
  ];
}

// One chart of one or several scalars: `sources` are [{run, name, label}].
export class SeriesChart {
  constructor(title, sources, time, { height = 170, log = false, report } = {}) {
    this.sources = sources;
    this.time = time;
    this.height = height;
    this.log = log;
    this.title = title;
    this.report = report;
    this.found = sources.map(() => null);
    this.asked = 0;
    this.place = h("div");
    this.note = h("span", { class: "quiet" });
    this.logButton = button("log", () => {
      this.log = !this.log;
      this.logButton.setAttribute("aria-pressed", String(this.log));
      this.rebuild();
    }, { "aria-pressed": String(log), title: "Logarithmic scale" });
    this.element = h("figure", { class: "chart pairs", role: "group", "aria-label": title },
      h("header", {}, h("span", { text: title, title }), this.note, this.logButton,
        button("PNG", () => this.picture(), { title: "Save as a picture" }),
        button("SVG", () => this.drawing(), { title: "Save as a drawing" }),
        sources.length === 1 ? button("CSV", () => this.table(), { title: "Save every value" }) : null),
      this.place);
    this.element.style.margin = 0;
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
    this.note.textContent = odd ? `${odd.toLocaleString("en-US")} not finite` : "";
    this.note.className = odd ? "bad" : "quiet";
    if (this.chart) {
      this.chart.setData(this.data(), false);
      this.scale();
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

  rebuild() {
    this.chart?.destroy();
    const series = [{ label: "step" }];
    const bands = [];
    this.sources.forEach(({ label, name }, at) => {
      const stroke = color(CURVES[at % CURVES.length]);
      series.push({ label: label || name, stroke, width: 1.4, points: { show: false } });
      series.push({ label: `${label || name} (smallest)`, stroke, width: 1.4, points: { show: false } });
      bands.push({ series: [2 * at + 1, 2 * at + 2], fill: color("band") });
    });
    const time = this.time;
    this.chart = new uPlot({
      width: this.width, height: this.height, series, bands, axes: axes(this.log),
      scales: { x: { time: false, range: () => time.window }, y: { distr: this.log ? 3 : 1 } },
      legend: { show: this.sources.length > 1, live: false },
      cursor: { sync: { key: "steps" }, drag: { x: true, y: false, setScale: false }, points: { show: false } },
      plugins: [onsetsPlugin(time), { hooks: {
        setSelect: (chart) => {
          if (chart.select.width < 4) return;
          time.show(chart.posToVal(chart.select.left, "x"), chart.posToVal(chart.select.left + chart.select.width, "x"));
          chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        },
        setCursor: (chart) => {
          const at = chart.cursor.idx;
          const values = at === null || at === undefined ? [] : this.found.map((each) => each && chart.data[1][at]);
          if (values.length && chart.data[1]?.[at] !== undefined) this.element.title = `step ${chart.data[0][at]}: ${number(chart.data[1][at])}`;
        },
      } }],
    }, this.data(), this.place);
    this.chart.over.addEventListener("dblclick", () => time.show(time.first, time.last));
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
    this.observer.disconnect();
    this.chart?.destroy();
  }
}

const escaped = (text) => text.replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);

// What a chart shows, as a drawing: the curves with both extremes, and the ends of the axes.
export function svgOf(title, chart, sources) {
  const width = chart.width;
  const height = chart.height;
  const lines = chart.data.slice(1).map((values, at) => {
    const points = values.map((value, place) => (value === null || value === undefined ? null
      : `${chart.valToPos(chart.data[0][place], "x").toFixed(1)},${chart.valToPos(value, "y").toFixed(1)}`)).filter(Boolean);
    return `<polyline fill="none" stroke="${escaped(color(CURVES[(at >> 1) % CURVES.length]))}" stroke-width="1.4" points="${points.join(" ")}"/>`;
  });
  const { x, y } = chart.scales;
  const text = (px, py, words, anchor = "start") => `<text x="${px}" y="${py}" font-size="11" font-family="system-ui" text-anchor="${anchor}">${escaped(words)}</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-70 -20 ${width + 90} ${height + 20}"><rect x="-70" y="-20" width="100%" height="100%" fill="white"/>` +
    lines.join("") + text(0, -6, title) + text(0, height - 34, number(x.min)) + text(width - 70, height - 34, number(x.max), "end") +
    text(-6, 10, number(y.max), "end") + text(-6, height - 52, number(y.min), "end") +
    sources.map((source, at) => `<title>${escaped(source.label || source.name)}</title>`).join("") + "</svg>";
}

// A chart of values that are here already: quantiles of a tensor, its extremes.
export function plainChart(place, title, steps, curves, time, { height = 190, bands = [] } = {}) {
  const width = Math.max(200, place.clientWidth || 500);
  const series = [{ label: "step" }, ...curves.map(({ name, ink }) => ({ label: name, stroke: color(ink), width: 1.2, points: { show: steps.length < 2 } }))];
  const chart = new uPlot({
    title, width, height, series, axes: axes(false), bands: bands.map((pair) => ({ series: pair, fill: color("band") })),
    scales: { x: { time: false, range: () => time.window } }, legend: { show: true, live: true },
    cursor: { sync: { key: "steps" }, drag: { setScale: false } }, plugins: [onsetsPlugin(time)],
  }, [steps, ...curves.map(({ values }) => values)], place);
  const listener = () => chart.setScale("x", { min: time.window[0], max: time.window[1] });
  time.listeners.add(listener);
  return { chart, close: () => { time.listeners.delete(listener); chart.destroy(); } };
}
