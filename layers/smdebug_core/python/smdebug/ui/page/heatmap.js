// Layers by steps: a statistic of every tensor as colours. Each pixel has the largest value that falls on it.

import { get, matrix } from "./api.js";
import { button, debounced, download, h, replace, sized } from "./dom.js";
import { number, statisticName } from "./format.js";
import { cellsOf, largest, smallest } from "./heat_cells.js";
import { cellInWords } from "./heat_words.js";
import { drawOnsets, drawScale, drawSteps, labelledPicture } from "./heat_frame.js";
import { paint } from "./heat_pixels.js";
import { isPrinting } from "./printing.js";
import { MARGIN, gutter } from "./timeline.js";
import { MOST_OPEN, foldingOf, openAll, openFor, openPaths, openThese, shownRows, treeOf, unfold } from "./tree.js";

const HEIGHT = 460;
const PRINTED_HEIGHT = 900;
const ROW = 17;
const WHERE = "The same numbers are in the panel of each tensor.";

export class HeatMap {
  /**
   * @param {string} run
   * @param {import("./timeline.js").TimeLine} time
   * @param {object} options
   * @param {(error: Error) => void} options.report
   * @param {(kind: string, tensor: string, step?: number) => void} options.chosen
   * @param {(values: Record<string, any>) => void} [options.remember] keeps in the address what is open
   * @param {string} [options.tree] which modules are open
   * @param {boolean} [options.fit] whether all rows fit into the window
   */
  constructor(run, time, { report, chosen, remember = () => {}, tree = "", fit = false }) {
    this.run = run;
    this.time = time;
    this.report = report;
    this.chosen = chosen;
    this.remember = remember;
    this.sent = tree;
    this.kind = "";
    this.statistic = "rms";
    this.extreme = "high";
    this.fitted = fit;
    this.names = [];
    /** @type {import("./types/answers.js").Matrix | null} */
    this.data = null;
    this.cells = new Uint8Array();
    this.range = [0, 1];
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
    this.legend = h(
      "div",
      { class: "legend" },
      this.low,
      this.scaleCanvas,
      this.high,
      h("span", { class: "bad", text: "■ not finite" }),
      this.note,
    );
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
      this.cross.style.left = `${gutter() + ((step - from) / (to - from)) * this.width}px`;
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

  // Between rows that are high enough.
  get gap() {
    return this.rowHeight >= 8 ? 1 : 0;
  }

  get width() {
    return Math.max(60, this.scroll.offsetWidth - gutter() - MARGIN);
  }

  choose(kind, statistic, extreme) {
    const other = kind !== this.kind;
    Object.assign(this, { kind, statistic, extreme });
    if (other) {
      if (this.names.length) this.forget();
      [this.names, this.isFolded] = [[], false];
    }
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
      else if (this.sent) {
        unfold(this.tree, this.sent);
        this.isFolded = true;
      } else openFor(this.tree, MOST_OPEN);
    }
    this.data = data;
    this.colour();
    this.arrange();
  }

  colour() {
    const { cells, range } = cellsOf(this.data, this.statistic, this.extreme);
    [this.cells, this.range] = [cells, range];
    this.low.textContent = number(10 ** range[0]);
    this.high.textContent = number(10 ** range[1]);
    drawScale(sized(this.scaleCanvas, 160, 10), 160, 10);
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
    const most = isPrinting() ? PRINTED_HEIGHT : HEIGHT; // paper does not scroll
    const fits = this.fitted || isPrinting();
    this.rowHeight = fits ? Math.max(1, Math.min(ROW, most / Math.max(1, this.shown.length))) : ROW;
    const height = Math.max(this.rowHeight * this.shown.length, 1);
    this.visible = Math.min(most, height);
    this.scroll.style.height = `${this.visible}px`;
    this.layers.style.height = `${height}px`;
    const active = /** @type {HTMLElement} */ (document.activeElement);
    const focused = this.layers.contains(active) ? active.dataset.path : null;
    const labelled = this.rowHeight >= 11 ? this.shown : [];
    replace(
      this.layers,
      ...labelled.map((row, at) => {
        const label_of = h("button", {
          type: "button",
          text: this.labelOf(row),
          title: row.node.full || row.node.path,
          "data-path": row.node.path,
          "aria-expanded": row.leaf ? null : String(row.node.open),
          "aria-current": row.leaf && row.node.full === this.current ? "true" : null,
          onclick: () => (row.leaf ? this.choose_tensor(row) : this.fold(row)),
        });
        label_of.style.top = `${at * this.rowHeight}px`;
        label_of.style.height = `${this.rowHeight}px`;
        label_of.style.paddingLeft = `${4 + 10 * row.depth}px`;
        return label_of;
      }),
    );
    if (focused)
      [...this.layers.children].find((each) => each.dataset.path === focused)?.focus({ preventScroll: true });
    this.canvas.setAttribute(
      "aria-label",
      `${statisticName(this.statistic)} of ${this.kind}: ${this.names.length} tensors by steps. ${WHERE}`,
    );
    this.draw();
  }

