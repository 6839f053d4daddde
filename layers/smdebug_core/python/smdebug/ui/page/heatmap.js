// Layers by steps: a statistic of every tensor as colours. Each pixel has the largest value that falls on it.

import { get, matrix } from "./api.js";
import { button, color, debounced, download, h, replace, sized } from "./dom.js";
import { number, statisticName } from "./format.js";
import { openAll, openFor, openPaths, openThese, shownRows, treeOf } from "./tree.js";

const HEIGHT = 460;
const ROW = 17;
const NOT_FINITE = 255;
const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const SIGNED = new Set(["mean", "min", "max", "p01", "p05", "p25", "p50", "p75", "p95", "p99"]);

const COLOURS = (() => {
  const table = new Uint32Array(256);
  for (let at = 1; at < 255; at++) {
    const place = ((at - 1) / 253) * (STOPS.length - 1);
    const below = Math.min(STOPS.length - 2, Math.floor(place));
    const share = place - below;
    const [r, g, b] = STOPS[below].map((value, part) => Math.round(value + (STOPS[below + 1][part] - value) * share));
    table[at] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  table[NOT_FINITE] = (255 << 24) | (60 << 16) | (30 << 8) | 230;
  return table;
})();

// The index of the cell that counts where several share a place: the largest, or of the smallest values the
// smallest (0: not measured). A value that is not finite counts always.
const largest = (a, b) => (a > b ? a : b);
const smallest = (a, b) => (a === NOT_FINITE || b === NOT_FINITE ? NOT_FINITE : a === 0 || b === 0 ? a || b : a < b ? a : b);

// Round steps, at most so many, between two steps.
export function ticksOf(from, to, most) {
  const rough = Math.max(1, (to - from) / Math.max(1, most));
  const size = 10 ** Math.floor(Math.log10(rough));
  const every = Math.max(1, [1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough));
  const found = [];
  for (let step = Math.ceil(from / every) * every; step <= to; step += every) found.push(step);
  return found;
}

export class HeatMap {
  constructor(run, time, { report, chosen }) {
    this.run = run;
    this.time = time;
    this.report = report;
    this.chosen = chosen;
    this.kind = "";
    this.statistic = "rms";
    this.extreme = "high";
    this.fitted = false;
    this.names = [];
    this.data = null;
    this.shown = [];
    this.asked = 0;
    this.canvas = h("canvas", { role: "img", "aria-label": "Layers by steps", tabindex: "0" });
    this.layers = h("div", { class: "layers", role: "group", "aria-label": "Layers, from input to output" });
    this.scroll = h("div", { class: "scroll", onscroll: () => this.draw() }, this.layers, this.canvas);
    this.tip = h("div", { class: "tip", hidden: true });
    this.axis = h("canvas", { class: "axis", "aria-hidden": "true" });
    this.cross = h("div", { class: "cross", hidden: true });
    this.scaleCanvas = h("canvas", { "aria-hidden": "true" });
    this.low = h("span");
    this.high = h("span");
    this.note = h("span", { class: "quiet" });
    this.legend = h("div", { class: "legend" }, this.low, this.scaleCanvas, this.high, h("span", { class: "bad", text: "■ not finite" }), this.note);
    this.element = h("div", {}, h("div", { class: "heat" }, this.scroll, this.axis, this.cross), this.legend, this.tip);
    this.later = debounced(120, () => this.load().catch(report));
    this.listener = () => {
      this.draw();
      if (!this.data?.exact) this.later();
    };
    time.listeners.add(this.listener);
    this.pointer = (step) => {
      const [from, to] = time.window;
      this.cross.hidden = step === null || step < from || step > to;
      this.cross.style.left = `${this.gutter + ((step - from) / (to - from)) * this.width}px`;
    };
    time.pointed.add(this.pointer);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.scroll);
    this.frames = 0;
    this.listen();
  }

  get chief() {
    return this.extreme === "low" ? smallest : largest;
  }

  get gutter() {
    return window.innerWidth <= 640 ? 110 : 240;
  }

  get width() {
    return Math.max(60, this.scroll.clientWidth - this.gutter);
  }

  choose(kind, statistic, extreme) {
    const other = kind !== this.kind;
    Object.assign(this, { kind, statistic, extreme });
    if (other) [this.names, this.isFolded] = [[], false];
    return this.load();
  }

  async load() {
    if (!this.kind) return;
    const mine = ++this.asked;
    const [from, to] = this.time.window;
    const zoomed = this.data && !this.data.exact && !this.time.isWhole;
    const range = zoomed ? { first: Math.floor(from), last: Math.ceil(to) } : {};
    const [rows, data] = await Promise.all([
      get(`run/${this.run}/rows`, { kind: this.kind }),
      matrix(`run/${this.run}/matrix`, { kind: this.kind, statistic: this.statistic, ...range, points: 4096 }),
    ]);
    if (mine !== this.asked) return;
    if (rows.names.length !== this.names.length || rows.names.some((name, at) => name !== this.names[at])) {
      const open = this.isFolded ? openPaths(this.tree) : null;
      this.names = rows.names;
      this.tree = treeOf(this.names);
      if (open) openThese(this.tree, open);
      else openFor(this.tree, 40);
    }
    this.data = data;
    this.colour();
    this.arrange();
  }

  // Colours of all cells: logarithmic, over the middle of the values.
  colour() {
    const { low, high } = this.data;
    const source = this.extreme === "low" ? low : high;
    const signed = SIGNED.has(this.statistic);
    const values = new Float32Array(source.length);
    const sizes = [];
    const every = Math.max(1, Math.floor(source.length / 20000));
    for (let at = 0; at < source.length; at++) {
      // Of signed values the one that is farther from 0 counts.
      if (high[at] === Infinity) {
        values[at] = Infinity; // a value that is not finite in any of its steps
        continue;
      }
      const value = signed && this.extreme !== "low" ? Math.max(Math.abs(low[at]), Math.abs(high[at])) : Math.abs(source[at]);
      values[at] = value;
      if (at % every === 0 && value > 0 && value < Infinity) sizes.push(value);
    }
    sizes.sort((a, b) => a - b);
    // The colours end at the outstanding values: the largest, or of the smallest values the smallest.
    const at_share = (share) => (sizes.length ? Math.log10(sizes[Math.floor((sizes.length - 1) * share)]) : -1);
    let [bottom, top] = [at_share(0.02), at_share(0.98)];
    for (const value of values) {
      if (!(value > 0 && value < Infinity)) continue;
      if (this.extreme === "low") bottom = Math.min(bottom, Math.log10(value));
      else top = Math.max(top, Math.log10(value));
    }
    this.range = [bottom, Math.max(top, bottom + 0.1)];
    const reach = this.range[1] - this.range[0];
    const cells = new Uint8Array(values.length);
    for (let at = 0; at < values.length; at++) {
      const value = values[at];
      if (Number.isNaN(value)) continue;
      if (value === Infinity) cells[at] = NOT_FINITE;
      else if (value === 0) cells[at] = 1;
      else cells[at] = 1 + Math.max(0, Math.min(253, Math.round(((Math.log10(value) - bottom) / reach) * 253)));
    }
    if (this.statistic === "non_finite") for (let at = 0; at < cells.length; at++) if (source[at] > 0) cells[at] = NOT_FINITE;
    this.cells = cells;
    this.low.textContent = number(10 ** this.range[0]);
    this.high.textContent = number(10 ** this.range[1]);
    const context = sized(this.scaleCanvas, 160, 10);
    for (let at = 0; at < 160; at++) {
      const value = COLOURS[1 + Math.round((at / 159) * 253)];
      context.fillStyle = `rgb(${value & 255},${(value >> 8) & 255},${(value >> 16) & 255})`;
      context.fillRect(at, 0, 1, 10);
    }
    this.note.textContent = this.data.exact ? "" : "each cell is the extreme of several steps";
  }

  // The shown rows: of a folded module, the largest of its tensors.
  arrange() {
    const { columns } = this.data;
    this.shown = shownRows(this.tree).slice(0, 5000);
    for (const row of this.shown) {
      if (row.rows.length === 1) {
        row.cells = this.cells.subarray(row.rows[0] * columns, (row.rows[0] + 1) * columns);
        continue;
      }
      const cells = new Uint8Array(columns);
      for (const place of row.rows) {
        const start = place * columns;
        for (let at = 0; at < columns; at++) cells[at] = this.chief(this.cells[start + at], cells[at]);
      }
      row.cells = cells;
    }
    this.rowHeight = this.fitted ? Math.max(1, Math.min(ROW, HEIGHT / Math.max(1, this.shown.length))) : ROW;
    const height = Math.max(this.rowHeight * this.shown.length, 1);
    this.visible = Math.min(HEIGHT, height);
    this.scroll.style.height = `${this.visible}px`;
    this.layers.style.height = `${height}px`;
    const focused = this.layers.contains(document.activeElement) ? document.activeElement.dataset.path : null;
    const labelled = this.rowHeight >= 11 ? this.shown : [];
    replace(this.layers, ...labelled.map((row, at) => {
      const label = row.leaf ? row.name : `${row.node.open ? "▾" : "▸"} ${row.name}`;
      const label_of = h("button", {
        type: "button", text: label, title: row.node.full || row.node.path, "data-path": row.node.path,
        "aria-expanded": row.leaf ? null : String(row.node.open),
        "aria-current": row.leaf && row.node.full === this.current ? "true" : null,
        onclick: () => (row.leaf ? this.choose_tensor(row) : this.fold(row)),
      });
      label_of.style.top = `${at * this.rowHeight}px`;
      label_of.style.height = `${this.rowHeight}px`;
      label_of.style.paddingLeft = `${4 + 10 * row.depth}px`;
      return label_of;
    }));
    if (focused) [...this.layers.children].find((each) => each.dataset.path === focused)?.focus({ preventScroll: true });
    this.canvas.setAttribute("aria-label", `${statisticName(this.statistic)} of ${this.kind}: ${this.names.length} tensors by steps. The same numbers are in the panel of each tensor.`);
    this.draw();
  }

  fold(row) {
    row.node.open = !row.node.open;
    this.isFolded = true;
    this.arrange();
  }

  foldAll(open) {
    if (!this.tree) return; // nothing was loaded so far
    openAll(this.tree, open);
    this.isFolded = true;
    this.arrange();
  }

  choose_tensor(row, step) {
    this.current = row.node.full;
    this.chosen(this.kind, row.node.full, step);
    for (const label of this.layers.children) {
      if (label.title === this.current) label.setAttribute("aria-current", "true");
      else label.removeAttribute("aria-current");
    }
  }

  // The panel of a tensor was closed: the focus returns to its row.
  leave(name) {
    this.current = null;
    for (const label of this.layers.children) {
      if (label.title === name) label.focus({ preventScroll: true });
      label.removeAttribute("aria-current");
    }
  }

  // For each pixel the columns whose steps fall on it; between two saved steps, the one before.
  columnsOf(width) {
    const { first, columns } = this.data;
    const [from, to] = this.time.window;
    const starts = new Int32Array(width + 1);
    let at = 0;
    for (let pixel = 0; pixel <= width; pixel++) {
      const step = from + ((to - from) * pixel) / width;
      while (at < columns && first[at] < step) at++;
      starts[pixel] = at;
    }
    while (at < columns && first[at] <= to) at++; // the last step belongs to the last pixel
    starts[width] = at;
    return starts;
  }

  draw() {
    if (!this.data || !this.shown.length) return;
    const width = Math.floor(this.width);
    const height = Math.max(1, Math.floor(this.visible));
    const context = sized(this.canvas, width, height);
    const ratio = window.devicePixelRatio || 1;
    // Where a pixel of the device is larger than that of the page, every pixel is computed: none may be left out.
    const scale = Math.min(1, ratio);
    const image = this.paint(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)), scale);
    if (ratio <= 1) context.putImageData(image, 0, 0);
    else {
      const buffer = this.buffer || (this.buffer = document.createElement("canvas"));
      buffer.width = width;
      buffer.height = height;
      buffer.getContext("2d").putImageData(image, 0, 0);
      context.clearRect(0, 0, width, height);
      context.imageSmoothingEnabled = false;
      context.drawImage(buffer, 0, 0);
    }
    const [from, to] = this.time.window;
    context.strokeStyle = color("bad");
    context.setLineDash([4, 3]);
    this.time.onsets.forEach(({ step }) => {
      const x = ((step - from) / (to - from)) * width;
      if (x < 0 || x > width) return;
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, height);
      context.stroke();
    });
    context.setLineDash([]);
    this.drawAxis(width, from, to);
    this.frames++;
    this.firstStep = this.data.first[0];
  }

  // The pixels of the visible rows over the visible steps.
  paint(width, height, scale) {
    const starts = this.columnsOf(width);
    const { last, columns } = this.data;
    const [from, to] = this.time.window;
    const beyond = columns ? Math.floor(((last[columns - 1] + 1 - from) / (to - from)) * width) + 1 : 0;
    const top = this.scroll.scrollTop * scale;
    const size = this.rowHeight * scale;
    const image = this.image?.width === width && this.image.height === height ? this.image : (this.image = new ImageData(width, height));
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(0);
    const { chief } = this;
    const line = new Uint8Array(width);
    // Of rows thinner than a pixel, the chief one counts.
    const shared = size < 1 ? new Uint8Array(width * height) : null;
    const begin = Math.floor(top / size);
    const end = Math.min(this.shown.length, Math.ceil((top + height) / size));
    const gap = this.rowHeight >= 8 ? 1 : 0;
    for (let row = begin; row < end; row++) {
      const { cells } = this.shown[row];
      for (let pixel = 0; pixel < width; pixel++) {
        const start = starts[pixel];
        const stop = starts[pixel + 1];
        let value = 0;
        if (stop > start) for (let at = start; at < stop; at++) value = chief(cells[at], value);
        else if (start > 0 && pixel < beyond) value = cells[start - 1];
        line[pixel] = value;
      }
      const y0 = Math.max(0, Math.round(row * size - top));
      const y1 = Math.min(height, Math.max(y0 + 1, Math.round((row + 1) * size - top) - gap));
      for (let y = y0; y < y1; y++) {
        const start = y * width;
        for (let pixel = 0; pixel < width; pixel++) {
          const value = shared ? (shared[start + pixel] = chief(line[pixel], shared[start + pixel])) : line[pixel];
          pixels[start + pixel] = COLOURS[value];
        }
      }
    }
    return image;
  }

  drawAxis(width, from, to) {
    const context = sized(this.axis, width, 22);
    context.clearRect(0, 0, width, 22);
    context.fillStyle = context.strokeStyle = color("quiet");
    context.font = "11px system-ui, sans-serif";
    for (const step of ticksOf(from, to, width / 90)) {
      const x = ((step - from) / (to - from)) * width;
      context.fillRect(x, 0, 1, 4);
      const text = step.toLocaleString("en-US");
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.max(0, Math.min(width - 2 * half, x - half)), 16);
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [from, to] = this.time.window;
    const step = from + ((event.clientX - box.left) / box.width) * (to - from);
    const row = this.shown[Math.floor((event.clientY - box.top + this.scroll.scrollTop) / this.rowHeight)];
    if (!row || !this.data) return null;
    const { first, columns } = this.data;
    let column = 0;
    while (column + 1 < columns && first[column + 1] <= step) column++;
    return { step, row, column };
  }

  listen() {
    let drag = null;
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
      event.preventDefault();
      const place = this.at(event);
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.time.pan((event.deltaX || event.deltaY) / 1000);
      else this.time.zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, place?.step);
    }, { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, window: this.time.window, moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (drag) {
        const by = event.clientX - drag.x;
        if (Math.abs(by) > 3) drag.moved = true;
        const [from, to] = drag.window;
        const steps = (-by / this.width) * (to - from);
        if (drag.moved && !this.time.isWhole) this.time.show(from + steps, to + steps);
        return;
      }
      this.point(event);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const place = drag && !drag.moved ? this.at(event) : null;
      drag = null;
      if (!place) return;
      if (place.row.leaf) this.choose_tensor(place.row, this.data.last[place.column]);
      else this.fold(place.row);
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
      this.time.point(null, this);
    });
    this.canvas.addEventListener("dblclick", () => this.time.show(this.time.first, this.time.last));
  }

  point(event) {
    const place = this.at(event);
    this.tip.hidden = !place;
    this.time.point(place ? place.step : null, this);
    if (!place) return;
    const { row, column } = place;
    const { columns, low, high, first, last } = this.data;
    const cell = row.rows[0] * columns + column;
    const steps = first[column] === last[column] ? `step ${first[column]}` : `steps ${first[column]}–${last[column]}`;
    const value = row.rows.length > 1 ? `${row.rows.length} tensors` : high[cell] === Infinity ? "not finite" : Number.isNaN(high[cell]) ? "not measured" : low[cell] === high[cell] ? number(high[cell]) : `${number(low[cell])} to ${number(high[cell])}`;
    this.tip.textContent = `${row.node.full || row.node.path} · ${steps} · ${statisticName(this.statistic)} ${value}`;
    this.tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - 300)}px`;
    this.tip.style.top = `${event.clientY + 16}px`;
  }

  picture() {
    this.canvas.toBlob((image) => download(`${this.kind}-${this.statistic}.png`, image));
  }

  controls() {
    return [
      button("Unfold all", () => this.foldAll(true)),
      button("Fold all", () => this.foldAll(false)),
      button("Fit", (event) => {
        this.fitted = !this.fitted;
        event.target.setAttribute("aria-pressed", String(this.fitted));
        if (this.tree) this.arrange();
      }, { "aria-pressed": "false", title: "Squeeze all rows into the window" }),
      button("PNG", () => this.picture()),
    ];
  }

  close() {
    this.time.listeners.delete(this.listener);
    this.time.pointed.delete(this.pointer);
    this.observer.disconnect();
  }
}
