// What is wrong with a run: its problems, what each rule found, and how far a deployed debugger is.

import { report as held } from "./api.js";
import { Folded, button, h, replace } from "./dom.js";
import { count, inWords, plural } from "./format.js";
import { issueCard } from "./issue.js";
import { table } from "./tables.js";

/** @typedef {import("./types/answers.js").RunAnswer} RunAnswer */
/** @typedef {import("./types/answers.js").RuleAnswer} RuleAnswer */

const ADDING = " “Rules …” lists all rules and adds others to the run.";
/** @type {Record<string, string>} */
const RESULTS = {
  found: "detected a problem",
  failed: "failed",
  passed: "passed",
  "not checked": "not checked",
  waiting: "waiting",
};
/** @type {Record<string, string>} */
const INKS = { found: "bad", failed: "warn", passed: "good" };
/** @type {Record<string, string>} */
const MARKS = { found: "✗", failed: "!", passed: "✓" };
/** @type {Record<string, string>} */
const DEPLOYED_INKS = { IssuesFound: "bad", NoIssuesFound: "good", Error: "warn" };

/**
 * How many rules came to each result, such as “3 passed, 28 not checked”.
 * @param {RuleAnswer[]} rules
 */
export function resultsInWords(rules) {
  return Object.entries(RESULTS)
    .map(([state, words]) => ({ times: rules.filter((rule) => rule.state === state).length, words }))
    .filter(({ times }) => times)
    .map(({ times, words }) => `${count(times)} ${words}`)
    .join(", ");
}

/**
 * Those that detected a problem first; rules with the same result keep their order.
 * @param {RuleAnswer[]} rules
 */
export function byUrgency(rules) {
  const place = (rule) => Object.keys(RESULTS).indexOf(rule.state);
  return [...rules].sort((a, b) => place(a) - place(b));
}

export class Diagnosis {
  /** @param {import("./run.js").Shared} shared */
  constructor({ showStep }) {
    this.showStep = showStep;
    this.cards = h("div", { class: "cards" });
    this.rules = new Folded();
    this.deployed = new Folded();
    this.trouble = h("div");
    this.element = h(
      "section",
      { "aria-label": "Diagnosis" },
      h("h2", { text: "Diagnosis" }),
      this.cards,
      this.rules.element,
      this.trouble,
      this.deployed.element,
    );
    /** @type {RunAnswer | null} */
    this.run = null;
    this.at = -1;
    /** Which evidence is open, by rule. @type {Map<string, Folded>} */
    this.evidence = new Map();
  }

  /** @param {RunAnswer} run */
  show(run) {
    this.run = run;
    const failed = run.rules.filter((rule) => rule.state === "failed");
    const onset = (issue) => this.showStep(issue.since);
    replace(
      this.cards,
      ...run.issues.map((issue, place) => issueCard(issue, place, onset)),
      run.issues.length ? null : this.withoutIssues(run, failed.length),
      ...failed.map((rule) => card("issue", "warn", `${rule.name} failed`, rule.sentence)),
    );
    const summary = `${plural(run.rules.length, "rule")}: ${resultsInWords(run.rules)}`;
    this.rules.show(
      run.rules.length ? summary : null,
      h("ul", { class: "rules" }, ...byUrgency(run.rules).map((rule) => this.rowOf(rule))),
    );
    this.showDeployed(run);
  }

  /**
   * @param {RunAnswer} run
   * @param {number} failed
   */
  withoutIssues(run, failed) {
    const passed = run.rules.filter((rule) => rule.state === "passed").length;
    const isAll = (run.state === "ended" || run.state === "failed") && run.steps_checked >= run.steps;
    const soFar = isAll ? "" : ` up to step ${count(run.last_step)}`;
    if (run.steps_checked && passed && run.missing)
      return card(
        "issue",
        "warn",
        `${plural(passed, "rule")} passed at the steps that are there`,
        `Problems at the others are not seen: ${run.missing}.`,
      );
    if (run.steps_checked && passed) return card("fine", "good", `${plural(passed, "rule")} passed${soFar}`);
    if (run.steps_checked && !run.rules.length) return h("p", { class: "quiet", text: "No rules were evaluated." });
    if (run.steps_checked && !failed)
      return card(
        "",
        "quiet",
        "No rule could check this run so far",
        `The run lacks the data that the rules check.${held ? "" : ADDING}`,
      );
    if (failed) return null;
    const text = run.steps ? "The rules have not checked a step yet." : "Waiting for the first step.";
    return h("p", { class: "quiet", text });
  }

