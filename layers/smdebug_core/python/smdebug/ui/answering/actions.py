"""What a page may do to a run: request a zoom or a stop, change its rules, evaluate a rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from smdebug.exceptions import SMDebugValueError
from smdebug.files.zoom_request import STEPS
from smdebug.plain_text import escaped
from smdebug.rules.generic import every_rule
from smdebug.rules.loading import load_rule_file, rules_in
from smdebug.runs.evaluation.choosing import suitable_defaults
from smdebug.runs.evaluation.evaluating import evaluate
from smdebug.runs.opening import open_run
from smdebug.runs.requests.annotating import Annotated, annotate, annotations_of
from smdebug.runs.requests.stopping import request_stop
from smdebug.runs.requests.zooming import request_zoom
from smdebug.runs.verdicts import of_result
from smdebug.service.attached_rules import AttachedRules
from smdebug.service.records import RuleConfiguration
from smdebug.storage import open_storage
from smdebug.ui.answering.requests import body_of, run_of
from smdebug.ui.answering.threads import in_thread
from smdebug.ui.following.verdict_answers import log_answer, rule_answer
from smdebug.ui.watching.board import Board, Row

MOST_STEPS = 5000  # that a rule evaluates for a page
_LONGEST_REASON = 500


class Actions:
    """The handlers of requests that change something."""

    def __init__(self, board: Board):
        self._board = board

    async def rules(self, request: Request) -> Response:
        """List the rules of a run, and those that can be attached or evaluated."""
        row, _ = run_of(self._board, request)
        file = self._board.rule_file

        def found() -> dict[str, Any]:
            return {
                "attached": [_described(rule) for rule in self._rules_of(row).read()],
                "built_in": [
                    {"name": entry.name, "sentence": entry.sentence} for entry in every_rule().values()
                ],
                "in_file": [] if file is None else sorted(rules_in(load_rule_file(file))),
            }

        return JSONResponse(await in_thread(found))

    async def zoom(self, request: Request) -> Response:
        """Make the training save whole tensors for its next steps: {"tensors": […], "steps": N}."""
        row, _ = run_of(self._board, request)
        body = await body_of(request)
        tensors = body.get("tensors")
        if not isinstance(tensors, list) or not all(isinstance(pattern, str) for pattern in tensors):
            raise SMDebugValueError("tensors must be a list of patterns")
        steps = body.get("steps", STEPS)
        if type(steps) is not int:
            raise SMDebugValueError(f"steps must be a whole number, not {steps!r:.40}")
        requested = await in_thread(
            lambda: request_zoom(row.path, tensors, steps=steps, reason=_reason(body))
        )
        matching = [escaped(name) for name in requested.matching]
        return JSONResponse({"matching": matching[:1000], "count": len(matching)})

    async def stop(self, request: Request) -> Response:
        """Ask the training to stop at its next saved step: {"reason": "…"}."""
        row, _ = run_of(self._board, request)
        body = await body_of(request)
        reason = _reason(body)

        def write() -> dict[str, Any]:
            watched = self._board.watched_run(row)
            return request_stop(row.path, reason)[1] if watched is None else watched.stop(reason)

        return JSONResponse({"requested": await in_thread(write)})

    async def annotations(self, request: Request) -> Response:
        """Return the tags and the note of a run, whether it is pinned, and the version of that."""
        row, _ = run_of(self._board, request)
        return JSONResponse(_in_words(await in_thread(lambda: annotations_of(open_storage(row.path)))))

    async def annotate(self, request: Request) -> Response:
        """Change tags, note or pin: {"version": "…", "tags": […], "note": "…", "pinned": true}.

        `version` is the one that was read, so that nothing is lost that somebody else writes meanwhile.
        """
        row, _ = run_of(self._board, request)
        body = await body_of(request)
        version = body.pop("version", None)
        if not isinstance(version, str):
            raise SMDebugValueError("version must be the text that was read with tags and note")

        def write() -> dict[str, Any]:
            found = annotate(open_storage(row.path), body, version)
            self._board.take_annotations(row, found)
            return _in_words(found)

        return JSONResponse(await in_thread(write))

    async def attach(self, request: Request) -> Response:
        """Add rules to a run, or change those of the same name: {"rules": […]}."""
        body = await body_of(request)
        rules = body.get("rules")
        if not isinstance(rules, list) or not rules:
            raise SMDebugValueError('rules must be a list, such as ["VanishingGradient"]')
        return await self._changed(request, lambda attached: attached.add(rules))

    async def detach(self, request: Request) -> Response:
        """Remove rules from a run, by name: {"rules": […]}."""
        body = await body_of(request)
        names = body.get("rules")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise SMDebugValueError("rules must be a list of names")
        return await self._changed(request, lambda attached: attached.remove(names))

    async def evaluate(self, request: Request) -> Response:
        """Evaluate a rule on what a run has saved: {"rule": "…", "parameters": {…}}.

        It is a built-in rule, or one of the file that was named on the command line.
        """
        row, _ = run_of(self._board, request)
        body = await body_of(request)
        name, parameters = body.get("rule"), body.get("parameters", {})
        if not isinstance(name, str) or not isinstance(parameters, dict):
            raise SMDebugValueError("rule must be a name, and parameters an object")
        entry = {"name": name, "rule": name, "parameters": parameters}
        file = self._board.rule_file
        results = await in_thread(
            lambda: evaluate(row.path, [entry], file=file, jobs=1, most_steps=MOST_STEPS)
        )
        verdicts = [of_result(result) for result in results]
        return JSONResponse({"rule": rule_answer(verdicts[0], has_checked=True), "log": log_answer(verdicts)})

    def _rules_of(self, row: Row) -> AttachedRules:
        watched = self._board.watched_run(row)
        if watched is not None:
            return watched.attached_rules()
        storage = open_storage(row.path)
        return AttachedRules(storage.location, storage, lambda: suitable_defaults(open_run(row.path)))

    async def _changed(
        self,
        request: Request,
        change: Callable[[AttachedRules], tuple[RuleConfiguration, ...]],
    ) -> Response:
        row, reader = run_of(self._board, request)
        rules = await in_thread(lambda: change(self._rules_of(row)))
        await in_thread(reader.use_rules)
        return JSONResponse({"attached": [_described(rule) for rule in rules]})


def _described(rule: RuleConfiguration) -> dict[str, Any]:
    return {"name": rule.name, "rule": rule.rule, "parameters": dict(rule.parameters)}


def _in_words(found: Annotated) -> dict[str, Any]:
    return {
        **found._asdict(),
        "tags": [escaped(tag) for tag in found.tags],
        "note": escaped(found.note, keep="\n"),
    }


def _reason(body: dict[str, Any]) -> str:
    reason = body.get("reason") or "requested in smdebug ui"
    if not isinstance(reason, str) or len(reason) > _LONGEST_REASON:
        raise SMDebugValueError(f"reason must be a text of at most {_LONGEST_REASON} characters")
    return reason
