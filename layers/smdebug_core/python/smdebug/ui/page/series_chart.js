// The curves of one scalar, of one run or several, with both extremes of each stretch of steps.

import uPlot from "./vendored/uplot-1.6.32.esm.js";
import { get } from "./api.js";
import { saveButtons } from "./chart_files.js";
import { ALONE, axes, marksPlugin, verticalScale } from "./chart_parts.js";
import { color, debounced, h, menu, toggle } from "./dom.js";
import { count, number } from "./format.js";
import { inkOf, swatch } from "./inks.js";
import { columnsOf, smoothed, stepOfRun, stretchAt, trainingStep, wordsOfStretch } from "./lines.js";
import { MARGIN, gutter } from "./timeline.js";
import { usualLimits } from "./usual_limits.js";

const FRAME = 8; // pixels between the border of a chart and its inside

/** @typedef {{run: string, name: string, label?: string, place?: number, mode?: string}} Source */

export class SeriesChart {
  /**
   * @param {string} title
   * @param {Source[]} sources
   * @param {import("./timeline.js").TimeLine} time
   * @param {object} options
   * @param {import("./chart_view.js").ChartView} options.view
   * @param {(error: Error) => void} options.report
   * @param {number} [options.height]
   * @param {(value: number) => string} [options.words]
   * @param {boolean} [options.isNamed] whether a single curve has its name, too
   * @param {() => [number, number][]} [options.knots] steps of the run with their training steps
   * @param {boolean} [options.isAligned] with the heat map: both are as wide as the page
   */
  constructor(
    title,
    sources,
    time,
    { height = 170, view, report, words = number, knots = () => [], isNamed = false, isAligned = false },
  ) {
    this.view = view;
    this.name = sources[0].name;
    this.sources = sources;
    this.time = time;
    this.height = height;
    this.words = words;
    this.knotsOfRun = knots;
    this.key = "";
    this.isAligned = isAligned; // with the heat map: both are as wide as the page
    this.log = view.log.has(this.name);
    this.title = title;
    this.report = report;
    this.found = sources.map(() => null);
    this.asked = 0;
    this.place = h("div");
    this.note = h("span", { class: "quiet note" });
    this.readout = h("output", { class: "readout" });
    this.logButton = toggle("Log scale", this.log, (yes) => {
      this.log = yes;
      view.setLog(this.name, yes);
      this.remark();
      this.rebuild();
    });
    this.showsAll = false; // of the values of runs that explode
    this.allButton = toggle("All values", false, (yes) => {
      this.showsAll = yes;
      this.remark();
      this.rebuild();
    });
    this.legend =
      isNamed || sources.length > 1
        ? h("div", { class: "keys-of-curves", role: "group", "aria-label": `Curves of ${title}` })
        : null;
    this.element = h(
      "figure",
      { class: "chart pairs", role: "group", "aria-label": title },
      h(
        "header",
        {},
        h("span", { class: "title", text: title, title }),
        this.note,
        this.readout,
        menu("⋯", `Scale and export of ${title}`, [this.logButton, this.allButton, ...saveButtons(this)]),
      ),
      this.place,
      this.legend,
    );
    this.listen();
    this.later = debounced(90, () => this.load().catch((error) => report?.(error)));
    this.observer = new ResizeObserver(
      () => this.chart && this.chart.setSize({ width: this.width, height: this.height }),
    );
    this.observer.observe(this.place);
  }

  listen() {
    this.pointer = (step, source) => this.point(step, source);
    this.time.pointed.add(this.pointer);
    this.listener = () => {
      this.scale();
      this.later();
    };
    this.time.listeners.add(this.listener);
    this.changed = () => {
      this.legend?.replaceChildren();
      this.rebuild();
    };
    this.view.listeners.add(this.changed);
  }

  get width() {
    return Math.max(200, this.place.clientWidth || 400);
  }

