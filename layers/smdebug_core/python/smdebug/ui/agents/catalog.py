"""The tools as the protocol describes them to an agent: names, arguments, and what each is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from smdebug.exceptions import SMDebugValueError
from smdebug.plain_text import did_you_mean
from smdebug.ui.agents.marking import NOTE

INSTRUCTIONS = (
    "smdebug says what is wrong with training runs. Begin with `diagnose`: it gathers the problems of a run "
    "with their causes and evidence, what changed where the first one began, and what to try. Report the "
    "cause, the step since which it is visible, and the evidence. The verdict `nothing wrong` means that "
    "rules have checked the run and found nothing; `not checked` does not. Use `around` for a step, "
    "`tensor_statistics` for a tensor, `compare_runs` with a run that works. Answers are cut to a bounded "
    f"size; `cut` names what was left out. {NOTE}"
)
_TYPES: Mapping[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "object": (dict,)}


class ToolEntry(NamedTuple):
    """A tool: the name of its method, what it is for, and its arguments."""

    name: str
    title: str
    description: str
    arguments: Mapping[str, tuple[str, str]]
    """The type and the meaning of each argument."""
    optional: frozenset[str] = frozenset()
    changes: bool = False
    """Whether it changes anything."""
    needs_stop: bool = False
    """Whether it is off unless stops are allowed."""

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": {
                name: {"type": kind, "description": meaning}
                for name, (kind, meaning) in self.arguments.items()
            },
            "required": [name for name in self.arguments if name not in self.optional],
            "additionalProperties": False,
        }

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call; raise `SMDebugValueError` if they do not fit."""
        for name, value in given.items():
            if name not in self.arguments:
                hint = did_you_mean(name, self.arguments)
                raise SMDebugValueError(f"{self.name} takes no argument {name[:40]}.{hint}")
            kind = self.arguments[name][0]
            if not isinstance(value, _TYPES[kind]) or isinstance(value, bool):
                raise SMDebugValueError(f"{name} of {self.name} must be of the type {kind}")
        for name in self.arguments:
            if name not in given and name not in self.optional:
                raise SMDebugValueError(f"{self.name} needs the argument {name}")
        return dict(given)


_A_RUN = ("string", "A run as `list_runs` names it.")
_RULE = ("string", "A built-in rule, such as VanishingGradient.")
_PARAMETERS = ("object", "The parameters of the rule, by name.")

TOOLS = (
    ToolEntry(
        "list_runs",
        "List runs",
        "List the training runs with their state, steps and loss. Nothing is evaluated.",
        {"contains": ("string", "List only runs whose name contains this.")},
        optional=frozenset({"contains"}),
    ),
    ToolEntry(
        "diagnose",
        "Diagnose a run",
        "Say everything at once about a run: the verdict, each problem with its cause, onset, evidence, "
        "symptoms and what to try, what changed where the first one began, and the loss. Begin with this.",
        {"run": _A_RUN},
    ),
    ToolEntry(
        "around",
        "What changed near a step",
        "Show what changed in a run near a step: the loss and other scalars, facts such as a mode or an "
        "optimizer, tensors whose size changed, and problems that began there. Under 2,000 tokens.",
        {"run": _A_RUN, "step": ("integer", "A global step.")},
    ),
    ToolEntry(
        "tensor_statistics",
        "A tensor over the steps",
        "Show the statistics of a tensor over the steps of a run, or the values of a scalar such as loss.",
        {"run": _A_RUN, "tensor": ("string", "The name of a tensor or scalar.")},
    ),
    ToolEntry(
        "compare_runs",
        "Compare two runs",
        "Show how the configurations of two runs differ, where they diverge, and what is wrong with each.",
        {"run": _A_RUN, "other": _A_RUN},
    ),
    ToolEntry(
        "evaluate_rule",
        "Evaluate a rule",
        "Evaluate one rule on what a run has saved, with parameters of your own. The run is not changed.",
        {
            "run": _A_RUN,
            "rule": _RULE,
            "parameters": _PARAMETERS,
        },
        optional=frozenset({"parameters"}),
    ),
    ToolEntry(
        "attach_rule",
        "Attach a rule",
        "Add a built-in rule to those that judge a run from now on: it is written to the run's rules.json.",
        {
            "run": _A_RUN,
            "rule": _RULE,
            "parameters": _PARAMETERS,
        },
        optional=frozenset({"parameters"}),
        changes=True,
    ),
    ToolEntry(
        "request_stop",
        "Ask a training to stop",
        "Ask the training of a run to stop at its next saved step. What has no checkpoint is lost.",
        {"run": _A_RUN, "reason": ("string", "Why, in a sentence.")},
        changes=True,
        needs_stop=True,
    ),
)


def offered(*, allow_stop: bool) -> dict[str, ToolEntry]:
    """Return the tools that a server offers, by name."""
    return {tool.name: tool for tool in TOOLS if allow_stop or not tool.needs_stop}
