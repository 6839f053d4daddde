"""`rules.json`: which rules watch a run, in any of three forms.

    {"version": 1, "rules": [{"name": "fc", "rule": "VanishingGradient", "parameters": {"threshold": 1e-6}}]}
    {"DebugRuleConfigurations": [...]}    as the SageMaker SDK's Rule.sagemaker and Rule.custom write them
    {"rules_specification": [...]}        as tornasole had them

A list by itself will do, too. The file comes from outside: everything in it is bounded and checked, and
nothing in it is run.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from smdebug.exceptions import RulesFileError
from smdebug.service.records import RuleConfiguration

RULES_FILE = "rules.json"
VERSION = 1
MAX_BYTES = 256 << 10
MAX_RULES = 100
MAX_PARAMETERS = 100
MAX_VALUE = 2048
MAX_NAME = 256
MAX_ACTIONS = 10
MAX_OTHER_TRIALS = 20
LAST_STEP = 10**12 - 1  # what fits into the names of a run's files

EVERY_STEP = "every_step"
ACTIONS = ("stoptraining", "email", "sms")
LOGGING_LEVELS = ("CRITICAL", "FATAL", "ERROR", "WARNING", "WARN", "INFO", "DEBUG", "NOTSET")

OURS, SAGEMAKER, TORNASOLE = "rules", "DebugRuleConfigurations", "rules_specification"


class RulesFile(NamedTuple):
    """What a rules.json says: the rules that can be read, and what is wrong with the others."""

    rules: tuple[RuleConfiguration, ...] = ()
    problems: tuple[RulesFileError, ...] = ()
    notes: tuple[str, ...] = ()  # what was passed over, and why

    @property
    def trouble(self) -> str:
        """What is wrong with it in one text, empty if nothing is."""
        return "; ".join(map(str, self.problems))


def parse_rules(
    data: bytes | Mapping[str, Any] | Sequence[Any], *, file: str
) -> tuple[RuleConfiguration, ...]:
    """The rules in it. `RulesFileError` names the first entry that cannot be read, and why."""
    read = read_rules(data, file=file)
    for problem in read.problems:
        raise problem
    return read.rules


def read_rules(data: bytes | Mapping[str, Any] | Sequence[Any], *, file: str) -> RulesFile:
    """The rules in it, entry by entry: one that cannot be read takes nothing away from the others.

    `RulesFileError` if it makes no sense as a whole.
    """
    form, entries = _form_of(_parsed(data, file), file)
    if len(entries) > MAX_RULES:
        raise RulesFileError(
            file, "", f"there are {len(entries)} rules, and {MAX_RULES} are allowed"
        )
    read: list[RuleConfiguration] = []
    problems: list[RulesFileError] = []
    notes: list[str] = []
    for number, told in enumerate(entries):
        entry = _Entry(file, f"{form}[{number}]", notes)
        try:
            read.append(_READERS[form](entry.named(told), told))
        except RulesFileError as problem:
            problems.append(problem)
    rules, clashes = _told_apart(read, form, file, notes)
    return RulesFile(rules, (*problems, *clashes), tuple(notes))


def in_our_form(rules: Iterable[RuleConfiguration]) -> dict[str, Any]:
    """The rules as rules.json has them."""
    return {"version": VERSION, "rules": [rule.to_dict() for rule in rules]}


class _Entry:
    """One entry of the file: what is complained about, and where."""

    def __init__(self, file: str, place: str, notes: list[str]):
        self._file = file
        self._place = place
        self._notes = notes

    def named(self, told: Any) -> _Entry:
        """The same, with the name that the entry gives itself."""
        if isinstance(told, Mapping):
            for key in ("name", "RuleConfigurationName", "RuleName", "rule"):
                if isinstance(told.get(key), str):
                    place = f"{self._place} ({_short(told[key])})"
                    return _Entry(self._file, place, self._notes)
        return self

    def wrong(self, problem: str) -> RulesFileError:
        return RulesFileError(self._file, self._place, problem)

    def note(self, text: str) -> None:
        self._notes.append(f"{self._place}: {text}")


# The file as a whole


def _parsed(data: Any, file: str) -> Any:
    if not isinstance(data, bytes | bytearray | memoryview):
        return data
    if len(data) > MAX_BYTES:
        raise RulesFileError(file, "", f"it has {len(data)} bytes, and {MAX_BYTES} are allowed")

    def no_such_number(text: str) -> Any:
        raise ValueError(f"{text} is no number in JSON")

    try:
        return json.loads(bytes(data), parse_constant=no_such_number)
    except (ValueError, RecursionError) as error:
        raise RulesFileError(file, "", f"it is not JSON: {_short(str(error))}") from None


def _form_of(told: Any, file: str) -> tuple[str, list[Any]]:
    """Which form it has, and its entries."""
    if isinstance(told, Mapping):
        forms = [form for form in (OURS, SAGEMAKER, TORNASOLE) if form in told]
        if len(forms) > 1:
            raise RulesFileError(file, "", f"it has both {' and '.join(forms)}: keep one of them")
        if not forms:
            keys = ", ".join(_short(str(key)) for key in list(told)[:5]) or "nothing"
            meant = _meant(list(told), (OURS, SAGEMAKER, TORNASOLE))
            raise RulesFileError(
                file, "", f"it has no {OURS}, {SAGEMAKER} or {TORNASOLE}, but {keys}.{meant}"
            )
        form = forms[0]
        if form == OURS and told.get("version", VERSION) != VERSION:
            version = _short(repr(told["version"]))
            raise RulesFileError(
                file, "", f"it is of version {version}, and {VERSION} is known here"
            )
        entries = told[form]
    else:
        entries = told
        form = _form_of_list(told)
    if not isinstance(entries, list | tuple):
        raise RulesFileError(file, "", f"{form} has to be a list, not {_kind(entries)}")
    return form, list(entries)


def _form_of_list(told: Any) -> str:
    first = told[0] if isinstance(told, list | tuple) and told else None
    if isinstance(first, Mapping):
        if "RuleConfigurationName" in first or "RuleParameters" in first:
            return SAGEMAKER
        if "RuleName" in first:
            return TORNASOLE
    return OURS


def _told_apart(
    read: list[RuleConfiguration], form: str, file: str, notes: list[str]
) -> tuple[tuple[RuleConfiguration, ...], list[RulesFileError]]:
    """Each rule once, and no two of one name: by their names their statuses are told."""
    names = [rule.name for rule in {rule.id: rule for rule in read}.values()]
    kept: dict[str, RuleConfiguration] = {}
    problems = []
    for rule in read:
        if rule.id in kept:
            notes.append(f"{rule.name} is there twice, all the same: it is evaluated once")
        elif names.count(rule.name) == 1 or form == TORNASOLE:
            # There a rule has no name of its own: several of one kind are told apart by what they want.
            name = rule.name if names.count(rule.name) == 1 else f"{rule.name}-{rule.wants[:6]}"
            kept[rule.id] = replace(rule, name=name)
        elif any(other.name == rule.name for other in kept.values()):
            problem = "another rule has this name and is not the same: give each a name of its own"
            problems.append(RulesFileError(file, f"{form} ({_short(rule.name)})", problem))
        else:
            kept[rule.id] = rule
    return tuple(kept.values()), problems


# The three forms of an entry

_OUR_KEYS = (
    *("name", "rule", "parameters", "source", "other_trials", "start_step", "end_step"),
    *("actions", "repeat", "logging_level"),
)


def _ours(entry: _Entry, told: Any) -> RuleConfiguration:
    if isinstance(told, str):
        told = {"rule": told}
    told = _object(entry, told, "a rule")
    for key in told:
        if key not in _OUR_KEYS:
            raise entry.wrong(f"there is no {_short(str(key))!r}.{_meant([key], _OUR_KEYS)}")
    if told.get("rule") is None:
        raise entry.wrong("it has no 'rule': the name of a built-in rule, or of your own class")
    rule = _rule(entry, told["rule"])
    parameters = _object(entry, told.get("parameters") or {}, "parameters")
    others = _take_other_trials(parameters)
    repeat = told.get("repeat")
    if repeat not in (None, EVERY_STEP):
        raise entry.wrong(
            f"repeat has to be {EVERY_STEP!r}, or not there, not {_short(repr(repeat))}"
        )
    return _checked(
        entry,
        RuleConfiguration(
            name=_name(entry, told.get("name", rule)),
            rule=rule,
            parameters=_parameters(entry, parameters),
            source=_source(entry, told.get("source")),
            other_trials=_runs(entry, [*_list(told.get("other_trials")), *others]),
            start_step=_step(entry, "start_step", told.get("start_step")) or 0,
            end_step=_step(entry, "end_step", told.get("end_step")),
            actions=_actions(entry, told.get("actions")),
            repeat=repeat,
            logging_level=_level(entry, told.get("logging_level")),
        ),
    )


_SAGEMAKER_KEYS = {
    "RuleConfigurationName": "",
    "RuleEvaluatorImage": "",  # says that it is a rule of SageMaker, nothing else
    "RuleParameters": "",
    "InstanceType": "rules are evaluated by functions, not on instances",
    "VolumeSizeInGB": "rules are evaluated by functions, not on instances",
    "S3OutputPath": "what a rule has to say is found beside the run and in its events",
    "LocalPath": "rules are evaluated by functions, and have no folder",
}


def _sagemaker(entry: _Entry, told: Any) -> RuleConfiguration:
    told = _object(entry, told, "a rule configuration")
    _pass_over(entry, told, _SAGEMAKER_KEYS)
    parameters = _object(entry, told.get("RuleParameters") or {}, "RuleParameters")
    rule, source = parameters.pop("rule_to_invoke", None), parameters.pop("source_s3_uri", None)
    if rule is None:
        raise entry.wrong(
            "RuleParameters has no 'rule_to_invoke': the class of the rule."
            + _meant(list(parameters), ("rule_to_invoke",))
        )
    rule = _rule(entry, rule)
    name = told.get("RuleConfigurationName")
    if name is None:
        raise entry.wrong("it has no 'RuleConfigurationName'")
    actions = parameters.pop("action_json", None)
    return _with_runtime(entry, _name(entry, name), rule, source, actions, parameters)


_TORNASOLE_KEYS = {
    "RuleName": "",
    "SourceS3Uri": "",
    "RuntimeConfigurations": "",
    "InstanceType": _SAGEMAKER_KEYS["InstanceType"],
    "VolumeSizeInGB": _SAGEMAKER_KEYS["VolumeSizeInGB"],
}


def _tornasole(entry: _Entry, told: Any) -> RuleConfiguration:
    told = _object(entry, told, "a rule specification")
    _pass_over(entry, told, _TORNASOLE_KEYS)
    if told.get("RuleName") is None:
        raise entry.wrong("it has no 'RuleName': the class of the rule")
    rule = _rule(entry, told["RuleName"])
    parameters = _object(entry, told.get("RuntimeConfigurations") or {}, "RuntimeConfigurations")
    actions = parameters.pop("action_json", None)
    return _with_runtime(entry, rule, rule, told.get("SourceS3Uri"), actions, parameters)


_READERS: Mapping[str, Callable[[_Entry, Any], RuleConfiguration]] = {
    OURS: _ours,
    SAGEMAKER: _sagemaker,
    TORNASOLE: _tornasole,
}
_OTHER_TRIALS = ("other_trial", "other_trials", "other-trials-paths", "other_trials_s3_input_paths")
_OTHER_TRIAL = re.compile(r"other_trial_?\d{1,3}", re.ASCII)  # the SDK numbers them


def _with_runtime(
    entry: _Entry, name: str, rule: str, source: Any, actions: Any, parameters: dict[str, Any]
) -> RuleConfiguration:
    """A configuration in which what concerns the evaluation stands among the rule's parameters.

    Names with hyphens cannot be a rule's own; `start_step` can, and stays one.
    """
    others = _take_other_trials(parameters)
    start = _step(entry, "start-step", parameters.pop("start-step", None))
    end = _step(entry, "end-step", parameters.pop("end-step", None))
    level = _level(entry, parameters.pop("logging-level", None))
    return _checked(
        entry,
        RuleConfiguration(
            name=name,
            rule=rule,
            parameters=_parameters(entry, parameters),
            source=_source(entry, source),
            other_trials=_runs(entry, others),
            start_step=start or 0,
            end_step=end,
            actions=_actions(entry, actions),
            logging_level=level,
        ),
    )


def _take_other_trials(parameters: dict[str, Any]) -> list[Any]:
    """The other runs that are named among the parameters, which lose them."""
    numbered = sorted((key for key in parameters if _OTHER_TRIAL.fullmatch(key)), key=_number_in)
    return [run for key in (*_OTHER_TRIALS, *numbered) for run in _list(parameters.pop(key, None))]


def _pass_over(entry: _Entry, told: Mapping[str, Any], known: Mapping[str, str]) -> None:
    for key in told:
        if key not in known:
            if meant := _meant([key], known):
                raise entry.wrong(f"there is no {_short(str(key))!r}.{meant}")
            entry.note(f"{_short(str(key))} is not known here, and ignored")
        elif known[key] and told[key] not in (None, ""):
            entry.note(f"{key} is ignored: {known[key]}")


# The parts of an entry


def _object(entry: _Entry, told: Any, what: str) -> dict[str, Any]:
    if not isinstance(told, Mapping):
        raise entry.wrong(f"{what} has to be an object, not {_kind(told)}")
    if not all(isinstance(key, str) for key in told):
        raise entry.wrong(f"{what} has to have texts for keys")
    return dict(told)


def _name(entry: _Entry, told: Any) -> str:
    # It becomes part of keys in the table and in the bucket.
    name = told.strip() if isinstance(told, str) else told
    if not isinstance(name, str) or not name or len(name) > MAX_NAME:
        raise entry.wrong(
            f"the name has to be a text of 1 to {MAX_NAME} characters, not {_short(repr(told))}"
        )
    if not name.isprintable() or set(name) & set("/\\#?*") or name.strip(".") == "":
        raise entry.wrong(
            f"the name {_short(name)!r} has characters that a name cannot have (such as / \\ # ? *)"
        )
    return name


def _rule(entry: _Entry, told: Any) -> str:
    rule = told.strip() if isinstance(told, str) else ""
    if not rule.isascii() or not rule.isidentifier() or len(rule) > 128:
        raise entry.wrong(
            f"the rule has to be the name of a class, such as VanishingGradient, not {_short(repr(told))}"
        )
    return rule


def _parameters(entry: _Entry, told: Any) -> dict[str, str]:
    given = _object(entry, told or {}, "parameters")
    if len(given) > MAX_PARAMETERS:
        raise entry.wrong(f"there are {len(given)} parameters, and {MAX_PARAMETERS} are allowed")
    parameters = {}
    for key, value in given.items():
        if not key.isidentifier() or len(key) > MAX_NAME:
            raise entry.wrong(f"{_short(key)!r} cannot be the name of a parameter")
        if value is not None:
            parameters[key] = _value(entry, key, value)
    return parameters


def _value(entry: _Entry, key: str, value: Any) -> str:
    """The text by which the rule gets the value, as over SageMaker's API."""
    if isinstance(value, float) and not math.isfinite(value):
        raise entry.wrong(f"parameter {key} has to be a number that there is, not {value}")
    if isinstance(value, bool | int | float | str):
        text = str(value)
    elif isinstance(value, list | tuple) and all(
        isinstance(one, bool | int | float | str) for one in value
    ):
        text = json.dumps(list(value))
    else:
        raise entry.wrong(
            f"parameter {key} has to be a text, a number, a truth or a list of such, not {_kind(value)}"
        )
    if len(text) > MAX_VALUE:
        raise entry.wrong(
            f"parameter {key} has {len(text)} characters, and {MAX_VALUE} are allowed"
        )
    return _text(entry, f"parameter {key}", text)