  // In other colours, or on paper.
  redraw() {
    if (this.tree && this.data) this.arrange();
  }

  labelOf(row) {
    return row.leaf ? row.name : `${row.node.open ? "▾" : "▸"} ${row.name}`;
  }

  fold(row) {
    row.node.open = !row.node.open;
    this.folded();
  }

  foldAll(open) {
    if (!this.tree) return; // nothing was loaded so far
    openAll(this.tree, open);
    this.folded();
  }

  folded() {
    this.isFolded = true;
    this.sent = foldingOf(this.tree, this.names);
    this.remember({ tree: this.sent });
    this.arrange();
  }

  forget() {
    this.sent = "";
    this.remember({ tree: "" });
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

  draw() {
    if (!this.data || !this.shown.length) return;
    const width = Math.floor(this.width);
    const height = Math.max(1, Math.floor(this.visible));
    const context = sized(this.canvas, width, height);
    const ratio = window.devicePixelRatio || 1;
    // Where a pixel of the device is larger than that of the page, every pixel is computed: none may be left out.
    const scale = Math.min(1, ratio);
    const [wide, high] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
    const image =
      this.image?.width === wide && this.image.height === high ? this.image : (this.image = new ImageData(wide, high));
    paint(image, {
      data: this.data,
      rows: this.shown,
      rowHeight: this.rowHeight * scale,
      top: this.scroll.scrollTop * scale,
      window: this.time.window,
      chief: this.chief,
      gap: this.gap,
    });
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
    drawOnsets(context, this.time, width, height);
    drawSteps(sized(this.axis, width, 22), this.time.window, width);
    this.frames++;
    this.firstStep = this.data.first[0];
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
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
        event.preventDefault();
        const place = this.at(event);
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
          this.time.pan((event.deltaX || event.deltaY) / 1000);
        else this.time.zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, place?.step);
      },
      { passive: false },
    );
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
    this.tip.textContent = cellInWords(this.data, place.row, place.column, this.statistic);
    this.tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - 300)}px`;
    this.tip.style.top = `${event.clientY + 16}px`;
  }

  // All rows, also those that are scrolled away.
  picture() {
    if (!this.data) return;
    const extremes = `, the ${this.extreme === "low" ? "smallest" : "largest"} of several steps`;
    const canvas = labelledPicture({
      title: `${statisticName(this.statistic)} of ${this.kind}${this.data.exact ? "" : extremes}`,
      labels: this.shown.map((row) => ({ text: this.labelOf(row), depth: row.depth })),
      rowHeight: this.rowHeight,
      width: Math.floor(this.width),
      range: this.range,
      time: this.time,
      paintInto: (image) =>
        paint(image, {
          data: this.data,
          rows: this.shown,
          rowHeight: this.rowHeight,
          top: 0,
          window: this.time.window,
          chief: this.chief,
          gap: this.gap,
        }),
    });
    canvas.toBlob((image) => download(`${this.kind}-${this.statistic}.png`, image));
  }

  controls() {
    return [
      button("Unfold all", () => this.foldAll(true)),
      button("Fold all", () => this.foldAll(false)),
      button(
        "Fit",
        (event) => {
          this.fitted = !this.fitted;
          event.target.setAttribute("aria-pressed", String(this.fitted));
          this.remember({ fit: this.fitted ? "1" : "" });
          if (this.tree) this.arrange();
        },
        { "aria-pressed": String(this.fitted), title: "Squeeze all rows into the window" },
      ),
      button("PNG", () => this.picture(), { title: "Save all rows as a picture" }),
    ];
  }

  close() {
    this.time.listeners.delete(this.listener);
    this.time.pointed.delete(this.pointer);
    this.observer.disconnect();
  }
}
