"""A small part of `make verdicts`: programs and faults that rules may be tuned on, one seed each."""

import json

import pytest
import torch

pytest.importorskip("sklearn")

from corpus.__main__ import main
from corpus.measuring import agent
from corpus.measuring.child import train
from corpus.measuring.judging import judge
from corpus.measuring.recording import record
from corpus.measuring.scores import Verdict
from corpus.measuring.zoo import find


@pytest.fixture(autouse=True)
def single_thread():
    """As the child processes of `make verdicts` have it: sums do not depend on the number of processors."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def verdict_on(name: str, kind: str, folder) -> Verdict:
    """Train in this process, one program after another, which takes a third of the time of processes."""
    trained = find(name, kind)
    assert not trained.case.held_out
    place = folder / "seed-0"
    train(trained, 0, place)
    judged = judge(str(place))
    assert judged.errors == ()
    return Verdict(trained.case, kind, 0, judged)


@pytest.mark.parametrize(
    "name",
    [
        "cnn with biases before batch norm",
        "transformer language model",
        "generative adversarial network",
        "validation in many small batches",
    ],
)
def test_a_healthy_program_draws_no_alarm(name, tmp_path):
    assert verdict_on(name, "healthy", tmp_path).alarms == ()


@pytest.mark.parametrize(
    "name",
    [
        "zero grad forgotten",
        "layer missing in the optimizer",
        "eval forgotten",
        "the same rows each step",
        "softmax before cross entropy",
        "twelve sigmoids",
        "rate sixty times too large for one step",
        "gradient element times 2 to the 20",
    ],
)
def test_a_fault_is_named_with_its_place_and_its_first_step(name, tmp_path):
    verdict = verdict_on(name, "faulty", tmp_path)
    assert verdict.right, verdict.alarms
    assert verdict.is_prompt, (verdict.right, verdict.judged.steps)


def test_the_twin_of_a_fault_draws_no_alarm(tmp_path):
    assert verdict_on("the same rows each step", "twin", tmp_path).alarms == ()


def test_a_recorded_run_is_used_again_until_the_code_changes(tmp_path):
    trained = find("logistic regression", "healthy")
    first = record(trained, 1, tmp_path)
    note = next(tmp_path.rglob("recorded.json"))
    before = note.stat().st_mtime_ns
    assert record(trained, 1, tmp_path) == first
    assert note.stat().st_mtime_ns == before

    note.write_text(note.read_text().replace('"code": "', '"code": "other'))
    record(trained, 1, tmp_path)
    assert note.stat().st_mtime_ns > before


def test_the_command_prints_the_figures_and_writes_each_verdict(tmp_path, capsys):
    found = tmp_path / "verdicts.json"
    asked = ["--only", "logistic", "--seeds", "1", "--jobs", "1", "--keep", str(tmp_path)]
    assert main([*asked, "--json", str(found)]) == 0
    assert "| healthy runs with an alarm  | 0/1 (0 %)" in capsys.readouterr().out
    (verdict,) = json.loads(found.read_text())
    assert (verdict["name"], verdict["kind"]) == ("logistic regression", "healthy")
    assert verdict["steps"]
    assert main([*asked, "--kept"]) == 0
    assert "1 runs in" in capsys.readouterr().out


def test_an_agent_that_reads_the_answers_alone_names_the_fault_and_calls_its_twin_healthy(tmp_path, capsys):
    name = "softmax before cross entropy"
    for kind in ("faulty", "twin"):
        record(find(name, kind), 1, tmp_path)
    asked = [str(tmp_path), "--only", name, "--jobs", "1"]
    assert agent.main(asked) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if "1/1 (100 %)" in line]
    assert len(rows) == 2

    note = next((tmp_path / "faulty").rglob("recorded.json"))
    note.write_text(note.read_text().replace('"seeds": 1', '"seeds": 2'))  # a training without a run
    assert agent.main(asked) == 1
    said = capsys.readouterr().out
    assert f"{name} (faulty): no run, not " in said
    assert "1/2 (50 %)" in said


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["--only", "no such program"], "no program matches 'no such program'"),
        (["--publish", "--random", "1"], "--publish keeps the results of the programs"),
        (["--kept", "--keep", "nowhere"], "no recordings are kept in nowhere"),
    ],
)
def test_a_choice_that_cannot_be_measured_is_refused(asked, expected, capsys):
    with pytest.raises(SystemExit) as refused:
        main(asked)
    assert refused.value.code == 2
    assert expected in capsys.readouterr().err