def _source(entry: _Entry, told: Any) -> str | None:
    if told is None or told == "":
        return None
    bucket, key = _s3_address(entry, "the source", told)
    if not key.endswith(".py"):
        raise entry.wrong(
            f"the source has to be a Python file (s3://bucket/rule.py), not {_short(told)!r}"
        )
    return f"s3://{bucket}/{key}"


def _runs(entry: _Entry, told: Any) -> tuple[str, ...]:
    others = [one for one in _list(told) if one != ""]
    if len(others) > MAX_OTHER_TRIALS:
        raise entry.wrong(
            f"there are {len(others)} other trials, and {MAX_OTHER_TRIALS} are allowed"
        )
    runs = []
    for one in others:
        bucket, prefix = _s3_address(entry, "another trial", one)
        runs.append(f"s3://{bucket}/{prefix}".rstrip("/"))
    return tuple(runs)


_ADDRESS = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?")


def _s3_address(entry: _Entry, what: str, told: Any) -> tuple[str, str]:
    match = _ADDRESS.fullmatch(told.strip()) if isinstance(told, str) else None
    key = match[2].rstrip("/") if match and match[2] else ""
    climbs = any(part in ("", ".", "..") for part in key.split("/") if key)
    if match is None or climbs or len(key.encode("utf-8", "replace")) > 1024:
        raise entry.wrong(f"{what} has to be at s3://bucket/…, and is {_short(repr(told))}")
    return match[1], _text(entry, what, key)