  async load() {
    const mine = ++this.asked;
    const [from, to] = this.time.window;
    const range = this.time.isWhole ? {} : { first: Math.floor(from), last: Math.ceil(to) };
    const points = Math.round(this.width * 1.5);
    const found = await Promise.all(
      this.sources.map(({ run, name, mode }) =>
        get(`run/${run}/series`, { name, ...(mode ? { mode } : {}), ...range, points }).catch((error) => {
          if (error.status === 404) return null;
          throw error;
        }),
      ),
    );
    if (mine !== this.asked || !this.element.isConnected) return;
    this.found = found;
    this.odd = found.reduce((sum, each) => sum + (each ? each.not_finite.reduce((a, b) => a + b, 0) : 0), 0);
    this.remark();
    if (this.chart) {
      this.chart.setData(this.data(), false);
      this.scale();
      this.read(null);
    } else this.rebuild();
  }

  get isOfOneRun() {
    return this.sources.every(({ run }) => run === this.sources[0].run);
  }

  // Steps of the run with their training steps; none if the axis counts every step.
  get knots() {
    return this.view.everyStep || !this.isOfOneRun ? [] : this.knotsOfRun();
  }

  across(step) {
    return trainingStep(this.knots, step);
  }

  stepAt(x) {
    return stepOfRun(this.knots, x);
  }

  get window() {
    const [from, to] = this.time.window.map((step) => this.across(step));
    return [from, Math.max(to, from + 1)];
  }

  // The curves that are smoothed: a point of validation is a mean already.
  get smoothedPlaces() {
    return this.view.smooth ? this.sources.flatMap(({ mode }, at) => (!mode || mode === "TRAIN" ? [at] : [])) : [];
  }

  // Where the parts of a curve are on the axis.
  placesOf(each) {
    return this.knots.length ? (each.training_steps ?? each.first.map((step) => this.across(step))) : each.first;
  }

  data() {
    const columns = columnsOf(this.found, (each) => this.placesOf(each), this.log);
    return [...columns, ...this.smoothedPlaces.map((at) => smoothed(columns[2 * at + 1], this.view.smooth))];
  }

  // Whether a stretch has values that the chart cannot show: NaN, infinite, or not positive on a logarithmic scale.
  isOdd(each, at) {
    return each.not_finite[at] > 0 || (this.log && each.low[at] !== null && each.low[at] <= 0);
  }

  missing() {
    return this.found.flatMap((each) =>
      each ? each.first.flatMap((first, at) => (this.isOdd(each, at) ? [[first, each.last[at]]] : [])) : [],
    );
  }

  // The limits of the axis between which most runs are; null if all values are shown.
  get limits() {
    return this.log || this.isOfOneRun ? null : usualLimits(this.found.filter((_, at) => !this.isHidden(at)));
  }

  remark() {
    const limits = this.limits;
    this.allButton.hidden = !limits;
    const below = this.log && this.found.some((each) => each?.low.some((value) => value !== null && value <= 0));
    const words = [
      this.odd ? `${this.odd.toLocaleString("en-US")} not finite` : "",
      below ? "values of 0 or less are marked below" : "",
      limits && !this.showsAll ? "values far from most runs are cut off" : "",
    ];
    this.note.textContent = words.filter(Boolean).join(", ");
    this.note.className = this.odd ? "bad note" : "quiet note";
  }

  placeOf(at) {
    return this.sources[at].place ?? at;
  }

  isHidden(at) {
    return this.legend !== null && this.view.hidden.has(this.placeOf(at));
  }

