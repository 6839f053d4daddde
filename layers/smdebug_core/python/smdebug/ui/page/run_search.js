// The search in the list of runs: words, conditions such as loss<0.2 and lr=1e-3, and `failing`.

import { valueOf } from "./run_values.js";

/** @typedef {import("./types/answers.js").RowAnswer} Run */

const ROUNDED = 1.2e-7;
const CONDITION = /^([^<>=!~\s]+)(<=|>=|!=|==|<|>|=|~)(.+)$/;
const TRUTHS = new Map([
  ["true", true],
  ["false", false],
]);

/** @type {Record<string, (run: Run) => any>} */
const KNOWN = {
  loss: (run) => run.loss,
  name: (run) => run.name,
  state: (run) => run.state,
  steps: (run) => run.steps,
  last_step: (run) => run.last_step,
  training_step: (run) => run.training_step,
  duration: (run) => run.duration,
  problems: (run) => run.issues,
};

/** @type {Record<string, (ours: number, theirs: number) => boolean>} */
const ORDERS = {
  "<": (ours, theirs) => ours < theirs,
  "<=": (ours, theirs) => ours <= theirs,
  ">": (ours, theirs) => ours > theirs,
  ">=": (ours, theirs) => ours >= theirs,
};

/**
 * Whether a run matches every part of a search. A part in quotes may have spaces.
 * @param {string} search
 * @returns {(run: Run) => boolean}
 */
export function matcher(search) {
  const tests = partsOf(search).map(testOf);
  return (run) => tests.every((test) => test(run));
}

function partsOf(search) {
  return (search.match(/(?:"[^"]*"|[^\s"]|")+/g) ?? []).map((part) =>
    part.length > 1 ? part.replaceAll('"', "") : part,
  );
}

function testOf(part) {
  if (part === "failing") return (run) => Boolean(run.issues);
  const [, name, comparison, value] = part.match(CONDITION) ?? [];
  if (!name) return (run) => textOf(run).includes(part.toLowerCase());
  if (name === "tags" || name === "tag") {
    return (run) => holdsOfAny(String(run.configuration.tags ?? "").split(", "), comparison, value);
  }
  return (run) => {
    const found = valueNamed(run, name);
    return found === undefined || found === null ? comparison === "!=" : holds(found, comparison, value);
  };
}

const textOf = (run) =>
  `${run.name} ${run.issue} ${JSON.stringify(run.configuration)} ${JSON.stringify(run.metrics)}`.toLowerCase();

// `lr` is also the measured `learning_rate` of a run whose configuration names none.
function valueNamed(run, name) {
  const lower = name.toLowerCase();
  if (Object.hasOwn(KNOWN, lower)) return KNOWN[lower](run);
  return valueEnding(run, name) ?? (lower === "lr" ? valueEnding(run, "learning_rate") : undefined);
}

// `lr` is also `optimizer.lr`, if that is the only name that ends so.
function valueEnding(run, name) {
  const lower = name.toLowerCase();
  const exact = valueOf(run, name);
  if (exact !== undefined) return exact;
  const names = [...new Set([...Object.keys(run.configuration), ...Object.keys(run.metrics)])];
  const found = names.filter((each) => each.toLowerCase() === lower || each.toLowerCase().endsWith(`.${lower}`));
  return found.length === 1 ? valueOf(run, found[0]) : undefined;
}

function holdsOfAny(values, comparison, value) {
  return comparison === "!="
    ? values.every((each) => holds(each, comparison, value))
    : values.some((each) => holds(each, comparison, value));
}

function holds(found, comparison, value) {
  if (comparison === "~") return String(found).toLowerCase().includes(value.toLowerCase());
  const [ours, theirs] = [numberOf(found), numberOf(value)];
  if (Object.hasOwn(ORDERS, comparison)) {
    return ours !== null && theirs !== null && ORDERS[comparison](ours, theirs);
  }
  return (comparison === "!=") !== isEqual(found, value, ours, theirs);
}

function isEqual(found, value, ours, theirs) {
  if (typeof found === "boolean") return TRUTHS.get(value.toLowerCase()) === found;
  if (ours !== null && theirs !== null) {
    // A rate of 0.001 that was measured as float32 is 0.0010000000475.
    const areWhole = Number.isInteger(ours) && Number.isInteger(theirs);
    return ours === theirs || (!areWhole && Math.abs(ours - theirs) <= ROUNDED * Math.abs(theirs));
  }
  return String(found).toLowerCase() === value.toLowerCase();
}

function numberOf(value) {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || !value.trim()) return null;
  const number = Number(value);
  return Number.isNaN(number) ? null : number;
}