def _step(entry: _Entry, what: str, told: Any) -> int | None:
    if told is None or told == "":
        return None
    try:
        if isinstance(told, bool | float) and not (isinstance(told, float) and told.is_integer()):
            raise ValueError
        step = int(told) if not isinstance(told, str) else int(told.strip()[:20])
    except (TypeError, ValueError, OverflowError):
        step = -1
    if not 0 <= step <= LAST_STEP:
        raise entry.wrong(f"{what} has to be the number of a step, not {_short(repr(told))}")
    return step


def _level(entry: _Entry, told: Any) -> str | None:
    if told is None or told == "":
        return None
    level = told.strip().upper() if isinstance(told, str) else ""
    if level not in LOGGING_LEVELS:
        raise entry.wrong(
            f"the logging level is one of {', '.join(LOGGING_LEVELS)}, not {_short(repr(told))}"
        )
    return level


_ACTION_KEYS = {
    "stoptraining": ("training_job_prefix", "stop_at_step"),
    "email": ("endpoint",),
    "sms": ("endpoint",),
}


def _actions(entry: _Entry, told: Any) -> tuple[Mapping[str, Any], ...]:
    told = _unescaped(entry, told)
    if isinstance(told, Mapping):
        told = [told] if told else []
    if not isinstance(told, list | tuple):
        raise entry.wrong(f"actions have to be a list of objects with a name, not {_kind(told)}")
    if len(told) > MAX_ACTIONS:
        raise entry.wrong(f"there are {len(told)} actions, and {MAX_ACTIONS} are allowed")
    return tuple(_action(entry, one) for one in told)