  rebuild() {
    this.chart?.destroy();
    const series = [{ label: "step" }];
    const faint = new Set(this.smoothedPlaces);
    const bands = [];
    this.sources.forEach(({ label, name }, at) => {
      const alpha = faint.has(at) ? 0.25 : 1;
      const ink = { ...inkOf(this.placeOf(at)), width: 1.4, points: ALONE, show: !this.isHidden(at), alpha };
      series.push({ label: label || name, ...ink }, { label: `${label || name} (smallest)`, ...ink });
      bands.push({ series: [2 * at + 1, 2 * at + 2], fill: color("band") });
    });
    for (const at of this.smoothedPlaces) {
      const ink = { ...inkOf(this.placeOf(at)), width: 2, points: ALONE, show: !this.isHidden(at) };
      series.push({ label: `${this.sources[at].label || this.name} (smoothed)`, ...ink });
    }
    const { time } = this;
    this.chart = new uPlot(
      {
        width: this.width,
        height: this.height,
        series,
        bands,
        axes: axes(this.log, this.words, this.isAligned ? () => gutter() - FRAME : undefined),
        padding: this.isAligned ? [null, MARGIN - FRAME, null, null] : undefined,
        scales: {
          x: { time: false, range: () => this.window },
          y: verticalScale(this.log, () => (this.showsAll ? null : this.limits)),
        },
        legend: { show: false },
        focus: { alpha: 0.15 },
        cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false },
        plugins: [
          marksPlugin(
            time,
            () => this.missing(),
            (step) => this.across(step),
          ),
          {
            hooks: {
              setSelect: (chart) => {
                if (chart.select.width < 4) return;
                time.show(
                  this.stepAt(chart.posToVal(chart.select.left, "x")),
                  this.stepAt(chart.posToVal(chart.select.left + chart.select.width, "x")),
                );
                chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
              },
              setCursor: (chart) => {
                if (this.isPointedAt) return;
                const inside = chart.cursor.left >= 0;
                const step = inside ? this.stepAt(chart.posToVal(chart.cursor.left, "x")) : null;
                this.read(step);
                time.point(step, this);
              },
            },
          },
        ],
      },
      this.data(),
      this.place,
    );
    this.chart.over.addEventListener("dblclick", () => time.show(time.first, time.last));
    this.read(null);
  }

  // Show the values at a step that another chart points at.
  point(step, source) {
    if (source === this || !this.chart) return;
    this.isPointedAt = true;
    const left = step === null ? -10 : this.chart.valToPos(this.across(step), "x");
    this.chart.setCursor({ left, top: step === null ? -10 : 0 });
    this.isPointedAt = false;
    this.read(step);
  }

  valueAt(each, step) {
    if (!each || !each.first.length) return null;
    const at = stretchAt(each, step);
    const words = wordsOfStretch(each, at, this.words);
    if (this.knots.length) return { words, range: `step ${count(Math.floor(this.placesOf(each)[at]))}` };
    const range =
      each.first[at] === each.last[at]
        ? `step ${count(each.first[at])}`
        : `steps ${count(each.first[at])}–${count(each.last[at])}`;
    return { words, range };
  }

  read(step) {
    if (!this.legend) {
      const found = this.valueAt(this.found[0], step);
      this.readout.textContent = found ? (step === null ? found.words : `${found.range}: ${found.words}`) : "";
      return;
    }
    this.readout.textContent = step === null ? "" : `step ${count(Math.floor(this.across(step)))}`;
    if (this.legend.childElementCount !== this.sources.length) {
      this.legend.replaceChildren(
        ...this.sources.map(({ label, name }, at) =>
          h(
            "button",
            {
              type: "button",
              "aria-pressed": String(!this.isHidden(at)),
              title: "Show or hide this run in all charts",
              onclick: () => this.hide(at),
              onpointerenter: () => this.single(at),
              onpointerleave: () => this.single(null),
              onfocus: () => this.single(at),
              onblur: () => this.single(null),
            },
            swatch(this.placeOf(at)),
            h("span", { text: label || name }),
            h("b"),
          ),
        ),
      );
    }
    this.sources.forEach((_, at) => {
      const words = this.valueAt(this.found[at], step)?.words ?? "–";
      this.legend.children[at].lastChild.textContent = step === null ? words + this.lowestOf(at) : words;
    });
  }

  // The lowest value of a loss and its training step, where it has lines of modes.
  lowestOf(at) {
    const lowest = this.found[at]?.lowest;
    if (!lowest || !/loss/i.test(this.name)) return "";
    return `, lowest ${this.words(lowest[0])} at step ${count(lowest[1])}`;
  }

  scale() {
    if (!this.chart) return;
    const [min, max] = this.window;
    this.chart.setScale("x", { min, max });
  }

  // Hide a run or show it again; the focus stays on its name.
  hide(at) {
    this.view.toggle(this.placeOf(at));
    this.legend.children[at]?.focus();
  }

  // Fade the other curves.
  single(at) {
    this.chart?.setSeries(at === null ? null : 2 * at + 1, { focus: at !== null });
  }

  get shownCurves() {
    return this.sources.flatMap(({ label, name }, at) =>
      this.isHidden(at) ? [] : [{ at, place: this.placeOf(at), label: label || name }],
    );
  }

  close() {
    this.time.listeners.delete(this.listener);
    this.time.pointed.delete(this.pointer);
    this.view.listeners.delete(this.changed);
    this.observer.disconnect();
    this.chart?.destroy();
  }
}
