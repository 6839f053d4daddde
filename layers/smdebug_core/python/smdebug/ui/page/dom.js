// Elements from plain data. Text is only ever set as text, so a name in a run cannot become markup.

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const FOCUSABLE = "a[href], button, input, select, summary, [tabindex]";
const nameOf = (part) =>
  [part.tagName, part.getAttribute("href"), part.getAttribute("aria-label") || part.textContent].join("\n");

// If what had the focus is made anew, the same part gets it, or else what is in its place.
export function replace(element, ...children) {
  const active = document.activeElement;
  const refocus = active !== element && element.contains(active) ? refocusing(element, active) : null;
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  refocus?.();
  return element;
}

function refocusing(element, active) {
  const parts = () => [...element.querySelectorAll(FOCUSABLE)];
  const name = nameOf(active);
  const same = () => parts().filter((part) => nameOf(part) === name);
  const [place, turn] = [parts().indexOf(active), same().indexOf(active)];
  return () => {
    const now = parts();
    (same()[turn] || now[place] || now.at(-1))?.focus({ preventScroll: true });
  };
}

export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function select(label, options, value, onchange) {
  const input = h("select", { "aria-label": label, onchange: () => onchange(input.value) });
  for (const option of options) {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    input.append(h("option", { value: key, text, selected: key === value }));
  }
  return h("label", { class: "choice" }, h("span", { text: label }), input);
}

export function button(text, onclick, properties = {}) {
  return h("button", { type: "button", text, onclick, ...properties });
}

/**
 * A button that is pressed or not.
 * @param {string} text
 * @param {boolean} isPressed
 * @param {(isPressed: boolean) => void} change
 */
export function toggle(text, isPressed, change) {
  const element = button(
    text,
    () => {
      const yes = element.getAttribute("aria-pressed") !== "true";
      element.setAttribute("aria-pressed", String(yes));
      change(yes);
    },
    { "aria-pressed": String(isPressed) },
  );
  return element;
}

// A button that opens a list of buttons; it closes at a choice, a click elsewhere and Escape.
export function menu(text, label, items) {
  const box = h(
    "details",
    { class: "menu" },
    h("summary", { text, "aria-label": label, title: label }),
    h("div", { class: "items" }, ...items.filter(Boolean)),
  );
  box.addEventListener("click", (event) => event.target.closest(".items button") && (box.open = false));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !box.open) return;
    box.open = false;
    box.firstElementChild.focus();
    event.stopPropagation();
  });
  box.addEventListener(
    "focusout",
    (event) => event.relatedTarget && !box.contains(event.relatedTarget) && (box.open = false),
  );
  return box;
}

document.addEventListener("pointerdown", (event) =>
  document.querySelectorAll("details.menu[open]").forEach((each) => {
    const box = /** @type {HTMLDetailsElement} */ (each);
    if (!box.contains(/** @type {Element} */ (event.target))) box.open = false;
  }),
);

// Size a canvas to its element in device pixels; return its context, scaled to CSS pixels.
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio));
  const hgt = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== hgt) {
    canvas.width = w;
    canvas.height = hgt;
  }
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

// A part that folds. It stays open or closed when its content is made anew.
export class Folded {
  // `opened` is called whenever somebody opens it.
  constructor({ open = false, opened = () => {} } = {}) {
    this.open = open;
    this.opened = opened;
    this.isNew = true;
    this.element = h("div");
    this.summary = h("summary");
    this.content = h("div");
    this.details = h("details", { open, ontoggle: () => this.toggled() }, this.summary, this.content);
  }

  // Show that content; without a summary, nothing.
  show(summary, ...content) {
    if (summary === null) {
      replace(this.element);
      return;
    }
    if (this.isNew) this.details.open = this.open;
    else this.toggled(); // the event of a click may still come
    this.isNew = false;
    this.summary.textContent = summary;
    replace(this.content, ...content);
    if (!this.details.isConnected) this.element.replaceChildren(this.details);
  }

  toggled() {
    if (this.open === this.details.open) return;
    this.open = this.details.open;
    if (this.open) this.opened();
  }

  warn() {
    this.summary.className = "warn";
  }
}

export function debounced(milliseconds, act) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), milliseconds);
  };
}

export function download(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// Rows as CSV. A text that a spreadsheet would take for a formula begins with an apostrophe.
export function csvOf(rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}
