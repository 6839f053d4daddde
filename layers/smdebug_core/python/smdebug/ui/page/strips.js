// Rows of coloured stretches under the same steps as the charts: modes, facts, and which workers differ.

import { color, h, replace, sized } from "./dom.js";
import { factName } from "./format.js";
import { MARGIN, gutter, ticksOf } from "./timeline.js";

const MOST_HEIGHT = 420;

// Rows are {name, stretches: [{first, last, ink, text}]}; an ink is the name of a colour of the style sheet.
export class Strip {
  constructor(label, time) {
    this.time = time;
    this.label = label;
    this.rows = [];
    this.canvas = h("canvas", { role: "img", "aria-label": label });
    this.tip = h("div", { class: "tip", hidden: true });
    this.cross = h("div", { class: "cross", hidden: true });
    this.strip = h("div", { class: "strip" }, this.canvas, this.cross, this.tip);
    this.legend = h("div", { class: "legend" });
    this.element = h("div", {}, this.strip, this.legend);
    this.listener = () => this.draw();
    this.pointer = (step) => {
      const [from, to] = time.window;
      this.cross.hidden = step === null || step < from || step > to;
      this.cross.style.left = `${gutter() + ((step - from) / (to - from)) * this.width}px`;
    };
    time.listeners.add(this.listener);
    time.pointed.add(this.pointer);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
      time.point(null, this);
    });
    this.canvas.addEventListener("dblclick", () => time.show(time.first, time.last));
  }

  get width() {
    return Math.max(60, this.strip.clientWidth - gutter() - MARGIN);
  }

  get rowHeight() {
    return Math.max(0.1, Math.min(18, MOST_HEIGHT / Math.max(1, this.rows.length)));
  }

  // `inks` says what the colours mean: [[ink, text]].
  show(rows, words, inks = []) {
    this.rows = rows;
    replace(
      this.legend,
      inks.map(([ink, text]) => {
        const square = h("i", { class: "square", "aria-hidden": "true" });
        square.style.background = `var(--${ink})`;
        return h("span", {}, square, text);
      }),
    );
    this.canvas.setAttribute("aria-label", `${this.label}: ${words}`);
    this.draw();
  }

  draw() {
    if (!this.rows.length || !this.element.isConnected) return;
    const size = this.rowHeight;
    const height = Math.ceil(size * this.rows.length);
    const { width } = this;
    const left = gutter();
    const [from, to] = this.time.window;
    const context = sized(this.canvas, left + width, height + 20);
    context.clearRect(0, 0, left + width, height + 20);
    context.font = "11px system-ui, sans-serif";
    const place = (step) => left + Math.max(0, Math.min(1, (step - from) / (to - from))) * width;
    const inks = new Map();
    // Rows that are thinner than a pixel: those in red come last, over the others.
    const order = size >= 2 ? ["all"] : ["others", "bad"];
    for (const pass of order) {
      this.rows.forEach(({ stretches }, at) => {
        for (const { first, last, ink } of stretches) {
          if (last < from || first > to || (pass !== "all" && (ink === "bad") !== (pass === "bad"))) continue;
          if (!inks.has(ink)) inks.set(ink, color(ink));
          context.fillStyle = inks.get(ink);
          const x = place(first);
          context.fillRect(
            x,
            Math.floor(at * size),
            Math.max(2, place(last) - x),
            Math.max(1, Math.ceil(size >= 6 ? size - 2 : size)),
          );
        }
      });
    }
    context.fillStyle = color("quiet");
    if (size >= 11) this.rows.forEach(({ name }, at) => context.fillText(name, 0, at * size + size / 2 + 3, left - 8));
    for (const step of ticksOf(from, to, width / 90)) {
      const text = step.toLocaleString("en-US");
      const half = context.measureText(text).width / 2;
      context.fillRect(place(step), height, 1, 4);
      context.fillText(text, Math.max(left, Math.min(left + width - 2 * half, place(step) - half)), height + 15);
    }
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const [from, to] = this.time.window;
    const step = from + ((event.clientX - box.left - gutter()) / this.width) * (to - from);
    const row = this.rows[Math.floor((event.clientY - box.top) / this.rowHeight)];
    const isInside = Boolean(row) && step >= from && step <= to;
    this.time.point(isInside ? step : null, this);
    const near = ((to - from) / this.width) * 4;
    const found = isInside
      ? row.stretches.findLast((each) => each.first - near <= step && each.last + near >= step)
      : null;
    this.tip.hidden = !found;
    if (!found) return;
    this.tip.textContent = `${row.name} · ${found.text}`;
    this.tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - 300)}px`;
    this.tip.style.top = `${event.clientY + 16}px`;
  }

  close() {
    this.time.listeners.delete(this.listener);
    this.time.pointed.delete(this.pointer);
    this.observer.disconnect();
  }
}

const MODES = { train: "curve", eval: "curve2", predict: "curve4", global: "quiet" };

// The modes of the steps, and one row for each fact that changed.
export function rowsOfFacts(modes, changes, last) {
  const rows = [
    {
      name: "mode",
      stretches: modes.map(([first, end, mode], at) => ({
        first,
        last: modes[at + 1]?.[0] ?? Math.max(end, last),
        ink: MODES[mode.toLowerCase()] || "quiet",
        text: `${mode.toLowerCase()} from step ${first} to ${end}`,
      })),
    },
  ];
  const by = new Map();
  changes.forEach(([step, name, value]) => by.set(name, [...(by.get(name) || []), [step, value]]));
  for (const [name, found] of by) {
    if (found.length < 2) continue; // the same from the first step on: it is in the table below
    rows.push({
      name: factName(name),
      stretches: found.map(([step, value], at) => ({
        first: step,
        last: found[at + 1]?.[0] ?? last,
        ink: at % 2 ? "curve6" : "line",
        text: `${value} from step ${step} on`,
      })),
    });
  }
  return rows.slice(0, 20);
}

// The steps at which rules have findings, a row for each of them.
export function rowsOfFindings(rules) {
  return rules
    .filter((rule) => rule.steps_found.length)
    .map((rule) => ({
      name: rule.name,
      stretches: rule.steps_found.map((step) => ({
        first: step,
        last: step,
        ink: "bad",
        text: `finding at step ${step}`,
      })),
    }));
}

// What the colours of the modes mean, of those that the run has.
export function inksOfModes(modes) {
  return [...new Set(modes.map(([, , mode]) => mode.toLowerCase()))].map((mode) => [MODES[mode] || "quiet", mode]);
}

export const WORKER_STATES = [
  ["good", "as most workers"],
  ["bad", "differs from most workers"],
  ["line", "not saved"],
];

// The workers that differ first; joined stretches of steps with the same state.
export function rowsOfWorkers({ workers, steps, state }, onlyDifferent) {
  const rows = workers.map((name, row) => {
    const stretches = [];
    steps.forEach((step, at) => {
      const cell = state[row][at];
      const [ink, words] = WORKER_STATES[cell];
      const known = stretches.at(-1);
      if (known?.ink === ink) known.last = step;
      else {
        if (known) known.last = step;
        stretches.push({ first: step, last: step, ink, words });
      }
    });
    stretches.forEach((each) => (each.text = `${each.words} from step ${each.first} to ${each.last}`));
    return { name, stretches, differs: state[row].includes(1) };
  });
  return onlyDifferent ? rows.filter((row) => row.differs) : rows;
}