def _unescaped(entry: _Entry, told: Any) -> Any:
    """The SDK writes actions as JSON in a text, at times with a backslash before each quote."""
    if told is None or told == "":
        return []
    if not isinstance(told, str):
        return told
    if len(told) > MAX_VALUE:
        raise entry.wrong(f"the actions have {len(told)} characters, and {MAX_VALUE} are allowed")
    for attempt in (told, told.replace('\\"', '"')):
        try:
            parsed = json.loads(attempt)
            return json.loads(parsed) if isinstance(parsed, str) else parsed
        except (ValueError, RecursionError):
            continue
    raise entry.wrong(f"the actions are no JSON: {_short(told)}")


def _action(entry: _Entry, told: Any) -> dict[str, Any]:
    if isinstance(told, str):
        told = {"name": told}
    options = {
        str(key).strip().lower(): value for key, value in _object(entry, told, "an action").items()
    }
    given = options.pop("name", None)
    name = str(given).strip().lower().replace("_", "").replace("-", "")
    if name not in _ACTION_KEYS:
        raise entry.wrong(
            f"there is no action {_short(repr(given))}: it is one of {', '.join(ACTIONS)}"
        )
    action: dict[str, Any] = {"name": name}
    for key, value in options.items():
        if key not in _ACTION_KEYS[name]:
            raise entry.wrong(
                f"the action {name} takes no {_short(key)!r}.{_meant([key], _ACTION_KEYS[name])}"
            )
        if value is None or value == "":
            continue
        if key == "stop_at_step":
            action[key] = _step(entry, key, value)
        elif isinstance(value, str) and len(value) <= MAX_NAME:
            action[key] = _text(entry, key, value.strip())
        else:
            raise entry.wrong(
                f"{key} of the action {name} has to be a short text, not {_short(repr(value))}"
            )
    return action


