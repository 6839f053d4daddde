"""The dependencies that ARCHITECTURE.md draws, checked in the code.

It is long because the table of the arrows is beside the tests that read it.
"""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from smdebug.compatibility.addresses import ADDRESSES

ROOT = Path(__file__).parents[1]
LAYER = ROOT / "layers" / "smdebug_core" / "python"
RULES = ROOT / "rules"
FUNCTIONS = ROOT / "functions"
INFRA = ROOT / "infra"
LOCAL_AWS = ROOT / "local_aws"

# What every room may look into; these six look only into each other.
COMMON = ("exceptions", "mode_keys", "plain_text", "amounts", "extras", "secrets")
# room -> the other rooms it may look into
ARROWS = {
    **{room: set() for room in COMMON},
    "logger": set(),
    "files": set(),
    "numbers": set(),
    "storage": {"files.names"},
    "config": {"files", "storage", "logger"},
    "saving": {
        "files",
        "storage",
        "config",
        "numbers",
        "logger",
        "service.records",
        "service.rules_file",  # a hook can carry its run's rules
        "rules.generic",  # and names those that it saves nothing for
        "sinks",  # a run that the script has open in another tool is known in its process alone
    },
    "trials": {"files", "storage", "config", "numbers", "logger", "service.records"},
    "diagnosis": {"files.notes.checkpoints"},
    "rules": {
        "trials",
        "config",
        "numbers",
        "logger",
        "diagnosis.evidence",  # what was found, by its cause
        "files.names",
        "files.zoom_request",  # an action may request tensors of the training
        "service.records",  # the names of the actions
    },
    "service": {
        "files",
        "storage",
        "trials",
        "diagnosis",
        "config.json_config",
        "config.parsing",  # an imported job is held to what a hook takes
    },
    "runs": {
        "files",
        "storage",
        "numbers",
        "trials",
        "rules",
        "diagnosis",
        "logger",
        "service.records",
        "service.rules_file",
        "service.findings",
        "service.run_status",
    },
    "backtesting": {
        "files.names",
        "logger",
        "rules",
        "runs",
        "service.backtests",
        "service.costs",
        "storage",
        "trials",
        "ui.embedding",
    },
    "companion": {
        "diagnosis",
        "export",
        "reports.writing",
        "sinks",
        "files.names",
        "rules.loading",
        "runs",
        "storage",
        "service.records",
        "logger",
    },
    "export": {"diagnosis", "files", "storage", "numbers", "trials", "runs", "reports.writing", "sinks"},
    "sinks": {"diagnosis", "storage", "files.names"},
    "importing": {"files", "storage", "config", "saving", "trials.observations.loss_names"},
    "reports": {"storage", "trials", "runs", "service.records", "rules", "diagnosis", "ui"},
    "notebook": {"reports", "runs", "trials", "service.records", "ui.embedding"},
    "plots": {"numbers", "trials", "runs"},
    "ui": {
        "runs",
        "trials",
        "rules",
        "diagnosis",
        "storage",
        "numbers",
        "logger",
        "files.names",
        "files.observations",
        "files.zoom_request",
        "service",
    },
    "cli": {
        "backtesting",
        "runs",
        "export",
        "reports",
        "plots",
        "service",
        "rules",
        "sinks.sink",
        "trials",
        "logger",
        "migrating",
        "diagnosis",
        "files.zoom_request",
        "importing",
        "launching",
        "storage.intervals",
        "ui",
    },
    "migrating": {"config.keys", "rules.generic", "service.training_job"},
    "__main__": {"cli"},
    **{
        framework: {"saving", "config", "trials", "numbers", "logger", "files.names"}
        for framework in ("pytorch", "tensorflow", "xgboost")
    },
    "compatibility": {"files", "storage", "config", "numbers", "logger", "saving", "trials"},
    "jax": {"saving", "config", "trials", "numbers"},
    **{around_torch: {"saving", "pytorch"} for around_torch in ("huggingface", "lightning")},
    "sweeps": {"launching", "saving", "runs", "diagnosis", "logger"},
    # It looks for the frameworks by name, when they are there.
    "launching": {"saving", "config", "logger"},
    "run": {"launching"},  # the address of `python -m smdebug.run`
}
PURE = [
    "files",
    "numbers",
    "secrets",
    *(f"config/{each}_config.py" for each in ("save", "reduction")),
    "config/collection.py",
    "config/collection_manager.py",
    "diagnosis",
    "trials/progress.py",
    "runs/evaluation/layer_order.py",
    "ui/drawing",
    "ui/finding/times.py",
    "ui/answering/costs.py",
    "saving/planning",
    "service/step_index",
    "service/rules_file",
    *(f"service/{each}.py" for each in ("findings", "log_lines", "news", "records", "tables")),
    *(f"service/{each}.py" for each in ("run_status", "sagemaker_statuses", "step_status")),
    "service/webhook_secrets.py",
]
IMPURE_MODULES = {"os", "time", "logging", "socket", "threading", "pathlib", "random", "boto3"}