  /** @param {RuleAnswer} rule */
  rowOf(rule) {
    const parameters = Object.entries(rule.parameters).map(([name, value]) => `${name} = ${value}`);
    const seconds = rule.seconds === null ? "" : `Evaluated in ${rule.seconds.toFixed(2)} s. `;
    const about = [rule.detects ? `Detects: ${rule.detects}` : "", `${seconds}${parameters.join(", ")}`].filter(
      Boolean,
    );
    return h(
      "li",
      { class: INKS[rule.state] || "quiet", "data-rule": rule.name },
      h("span", { text: `${MARKS[rule.state] || "–"} ${rule.sentence}`, title: about.join("\n") }),
      rule.found.length ? this.evidenceOf(rule, about) : null,
    );
  }

  /**
   * @param {RuleAnswer} rule
   * @param {string[]} about
   */
  evidenceOf(rule, about) {
    let folded = this.evidence.get(rule.name);
    if (!folded) this.evidence.set(rule.name, (folded = new Folded()));
    const total = rule.steps_found.length;
    const shown = rule.found.length;
    const rows = rule.found.map(({ step, text, count: times }) => [
      button(count(step), () => this.showStep(step), { class: "link" }),
      text,
      count(times),
    ]);
    folded.show(
      `Evidence (${total > shown ? `${shown} of ` : ""}${plural(total, "step")})`,
      ...about.map((text) => h("p", { class: "quiet", text })),
      table(`Evidence of ${rule.name}`, ["step", "worst finding", "findings"], rows),
    );
    return folded.element;
  }

  /**
   * The table of a deployed debugger: how far its rules are, and their results.
   * @param {RunAnswer} run
   */
  showDeployed(run) {
    const found = run.deployed;
    if (!found) return;
    if (this.deployed.isNew) this.deployed.open = !run.issues.length;
    const words = [
      `Deployed debugger: ${inWords(found.state)}`,
      found.verdict ? inWords(found.verdict) : null,
      found.evaluated_through === null
        ? "no step evaluated yet"
        : `evaluated through step ${count(found.evaluated_through)}`,
      plural(found.open_issues, "open issue"),
      found.job ? `job ${found.job}` : null,
    ];
    const rows = found.statuses.map((each) => [
      each.name,
      h("span", {
        class: DEPLOYED_INKS[each.status] || "quiet",
        text: `${inWords(each.status)}${each.attached ? "" : ", removed"}${each.catching_up ? ", catching up" : ""}`,
      }),
      each.evaluated_through === null ? "–" : `step ${count(each.evaluated_through)}`,
      each.reason || "",
    ]);
    replace(this.trouble, found.trouble ? h("p", { class: "problem", role: "status", text: found.trouble }) : null);
    this.deployed.show(
      words.filter(Boolean).join(", "),
      table("Rules of the deployed debugger", ["rule", "status", "evaluated through", "reason"], rows),
    );
  }

  /**
   * Go from problem to problem, or show the onset of one.
   * @param {string} key
   */
  key(key) {
    const cards = /** @type {HTMLElement[]} */ ([...this.cards.querySelectorAll(".issue")]);
    if (key === "j" || key === "k") {
      this.at = Math.max(0, Math.min(cards.length - 1, this.at + (key === "j" ? 1 : -1)));
      cards[this.at]?.focus();
      return true;
    }
    const issue = this.run?.issues[this.at];
    if (key !== "Enter" || !issue || document.activeElement !== cards[this.at]) return false;
    this.showStep(issue.since);
    return true;
  }

  redraw() {}

  close() {}
}

/**
 * @param {string} kind
 * @param {string} ink
 * @param {string} title
 * @param {string} [text]
 */
function card(kind, ink, title, text) {
  const content = text ? h("div", { class: ink === "quiet" ? "quiet" : "", text }) : null;
  return h("article", { class: `card ${kind}` }, h("h3", { class: ink, text: title }), content);
}