def _checked(entry: _Entry, rule: RuleConfiguration) -> RuleConfiguration:
    if rule.end_step is not None and rule.end_step <= rule.start_step:
        raise entry.wrong(
            f"it would look at no step: it starts at {rule.start_step} and ends before {rule.end_step}"
        )
    return _with_stop_as_action(entry, rule)


def _with_stop_as_action(entry: _Entry, rule: RuleConfiguration) -> RuleConfiguration:
    """StalledTrainingRule's parameter to stop the training is an action: by itself no rule does anything."""
    asked = rule.parameters.get("stop_training_on_fire") in ("True", "true")
    prefix = rule.parameters.get("training_job_name_prefix")
    is_meant = rule.rule.lower() in _STALLED_TRAINING and rule.source is None
    if not (is_meant and asked and prefix):
        return rule
    entry.note("stop_training_on_fire is the action stoptraining")
    parameters = {name: told for name, told in rule.parameters.items() if name not in _STOPPING}
    actions = [*rule.actions, {"name": "stoptraining", "training_job_prefix": prefix}]
    return replace(rule, parameters=parameters, actions=_actions(entry, actions))


_STALLED_TRAINING = ("stalledtrainingrule", "stalledtraining")
_STOPPING = ("stop_training_on_fire", "training_job_name_prefix")