def modules(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if "_pb2" not in p.name)


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    """Every module that the file imports: at its top, in a function, or for types alone."""
    imported: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written out in full"
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            imported += [node.module or "", *names]
    return tuple(imported)


def room_of(path: Path) -> str:
    parts = path.relative_to(LAYER / "smdebug").with_suffix("").parts
    return parts[0]


OURS = modules(LAYER / "smdebug")


def test_there_is_something_to_check():
    assert len(OURS) > 50


@pytest.mark.parametrize("room", ARROWS)
def test_a_room_looks_only_where_its_arrows_point(room):
    allowed = {room, *COMMON} | ARROWS[room]
    wrong = []
    for path in OURS:
        if room_of(path) != room:
            continue
        for name in imports_of(path):
            if not name.startswith("smdebug."):
                continue
            inside = name.removeprefix("smdebug.")
            if room == "rules" and inside.startswith(("generic", "rules")):
                continue
            if not any(
                inside == a or inside.startswith(f"{a}.") or a.startswith(f"{inside}.") for a in allowed
            ):
                wrong.append(f"{path.relative_to(LAYER)} -> {name}")
    assert not wrong


@pytest.mark.parametrize("room", ARROWS)
def test_every_arrow_is_needed(room):
    imported = [name for path in OURS if room_of(path) == room for name in imports_of(path)]
    assert {
        target
        for target in ARROWS[room]
        if not any(f"{name}.".startswith(f"smdebug.{target}.") for name in imported)
    } == set()


def test_every_room_is_drawn_and_described():
    rooms = {room_of(path) for path in OURS} - {"__init__"}
    assert rooms == set(ARROWS)
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert rooms - {"__main__"} <= described


def test_every_sub_room_says_what_it_is_for():
    packages = {path.parent for path in OURS}
    sub_rooms = [each for each in packages if len(each.relative_to(LAYER / "smdebug").parts) == 2]
    said = {each: (each / "__init__.py").read_text(encoding="utf-8") for each in sub_rooms}
    assert [str(each) for each, text in said.items() if not text.startswith('"""')] == []


def test_nobody_of_ours_uses_the_old_addresses():
    old = (*ADDRESSES, "smdebug.compatibility")
    wrong = [
        f"{path.relative_to(ROOT)} -> {name}"
        for path in [*OURS, *modules(RULES)]
        if not path.is_relative_to(LAYER / "smdebug" / "compatibility")
        for name in imports_of(path)
        if any(f"{name}.".startswith(f"{address}.") for address in old)
    ]
    makes_import_follow_them = "layers/smdebug_core/python/smdebug/__init__.py"
    assert {each.split(" -> ")[0] for each in wrong} == {makes_import_follow_them}


@pytest.mark.parametrize("place", PURE)
def test_decisions_are_pure(place):
    target = LAYER / "smdebug" / place
    paths = modules(target) if target.is_dir() else [target]
    assert paths
    wrong = [
        f"{path.relative_to(LAYER)} -> {name}"
        for path in paths
        for name in imports_of(path)
        if name.split(".")[0] in IMPURE_MODULES or name == "smdebug.logger"
    ]
    assert not wrong


def test_boto3_is_known_to_the_s3_storage_the_actions_and_the_service_alone():
    knowing = {
        str(path.relative_to(LAYER / "smdebug"))
        for path in OURS
        if any(name.split(".")[0] in {"boto3", "botocore"} for name in imports_of(path))
    }
    assert knowing == {
        "storage/s3.py",
        "storage/s3_clients.py",
        "storage/s3_errors.py",
        "service/aws.py",
        "compatibility/access_files.py",
        *(k for k in knowing if k.startswith("rules/action/")),
    }


def test_nobody_asks_whether_a_path_is_on_s3_but_the_one_who_opens_it():
    asking = [
        str(path.relative_to(LAYER / "smdebug"))
        for path in OURS
        if room_of(path) not in {"compatibility", "storage"}
        and path != LAYER / "smdebug" / "service" / "aws.py"  # it opens the runs, which are on S3
        and re.search(r"""startswith\(\(?["']s3|is_s3|S3Storage""", path.read_text(encoding="utf-8"))
    ]
    assert not asking


def test_frameworks_are_imported_by_their_own_package_alone():
    frameworks = {
        "torch": "pytorch",
        "tensorflow": "tensorflow",
        "mxnet": "compatibility",
        "xgboost": "xgboost",
        "jax": "jax",
        "transformers": "huggingface",
        "lightning": "lightning",
        "pytorch_lightning": "lightning",
    }
    wrong = [
        f"{path.relative_to(LAYER)} -> {name}"
        for path in OURS
        for name in imports_of(path)
        if (home := frameworks.get(name.split(".")[0])) and room_of(path) != home
    ]
    assert not wrong


