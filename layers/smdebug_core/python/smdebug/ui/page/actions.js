// What can be done to a run. Each action says what it does, and asks first.

import { blob, get, post } from "./api.js";
import { dialog } from "./dialog.js";
import { button, download, h, replace, select } from "./dom.js";
import { plural } from "./format.js";

const OF_RUN = "These rules check the run. Changes are written to the rules.json beside it, and hold for every reader.";
const BY_DEFAULT =
  "The default rules check the run. " +
  "A rule that is added is written to the rules.json beside it, and holds for every reader.";

const field = (label, input) => h("label", {}, h("span", { text: label }), input);

export function zoomIn(run, tensor) {
  const pattern = tensor ? tensor.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") : "";
  const tensors = h("input", { type: "text", value: pattern, placeholder: "fc1, or ^gradient/" });
  const steps = h("input", { type: "number", value: 10, min: 1, max: 10000 });
  const content = h(
    "div",
    {},
    h("p", { text: "The training saves the matching tensors whole for its next steps, at most 64 MB a step." }),
    field("Tensors, as a pattern", tensors),
    field("Steps", steps),
  );
  dialog("Zoom in", content, [
    [
      "Request",
      async () => {
        const found = await post(`run/${run}/zoom`, { tensors: [tensors.value], steps: Number(steps.value) });
        dialog(
          "Zoom requested",
          h("p", {
            text: found.count
              ? `${plural(found.count, "known tensor")} will be saved whole.`
              : "No tensor seen so far matches.",
          }),
        );
      },
      "main",
    ],
  ]);
}

export function stop(run, name) {
  const reason = h("input", { type: "text", placeholder: "why", maxlength: 500 });
  const content = h(
    "div",
    {},
    h("p", { text: `Ask the training ${name} to stop? It stops at its next saved step.` }),
    field("Reason", reason),
  );
  dialog("Stop the training", content, [
    [
      "Stop the training",
      async () => {
        await post(`run/${run}/stop`, { reason: reason.value });
        dialog(
          "Stop requested",
          h("p", { text: "The training stops at its next saved step, and continues until then." }),
        );
      },
      "danger",
    ],
  ]);
}

/**
 * Tags, a note, the group and the pin of a run, kept beside it.
 * @param {string} run
 * @param {string} name
 */
export async function notes(run, name) {
  const known = await get(`run/${run}/annotations`);
  const tags = h("input", { type: "text", value: known.tags.join(", "), placeholder: "baseline, for the paper" });
  const note = h("textarea", { rows: 5, maxlength: 2000 });
  note.value = known.note;
  const group = h("input", { type: "text", maxlength: 100, value: known.group || "", placeholder: "learning rates" });
  const pinned = h("input", { type: "checkbox" });
  pinned.checked = known.pinned;
  const content = h(
    "div",
    {},
    h("p", { class: "quiet", text: "Kept in annotations.json beside the run, for everybody who reads it." }),
    field("Tags, separated by commas", tags),
    field("Note", note),
    field("Group, to list runs by", group),
    h("label", { class: "check" }, pinned, h("span", { text: "Pin as a baseline: the run comes first in the list" })),
  );
  /** @returns {Record<string, any>} */
  const changes = () => {
    const given = tags.value
      .split(",")
      .map((tag) => tag.trim())
      .filter(Boolean);
    return {
      ...(given.join(", ") === known.tags.join(", ") ? {} : { tags: given }),
      ...(note.value === known.note ? {} : { note: note.value }),
      ...(group.value.trim() === (known.group || "") ? {} : { group: group.value.trim() }),
      ...(pinned.checked === known.pinned ? {} : { pinned: pinned.checked }),
    };
  };
  return dialog(`Tags and note of ${name}`, content, [
    [
      "Save",
      async () => {
        const changed = changes();
        if (Object.keys(changed).length) await post(`run/${run}/annotate`, { version: known.version, ...changed });
      },
      "main",
    ],
  ]);
}

function parameters_in(text) {
  if (!text.trim()) return {};
  let found = null;
  try {
    found = JSON.parse(text);
  } catch {
    // explained below, as is JSON of another kind
  }
  if (found === null || typeof found !== "object" || Array.isArray(found))
    throw new Error('Parameters must be a JSON object, such as {"threshold": 1e-6}.');
  return found;
}