# Words


def _list(told: Any) -> list[Any]:
    """A list, or a text with `;` or `,` between the items."""
    if told is None:
        return []
    if isinstance(told, str):
        return [part.strip() for part in re.split("[;,]", told) if part.strip()]
    return list(told) if isinstance(told, list | tuple) else [told]


def _number_in(key: str) -> int:
    return int("".join(filter(str.isdigit, key)))


def _text(entry: _Entry, what: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise entry.wrong(f"{what} has half a character in it (a lone surrogate)") from None
    if "\0" in text:
        raise entry.wrong(f"{what} has a NUL in it")
    return text


def _meant(given: Iterable[Any], known: Iterable[str]) -> str:
    """The end of a sentence that names what was probably meant."""
    nearest = next(filter(None, (nearest_of(str(one), known) for one in given)), None)
    return f" Did you mean {nearest!r}?" if nearest else ""


def nearest_of(given: str, known: Iterable[str]) -> str | None:
    """The one of the known names that is most like the given one, if any is."""
    from difflib import get_close_matches

    by_plain = {_plain(one): one for one in known}
    close = get_close_matches(_plain(given[:MAX_NAME]), list(by_plain), n=1, cutoff=0.6)
    return by_plain[close[0]] if close else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (Mapping, "an object"),
    (str, "a text"),
    (bool, "true or false"),
    ((list, tuple), "a list"),
    ((int, float), "a number"),
)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return next((word for kind, word in _KINDS if isinstance(value, kind)), type(value).__name__)


def _short(text: str) -> str:
    """As much of a stranger's text as belongs into a sentence, on one line."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[:81])
    return shown if len(shown) <= 80 else f"{shown[:79]}…"


__all__ = [
    "RULES_FILE",
    "RulesFile",
    "in_our_form",
    "nearest_of",
    "parse_rules",
    "read_rules",
]
