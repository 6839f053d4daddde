"""Install the wheel into an empty environment and use it.

    python tests/wheel_check.py dist

This finds what a checkout hides: a package missing from the wheel, an undeclared dependency, a module
that wrongly needs an extra.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from itertools import chain
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]

SESSION = """
import sys, tempfile
import numpy as np
import smdebug, smdebug_default_rules, smdebug_rules, tornasole, tornasole_rules
from smdebug import Hook, SaveConfig
from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet
from smdebug.rules.rule_invoker import invoke_rule
from smdebug.trials import create_trial
from smdebug_default_rules.catalog import CATALOG
from smdebug_rules import ExplodingTensor

for entry in CATALOG.values():
    entry.load()

assert "site-packages" in smdebug.__file__, smdebug.__file__
out = tempfile.mkdtemp() + "/run"
hook = Hook(out_dir=out, save_config=SaveConfig(save_interval=2), save_all=True)
with hook:
    for step in range(6):
        with hook.step():
            hook.record("weight", np.full(3, np.inf if step == 4 else step, np.float32))

trial = create_trial(out)
assert trial.steps() == [0, 2, 4], trial.steps()
assert trial.tensor("weight").value(2).tolist() == [2.0, 2.0, 2.0]
fired = []
try:
    invoke_rule(ExplodingTensor(trial, only_nan=False), raise_eval_cond=True)
except RuleEvaluationConditionMet as met:
    fired.append(met.step)
except NoMoreData:
    pass
assert fired == [4], fired
assert "boto3" not in sys.modules
from smdebug.reports import write_report
write_report(out, out + ".html", rules=["ExplodingTensor"])
assert "uPlot" in open(out + ".html").read(), "the report lacks its drawing library"
print("The installed wheel saved a run, read it and evaluated a rule, which fired at step 4.")
"""


def main(dist: Path) -> None:
    wheel = max(dist.glob("smdebug_serverless-*.whl"), key=lambda found: found.stat().st_mtime)
    check_contents(wheel)
    with tempfile.TemporaryDirectory(prefix="wheel-check-") as folder:
        place = Path(folder)
        venv.create(place / "venv", with_pip=True)
        python = place / "venv" / "bin" / "python"
        constraints = unhashed(CHECKOUT / "requirements" / "dev.txt", place)
        install(place / "venv", constraints, wheel)
        subprocess.run([python, "-P", "-c", SESSION], check=True, cwd=place)
        command = place / "venv" / "bin" / "smdebug-invoke-rule"
        subprocess.run([command, "--help"], check=True, stdout=subprocess.DEVNULL, cwd=place)
        command = place / "venv" / "bin" / "smdebug"
        subprocess.run([command, "rules"], check=True, stdout=subprocess.DEVNULL, cwd=place)
        check_that_the_demo_needs_an_extra(command, place)
        install(place / "venv", constraints, f"{wheel}[local]")
        demo = [command, "demo", "--json"]
        subprocess.run(demo, check=True, stdout=subprocess.DEVNULL, cwd=place, env=own_cache(place))
        print("The installed wheel ran the demo without a checkout.")


def install(environment: Path, constraints: Path, what: str | Path) -> None:
    """Install by uv, else by pip, which takes minutes where the package index is far."""
    tool = CHECKOUT / "tools" / "install_packages.py"
    uv = Path(sys.executable).with_name("uv")
    words = [sys.executable, tool, environment, "--uv", uv, "--", "-c", constraints, what]
    subprocess.run(words, check=True)


def check_that_the_demo_needs_an_extra(command: Path, place: Path) -> None:
    """Exit with a message unless the demo names the extra that it needs."""
    demo = [command, "demo", "--json"]
    without = subprocess.run(
        demo, check=False, capture_output=True, text=True, cwd=place, env=own_cache(place)
    )
    if without.returncode != 2 or "smdebug-serverless[local]" not in without.stderr:
        sys.exit(f"Without its packages the demo ends with {without.returncode}: {without.stderr}")


def own_cache(place: Path) -> dict[str, str]:
    """Return the environment of a command that finds nothing which an earlier demo kept."""
    return {**os.environ, "XDG_CACHE_HOME": str(place / "cache")}


def check_contents(wheel: Path) -> None:
    """Exit with a message unless the wheel holds exactly the modules of the checkout."""
    roots = [CHECKOUT / "layers/smdebug_core/python", CHECKOUT / "rules"]
    packages = {"smdebug", "tornasole", "tornasole_rules", "smdebug_rules", "smdebug_default_rules"}
    expected = {
        path.relative_to(root).as_posix()
        for root in roots
        for path in root.rglob("*.py")
        if path.relative_to(root).parts[0] in packages
    }
    application = chain.from_iterable(
        (CHECKOUT / name).rglob("*.py") for name in ("functions", "infra", "local_aws")
    )
    for path in (*application, CHECKOUT / "examples" / "train_numpy.py"):
        expected.add(f"smdebug/app/{path.relative_to(CHECKOUT).as_posix()}")
    with zipfile.ZipFile(wheel) as archive:
        modules = {name for name in archive.namelist() if name.endswith(".py")}
    if modules != expected:
        sys.exit(
            f"{wheel.name} and the checkout hold different modules: "
            f"missing {sorted(expected - modules)}, unexpected {sorted(modules - expected)}."
        )


def unhashed(pins: Path, place: Path) -> Path:
    """Write the pins as constraints, which cannot carry hashes; return the file."""
    lines = (line.strip() for line in pins.read_text(encoding="utf-8").splitlines())
    constraints = place / "constraints.txt"
    kept = [line.removesuffix("\\").strip() for line in lines if "==" in line]
    constraints.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return constraints


if __name__ == "__main__":
    main(Path(sys.argv[1]))