const shown_parameters = (rule) => (Object.keys(rule.parameters).length ? JSON.stringify(rule.parameters) : "");

export async function rules(run) {
  const known = await get(`run/${run}/rules`);
  const sentences = new Map(known.built_in.map((rule) => [rule.name, rule.sentence]));
  const names = [...known.in_file, ...known.built_in.map((rule) => rule.name)];
  let attached = known.attached;
  const list = h("ul", { class: "log" });
  const log = h("div", { role: "status" });
  const wanted = select("Rule", names, names[0], () => describe());
  const picker = wanted.querySelector("select");
  const about = h("p", { class: "quiet" });
  const name = h("input", { type: "text", placeholder: "the rule's name" });
  const parameters = h("input", { type: "text", placeholder: '{"threshold": 1e-6}' });
  const act = (what) => async () => {
    replace(log);
    try {
      await what();
    } catch (error) {
      replace(log, h("p", { class: "problem", role: "alert", text: error.message }));
    }
  };
  const add = button(
    "Add to the run",
    act(async () => {
      const entry = {
        name: name.value.trim() || picker.value,
        rule: picker.value,
        parameters: parameters_in(parameters.value),
      };
      const isKnown = attached.some((rule) => rule.name === entry.name);
      attached = (await post(`run/${run}/attach`, { rules: [entry] })).attached;
      draw();
      replace(log, h("p", { class: "good", text: `${entry.name} was ${isKnown ? "changed" : "added"}.` }));
    }),
  );
  const test = button(
    "Evaluate now",
    act(async () => {
      replace(log, h("p", { class: "quiet", text: "Evaluating …" }));
      const { rule, log: found } = await post(`run/${run}/evaluate`, {
        rule: picker.value,
        parameters: parameters_in(parameters.value),
      });
      replace(
        log,
        h("p", { text: rule.sentence }),
        h("ul", {}, ...found.lines.slice(0, 20).map((line) => h("li", { text: `step ${line.step}: ${line.message}` }))),
        found.total > 20 ? h("p", { class: "quiet", text: `… and ${plural(found.total - 20, "more finding")}` }) : null,
      );
    }),
  );

  function describe() {
    const isOfFile = known.in_file.includes(picker.value);
    about.textContent = isOfFile
      ? "A rule of the file that was named with --rule-file. It can be evaluated here."
      : sentences.get(picker.value) || "";
    add.disabled = isOfFile;
    const isKnown = attached.some((rule) => rule.name === (name.value.trim() || picker.value));
    add.textContent = isKnown ? "Change" : "Add to the run";
  }

  function draw() {
    replace(
      list,
      ...attached.map((rule) =>
        h(
          "li",
          {},
          h("b", { text: rule.name }),
          h("span", {
            class: "quiet",
            text: ` ${rule.rule === rule.name ? "" : `${rule.rule} `}${shown_parameters(rule)} `,
          }),
          button(
            "Change",
            () => {
              picker.value = rule.rule;
              name.value = rule.name;
              parameters.value = shown_parameters(rule);
              describe();
              parameters.focus();
            },
            { "aria-label": `Change ${rule.name}`, class: "link" },
          ),
          " ",
          button(
            "Remove",
            act(async () => {
              attached = (await post(`run/${run}/detach`, { rules: [rule.name] })).attached;
              draw();
              replace(log, h("p", { class: "good", text: `${rule.name} was removed.` }));
            }),
            { "aria-label": `Remove ${rule.name}`, class: "link" },
          ),
        ),
      ),
    );
    list.hidden = !attached.length;
    describe();
  }

  name.addEventListener("input", describe);
  draw();
  return dialog(
    "Rules",
    h(
      "div",
      {},
      h("p", {
        text: attached.length ? OF_RUN : BY_DEFAULT,
      }),
      list,
      wanted,
      about,
      field("Name in this run (optional)", name),
      field("Parameters as JSON (optional)", parameters),
      h("p", { class: "actions" }, test, add),
      log,
    ),
  );
}

export async function reportOf(run, name) {
  download(`${name}-report.html`.replace(/[^\w.-]+/g, "-"), await blob(`run/${run}/report.html`));
}
