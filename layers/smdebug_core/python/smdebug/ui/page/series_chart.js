// The curves of one scalar, of one run or several, with both extremes of each stretch of steps.

import uPlot from "./vendored/uplot-1.6.32.esm.js";
import { get } from "./api.js";
import { NO_AXES, placeInWords } from "./axis.js";
import { saveButtons } from "./chart_files.js";
import { ALONE, axes, marksPlugin, verticalScale } from "./chart_parts.js";
import { color, debounced, h, menu, toggle } from "./dom.js";
import { count, number } from "./format.js";
import { inkOf, swatch } from "./inks.js";
import { bestInWords, columnsOf, curveOfMeans, smoothed, stretchAt, wordsOfStretch } from "./lines.js";
import { SharedAxis } from "./shared_axis.js";
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
   * @param {(run: string) => import("./axis.js").HasAxes} [options.runOf] the run of an id, with its axes
   * @param {boolean} [options.isAligned] with the heat map: both are as wide as the page
   */
  constructor(
    title,
    sources,
    time,
    { height = 170, view, report, words = number, runOf = () => NO_AXES, isNamed = false, isAligned = false },
  ) {
    this.view = view;
    this.name = sources[0].name;
    this.sources = sources;
    this.time = time;
    this.height = height;
    this.words = words;
    this.axis = new SharedAxis(sources, runOf, view, time);
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
    if (this.chart && this.drawn === this.formOf()) {
      this.chart.setData(this.data(), false);
      this.scale();
      this.read(null);
    } else this.rebuild();
  }

  // The curves that have a place on the axis.
  get curves() {
    return this.found.map((each, at) => (each && !this.axis.of(at).isMissing ? each : null));
  }

  // The curves that are smoothed or averaged over epochs: a point of validation is a mean already.
  get averagedPlaces() {
    const { means, smooth } = this.view;
    return this.sources.flatMap(({ mode }, at) => {
      if (mode && mode !== "TRAIN") return [];
      return (means ? this.curves[at]?.epoch_means.length : smooth) ? [at] : [];
    });
  }

  // Where the parts of a curve are on the axis.
  placesOf(at) {
    const { mode } = this.sources[at];
    return this.axis.of(at).placesOf(this.found[at], Boolean(mode) && mode !== "TRAIN");
  }

  data() {
    const { curves, averagedPlaces: averaged } = this;
    const places = new Map(curves.flatMap((each, at) => (each ? [[each, this.placesOf(at)]] : [])));
    const means = (this.view.means ? averaged : []).map((at) => {
      const mean = curveOfMeans(this.found[at].epoch_means);
      places.set(
        mean,
        mean.first.map((epoch) => this.axis.of(at).endOfEpoch(epoch)),
      );
      return mean;
    });
    const columns = columnsOf([...curves, ...means], (each) => places.get(each), this.log);
    const values = columns.slice(0, 1 + 2 * curves.length);
    const lines = this.view.means
      ? columns.slice(values.length).filter((_, at) => at % 2 === 0)
      : averaged.map((at) => smoothed(columns[2 * at + 1], this.view.smooth));
    return [...values, ...lines];
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
    return this.log || this.axis.isOfOneRun ? null : usualLimits(this.found.filter((_, at) => !this.isHidden(at)));
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

  // What a chart is made for: another axis, or other lines, take another chart.
  formOf() {
    return [this.axis.name, this.view.means, ...this.averagedPlaces].join();
  }

  rebuild() {
    this.chart?.destroy();
    const series = [{ label: "step" }];
    const averaged = this.averagedPlaces;
    this.drawn = this.formOf();
    const bands = [];
    this.sources.forEach(({ label, name }, at) => {
      const alpha = averaged.includes(at) ? 0.25 : 1;
      const ink = { ...inkOf(this.placeOf(at)), width: 1.4, points: ALONE, show: !this.isHidden(at), alpha };
      series.push({ label: label || name, ...ink }, { label: `${label || name} (smallest)`, ...ink });
      bands.push({ series: [2 * at + 1, 2 * at + 2], fill: color("band") });
    });
    for (const at of averaged) {
      const ink = { ...inkOf(this.placeOf(at)), width: 2, points: ALONE, show: !this.isHidden(at) };
      series.push({ label: `${this.sources[at].label || this.name} (average)`, ...ink });
    }
    const { time } = this;
    this.chart = new uPlot(
      {
        width: this.width,
        height: this.height,
        series,
        bands,
        axes: axes(this.log, this.words, this.isAligned ? () => gutter() - FRAME : undefined, this.axis.name),
        padding: this.isAligned ? [null, MARGIN - FRAME, null, null] : undefined,
        scales: {
          x: { time: false, range: () => this.axis.window },
          y: verticalScale(this.log, () => (this.showsAll ? null : this.limits)),
        },
        legend: { show: false },
        focus: { alpha: 0.15 },
        cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false },
        plugins: [
          marksPlugin(
            time,
            () => this.missing(),
            (step) => this.axis.at(step),
          ),
          {
            hooks: {
              setSelect: (chart) => {
                if (chart.select.width < 4) return;
                time.show(
                  this.axis.stepAt(chart.posToVal(chart.select.left, "x")),
                  this.axis.stepAt(chart.posToVal(chart.select.left + chart.select.width, "x")),
                );
                chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
              },
              setCursor: (chart) => {
                if (this.isPointedAt) return;
                const inside = chart.cursor.left >= 0;
                const step = inside ? this.axis.stepAt(chart.posToVal(chart.cursor.left, "x")) : null;
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
    const left = step === null ? -10 : this.chart.valToPos(this.axis.at(step), "x");
    this.chart.setCursor({ left, top: step === null ? -10 : 0 });
    this.isPointedAt = false;
    this.read(step);
  }

  valueAt(at, step) {
    const each = this.curves[at];
    if (!each || !each.first.length) return null;
    const place = stretchAt(each, this.axis.stepOf(at, step));
    const words = wordsOfStretch(each, place, this.words);
    if (this.axis.name !== "steps") return { words, range: placeInWords(this.axis.name, this.placesOf(at)[place]) };
    const range =
      each.first[place] === each.last[place]
        ? `step ${count(each.first[place])}`
        : `steps ${count(each.first[place])}–${count(each.last[place])}`;
    return { words, range };
  }

  read(step) {
    if (!this.legend) {
      const found = this.valueAt(0, step);
      this.readout.textContent = found
        ? step === null
          ? found.words + this.bestOf(0)
          : `${found.range}: ${found.words}`
        : "";
      return;
    }
    this.readout.textContent = step === null ? "" : placeInWords(this.axis.name, this.axis.at(step));
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
      const words = this.valueAt(at, step)?.words ?? "–";
      this.legend.children[at].lastChild.textContent = step === null ? words + this.bestOf(at) : words;
    });
  }

  // The best value of a line, where it is not said beside the chart.
  bestOf(at) {
    const best = this.found[at]?.best;
    return best && !this.isAligned ? `, ${bestInWords(best, this.words)}` : "";
  }

  scale() {
    if (!this.chart) return;
    const [min, max] = this.axis.window;
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