@pytest.mark.parametrize("room", ["smdebug_rules", "smdebug_default_rules"])
def test_a_built_in_rule_is_written_as_a_user_would(room):
    public = {
        "smdebug",
        "smdebug.rules",
        "smdebug.rules.action",
        "smdebug.rules.evidence",
        "smdebug.rules.measurements",
        "smdebug.rules.parameters",
        "smdebug.rules.selection",
        "smdebug.exceptions",
        "smdebug.mode_keys",
        "smdebug.trials",
        "smdebug.numbers.conditions",
        "smdebug.rules.robust",
        "smdebug.rules.rule_sets",
        "smdebug.numbers.rank_times",
        "smdebug.numbers.rows",
        "smdebug.files.notes.stalls",
        "smdebug.files.observations",
        "smdebug.trials.observations.one_step",
        "smdebug.trials.observations.statistics_matrix",
        "smdebug.trials.observations.worker_parts",
    }
    wrong = [
        f"{path.relative_to(RULES)} -> {name}"
        for path in modules(RULES / room)
        for name in imports_of(path)
        if name.startswith("smdebug.") and name not in public and name.rpartition(".")[0] not in public
    ]
    assert not wrong


def test_only_two_modules_find_rules_in_the_catalogs():
    catalogs = {"smdebug_rules", "smdebug_default_rules"}
    assert {
        str(path.relative_to(LAYER / "smdebug"))
        for path in OURS
        if any(name.split(".")[0] in catalogs for name in imports_of(path))
    } == {"rules/generic.py", "rules/rule_sets.py"}


# The application


def of_the_application(place: Path) -> list[Path]:
    paths = modules(place)
    assert paths, f"{place} holds nothing"
    return paths


def test_functions_use_the_library_the_catalog_and_their_own():
    libraries = {"numpy", "aws_lambda_powertools"}
    ours = {"functions", "smdebug", "smdebug_rules"}
    wrong = [
        f"{path.relative_to(ROOT)} -> {name}"
        for path in of_the_application(FUNCTIONS)
        for name in imports_of(path)
        if not (
            (top := name.split(".")[0]) in sys.stdlib_module_names | libraries | ours
            or (top in {"boto3", "botocore"} and knows_aws(path))
        )
        or name in ADDRESSES
        or (name.startswith("smdebug_rules.") and not name.startswith("smdebug_rules.catalog"))
    ]
    assert not wrong


def knows_aws(path: Path) -> bool:
    """Adapters speak to AWS, and the wiring makes their clients."""
    return path.parent == FUNCTIONS / "adapters" or path == FUNCTIONS / "wiring.py"


def test_functions_make_their_clients_when_they_need_them():
    """Importing a handler touches nothing: boto3 is imported only inside functions."""
    wrong = [
        path.relative_to(ROOT)
        for path in of_the_application(FUNCTIONS)
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        and re.search(r"\b(boto3|botocore)\b", ast.unparse(statement))
    ]
    assert not wrong


def test_decisions_of_the_application_are_pure():
    wrong = []
    for path in of_the_application(FUNCTIONS / "decisions"):
        place = path.relative_to(ROOT)
        for name in imports_of(path):
            top = name.split(".")[0]
            if top in IMPURE_MODULES | {"botocore"} or name == "smdebug.logger":
                wrong.append(f"{place} -> {name}")
            inside = name == "functions" or name.startswith("functions.decisions")
            if top == "functions" and not inside:
                wrong.append(f"{place} -> {name}")
        wrong += [f"{place} asks for the time" for _ in clocks_read_in(path)]
    assert not wrong


def clocks_read_in(path: Path) -> list[ast.Attribute]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}
        if ast.unparse(node.value).split(".")[-1] in {"datetime", "date"}
    ]


def test_handlers_connect_and_do_not_decide():
    """A handler has a name that a template can give, and no more than 30 lines."""
    found = {}
    for path in of_the_application(FUNCTIONS):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == "handler":
                found[path.stem] = (node.end_lineno or 0) - node.lineno + 1
                assert path.parent == FUNCTIONS / "handlers", f"{path} is not where handlers are"
                assert [argument.arg for argument in node.args.args] == ["event", "context"]
    assert found
    assert not {name: lines for name, lines in found.items() if lines > 30}


def test_what_is_deployed_and_what_deploys_it_know_nothing_of_each_other():
    wrong = [
        f"{path.relative_to(ROOT)} -> {name}"
        for place, others in (
            (INFRA, {"functions", "smdebug", "smdebug_rules", "tornasole", "local_aws"}),
            # Plays AWS and its user: it deploys the template, and reads results through smdebug.
            (LOCAL_AWS, {"functions", "aws_cdk", "smdebug_rules", "tornasole"}),
            (FUNCTIONS, {"infra", "local_aws", "aws_cdk", "constructs"}),
            (LAYER, {"infra", "local_aws", "functions"}),
        )
        for path in of_the_application(place)
        for name in imports_of(path)
        if name.split(".")[0] in others
        if INFRA / "local" not in path.parents  # the old address of local_aws
    ]
    assert not wrong
