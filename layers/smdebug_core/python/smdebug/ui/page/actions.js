// What can be done to a run. Each action says what it does, and asks first.

import { blob, get, post } from "./api.js";
import { dialog } from "./app.js";
import { button, download, h, replace, select } from "./dom.js";
import { plural } from "./format.js";

const field = (label, input) => h("label", {}, h("span", { text: label }), input);

export function zoomIn(run, tensor) {
  const pattern = tensor ? tensor.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") : "";
  const tensors = h("input", { type: "text", value: pattern, placeholder: "fc1, or ^gradient/" });
  const steps = h("input", { type: "number", value: 10, min: 1, max: 10000 });
  const content = h("div", {},
    h("p", { text: "The training saves the matching tensors whole for its next steps, at most 64 MB a step." }),
    field("Tensors, as a pattern", tensors), field("Steps", steps));
  dialog("Zoom in", content, [["Request", async () => {
    const found = await post(`run/${run}/zoom`, { tensors: [tensors.value], steps: Number(steps.value) });
    dialog("Zoom requested", h("p", { text: found.count ? `${plural(found.count, "known tensor")} will be saved whole.` : "No tensor seen so far matches." }));
  }, "main"]]);
}

export function stop(run, name) {
  const reason = h("input", { type: "text", placeholder: "why", maxlength: 500 });
  const content = h("div", {}, h("p", { text: `Request the training ${name} to stop? It stops at its next saved step.` }), field("Reason", reason));
  dialog("Stop the training", content, [["Stop the training", () => post(`run/${run}/stop`, { reason: reason.value }), "danger"]]);
}

export async function rules(run) {
  const list = h("div");
  const log = h("div");
  const content = h("div", {}, h("p", { text: "These rules check the run. Changes are written to the rules.json beside it, and hold for every reader." }), list, log);
  const box = dialog("Rules", content);
  async function draw(found) {
    const known = await get(`run/${run}/rules`);
    const attached = found || known.attached;
    const names = [...known.in_file, ...known.built_in.map((rule) => rule.name)];
    let wanted = names[0];
    const parameters = h("input", { type: "text", placeholder: '{"threshold": 1e-6}', "aria-label": "Parameters as JSON" });
    const parsed = () => (parameters.value.trim() ? JSON.parse(parameters.value) : {});
    const act = (what) => async () => {
      try {
        await what();
      } catch (error) {
        replace(log, h("p", { class: "problem", role: "alert", text: error.message }));
      }
    };
    replace(list,
      h("ul", { class: "log" }, ...attached.map((rule) => h("li", {}, h("span", { text: `${rule.name} ` }),
        button("Remove", act(async () => draw((await post(`run/${run}/detach`, { rules: [rule.name] })).attached)), { "aria-label": `Remove ${rule.name}`, class: "link" })))),
      select("Rule", names, wanted, (name) => (wanted = name)), field("Parameters", parameters),
      h("p", { class: "actions" },
        button("Evaluate now", act(async () => {
          const { rule, log: lines } = await post(`run/${run}/evaluate`, { rule: wanted, parameters: parsed() });
          replace(log, h("p", { text: rule.sentence }), h("ul", {}, ...lines.lines.slice(0, 20).map((line) => h("li", { text: `step ${line.step}: ${line.message}` }))));
        })),
        button("Add to the run", act(async () => draw((await post(`run/${run}/attach`, { rules: [{ name: wanted, rule: wanted, parameters: parsed() }] })).attached)))));
  }
  await draw();
  return box;
}

export async function reportOf(run, name) {
  download(`${name}-report.html`.replace(/[^\w.-]+/g, "-"), await blob(`run/${run}/report.html`));
}
