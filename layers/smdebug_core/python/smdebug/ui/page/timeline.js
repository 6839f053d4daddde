// The window of steps that all charts of a screen share, the room beside it, and the round steps in it.

// The window of steps that all charts of a screen share.
export class TimeLine {
  /** @param {(line: TimeLine) => void} changed */
  constructor(changed) {
    this.first = 0;
    this.last = 1;
    /** @type {number | null} */
    this.from = null;
    /** @type {number | null} */
    this.to = null;
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    /** @type {Set<(step: number | null, source: unknown) => void>} */
    this.pointed = new Set();
    /** @type {{step: number, label?: string, ink?: number | null}[]} */
    this.onsets = [];
    this.changed = changed;
  }

  /** The first and the last step that are shown. @returns {[number, number]} */
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

  // Zoom or pan if that is what a key is for; return whether it is.
  key(key) {
    if (key === "+" || key === "=") this.zoom(0.5);
    else if (key === "-" || key === "−") this.zoom(2);
    else if (key === "ArrowLeft") this.pan(-0.25);
    else if (key === "ArrowRight") this.pan(0.25);
    else if (key === "0") this.show(this.first, this.last);
    else return false;
    return true;
  }

  tell() {
    this.listeners.forEach((listener) => listener());
  }

  // Point at a step (null: at none) on every chart but the one under the pointer.
  point(step, source) {
    this.pointed.forEach((listener) => listener(step, source));
  }
}

// The time line of a screen whose address keeps its window.
export function timeLineOf(values, remember) {
  const time = new TimeLine(({ from, to }) =>
    remember({ from: from === null ? "" : Math.floor(from), to: to === null ? "" : Math.ceil(to) }),
  );
  if (values.get("from") && values.get("to"))
    [time.from, time.to] = [Number(values.get("from")), Number(values.get("to"))];
  return time;
}

// Wide charts leave so much room at their left, for the names of layers, and at their right, for a scroll bar:
// a step has the same place on all of them.
export function gutter() {
  return window.innerWidth <= 640 ? 110 : 240;
}

export const MARGIN = 15;

// Round steps, at most so many, between two steps.
export function ticksOf(from, to, most) {
  const rough = Math.max(1, (to - from) / Math.max(1, most));
  const size = 10 ** Math.floor(Math.log10(rough));
  const every = Math.max(
    1,
    [1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough),
  );
  const found = [];
  for (let step = Math.ceil(from / every) * every; step <= to; step += every) found.push(step);
  return found;
}
