"""PyTorch scripts that know nothing of a hook.

Where it is of no matter when PyTorch is imported, they run in forks of one process that has done so.
"""

import json

import pytest

import smdebug.pytorch as smd
from tests.frameworks.forks import Forks
from tests.frameworks.pytorch.training import since
from tests.frameworks.scripts import ROOT, python, watched

SCRIPT = """
import sys
import torch
from torch import nn

assert __name__ == "__main__" and sys.argv[1:] == ["--epochs", "2"], sys.argv
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 4)
        self.dropout = nn.Dropout(0.3)
        self.fc2 = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc2(self.dropout(torch.relu(self.fc1(x))))


model = Net()
LOSS
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(2):
    model.train()
    for _ in range(3):
        optimizer.zero_grad()
        loss = criterion(model(torch.randn(5, 8)), torch.randint(0, 3, (5,)))
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        criterion(model(torch.randn(5, 8)), torch.randint(0, 3, (5,)))
print([p.tolist() for p in model.parameters()])
print(sorted(name for name in sys.modules if name == "__mp_main__"))
"""
MODULE = "criterion = nn.CrossEntropyLoss()"
FUNCTION = "criterion = nn.functional.cross_entropy"


@pytest.fixture(scope="module")
def in_fork():
    with Forks("torch", "torch._dynamo") as forks:
        yield forks.python


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace("LOSS", MODULE))
    return path


def test_a_script_is_watched_and_prints_what_it_prints_alone(script):
    options = ["--out-dir", "run", "--collections", "weights,gradients", "--save-interval", 2]
    watched(script, *options, arguments=("--epochs", "2"))
    trial = smd.create_trial(str(script.parent / "run"))
    assert trial.steps(smd.modes.TRAIN) == [0, 2, 4]
    assert trial.steps(smd.modes.EVAL) == [0]
    assert trial.tensor_names(step=0) == [
        "CrossEntropyLoss_output_0",
        *(f"Net_{layer}.weight" for layer in ("fc1", "fc2")),
        *(f"gradient/Net_{layer}.{kind}" for layer in ("fc1", "fc2") for kind in ("bias", "weight")),
    ]
    assert trial.tensor("CrossEntropyLoss_output_0").steps(smd.modes.EVAL) == [0]
    assert trial.loaded_all_steps


def test_which_runs_were_saved_is_told_in_a_file_whatever_becomes_of_the_script(script, in_fork):
    done = script.parent / "runs.json"
    watched(script, "--out-dir", "run", "--json", done, arguments=("--epochs", "2"), run=in_fork)
    assert json.loads(done.read_text()) == {"runs": [str(script.parent / "run")]}
    command = ("-m", "smdebug.run", "--out-dir", "other", "--json", done, script)
    assert in_fork(*command, cwd=script.parent).returncode != 0  # without what it asks for
    assert json.loads(done.read_text()) == {"runs": []}
    nowhere = script.parent / "nowhere" / "runs.json"
    refused = in_fork("-m", "smdebug.run", "--json", nowhere, script, cwd=script.parent)
    assert refused.returncode == 2
    assert str(nowhere.parent) in refused.stderr
    assert refused.stdout == ""
    second = {"RANK": "1", "WORLD_SIZE": "1"}
    done.unlink()
    in_fork(*command, cwd=script.parent, **second)
    assert not done.exists()


def test_a_loss_that_is_a_function_is_what_backward_was_called_on(script, in_fork):
    script.write_text(SCRIPT.replace("LOSS", FUNCTION))
    watched(script, "--out-dir", "run", "--save-interval", 1, arguments=("--epochs", "2"), run=in_fork)
    trial = smd.create_trial(str(script.parent / "run"))
    assert trial.tensor_names() == ["loss_output_0"]
    assert trial.tensor("loss_output_0").steps(smd.modes.TRAIN) == list(range(6))


def test_the_json_file_configures_what_options_do_not(script, in_fork):
    config = script.parent / "config.json"
    config.write_text(
        json.dumps(
            {
                "LocalPath": "from-json",
                "HookParameters": {"save_interval": "1"},
                "CollectionConfigurations": [{"CollectionName": "biases"}],
            }
        )
    )
    watched(
        script,
        "--config",
        config,
        "--save-interval",
        3,
        "--save-all",
        arguments=("--epochs", "2"),
        run=in_fork,
    )
    trial = smd.create_trial(str(script.parent / "from-json"))
    assert trial.steps(smd.modes.TRAIN) == [0, 3]
    assert {"fc1_output_0", "Net_fc1.bias"} <= set(trial.tensor_names())


def test_without_a_place_it_makes_a_folder_and_says_so(script, in_fork):
    watched(script, arguments=("--epochs", "2"), run=in_fork)
    (run,) = (script.parent / "smdebug-runs").iterdir()
    assert run.name.startswith("train-")
    assert smd.create_trial(str(run)).steps() == list(range(7))


def test_a_script_that_fails_fails_as_it_does_alone(script):
    script.write_text(SCRIPT.replace("LOSS", MODULE) + "raise ValueError('wrong')\n")
    words = ["-m", "smdebug.run", "--out-dir", "run", script, "--epochs", "2"]
    done = python(*words, cwd=script.parent)
    assert done.returncode == 1
    assert "ValueError: wrong" in done.stderr
    trial = smd.create_trial(str(script.parent / "run"))
    assert trial.steps() == list(range(7))  # the evaluation took the number of the fourth of training
    assert not trial.loaded_all_steps


def test_a_script_that_goes_elsewhere_still_knows_where_it_lies(script):
    script.write_text("import os\nos.chdir('/')\nprint(open(__file__).readline())\nraise KeyError(1)\n")
    alone = python(script.name, cwd=script.parent)
    done = python("-m", "smdebug.run", "--out-dir", "run", script.name, cwd=script.parent)
    assert done.stdout == alone.stdout == "import os\n\n"
    assert f'File "{script}", line 4' in done.stderr
    assert "    raise KeyError(1)" in done.stderr


@since("2.3", "a GradScaler for the CPU")
def test_a_scaled_loss_is_saved_as_it_was(script, in_fork):
    text = SCRIPT.replace("LOSS", FUNCTION).replace(
        "    loss.backward()", "    torch.amp.GradScaler('cpu', 1024.0).scale(loss).backward()"
    )
    script.write_text(text.replace("optimizer.step()", "print(float(loss))"))
    output = watched(
        script, "--out-dir", "run", "--save-interval", 1, arguments=("--epochs", "2"), run=in_fork
    )
    trial = smd.create_trial(str(script.parent / "run"))
    assert float(trial.tensor("loss_output_0").value(0)) == float(output.splitlines()[0])


SEVERAL = """
import gc, sys, weakref
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        return self.fc(x)


def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).mean().backward()
        optimizer.step()


"""
FOLDS = """
for fold in range(3):
    model = Net()
    train(model, 5)
    with torch.no_grad():
        model.eval()(torch.ones(2, 3))
    gone = weakref.ref(model)
    del model
    print("gone" if gone() is None else "kept")
"""
ENSEMBLE = """
models = [Net(), Net()]
for model in models:
    train(model, 15)
train(models[0], 15)
"""
ADVERSARIES = """
generator, critic = Net(), Net()
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (generator, critic)]
for step in range(4):
    images = generator(torch.ones(2, 3)).expand(2, 3)
    for _ in range(5):
        critic(images.detach()).mean().backward()
        optimizers[1].step()
    critic(images).mean().backward()
    optimizers[0].step()
"""


TEACHER = """
teacher, student = Net(), Net()
for model in (teacher, student):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5 if model is teacher else 30):
        with torch.no_grad():
            wanted = teacher.eval()(torch.ones(2, 3)) if model is student else torch.ones(2, 3)
        optimizer.zero_grad()
        (model(torch.ones(2, 3)) - wanted).square().mean().backward()
        optimizer.step()
"""


def watched_models(tmp_path, script, run):
    (tmp_path / "train.py").write_text(SEVERAL + script)
    options = ["--out-dir", "run", "--collections", "weights,losses", "--save-interval", 1]
    output = watched(tmp_path / "train.py", *options, run=run)
    trial = smd.create_trial(str(tmp_path / "run"))
    return output, trial


def test_from_fold_to_fold_steps_continue_with_the_model_that_is_trained(tmp_path, in_fork):
    output, trial = watched_models(tmp_path, FOLDS, in_fork)
    assert output.split() == ["gone"] * 3
    assert len(trial.steps(smd.modes.TRAIN)) == 15
    assert len(trial.steps(smd.modes.EVAL)) == 3
    for fold, name in enumerate(["Net_fc.weight", "Net-2_fc.weight", "Net-3_fc.weight"]):
        assert trial.tensor(name).steps(smd.modes.TRAIN) == list(range(5 * fold, 5 * fold + 5))


def test_a_model_that_is_trained_after_another_takes_its_place(tmp_path, in_fork):
    _, trial = watched_models(tmp_path, ENSEMBLE, in_fork)
    first, second = trial.tensor("Net_fc.weight").steps(), trial.tensor("Net-2_fc.weight").steps()
    assert second == list(range(15, 21))  # nine of its turns were the first one's last step
    assert first == [*range(15), *range(21, 27)]


def test_a_student_takes_the_place_of_its_teacher_although_that_is_called_at_each_step(tmp_path, in_fork):
    _, trial = watched_models(tmp_path, TEACHER, in_fork)
    assert trial.tensor("Net_fc.weight").steps(smd.modes.TRAIN)[:5] == list(range(5))
    assert len(trial.tensor("Net-2_fc.weight").steps(smd.modes.TRAIN)) == 21  # after its first turns


def test_models_that_are_trained_against_each_other_share_steps(tmp_path, in_fork):
    _, trial = watched_models(tmp_path, ADVERSARIES, in_fork)
    assert trial.steps() == list(range(4))
    assert trial.tensor("Net_fc.weight").steps() == list(range(4))
    assert trial.tensor("Net-2_fc.weight").steps()[-1] == 3


def test_processes_that_a_script_spawns_find_it(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("""
import torch
from torch import nn
class Data(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return torch.full((2,), float(i))
if __name__ == "__main__":
    model = nn.Linear(2, 1)
    nn.init.ones_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for how in ("spawn", "fork"):
        for x in torch.utils.data.DataLoader(Data(), num_workers=1, multiprocessing_context=how):
            model(x).sum().backward()
            optimizer.step()
    print(model.weight.tolist())
""")
    watched(script, "--out-dir", "run", "--save-interval", 1)
    assert smd.create_trial(str(tmp_path / "run")).steps() == list(range(8))


def test_a_compiled_model_is_watched(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("""
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
for _ in range(4):
    optimizer.zero_grad()
    compiled(torch.randn(3, 2)).square().mean().backward()
    optimizer.step()
print(model.weight.tolist())
""")
    options = ["--out-dir", "run", "--collections", "gradients", "--save-interval", 2]
    watched(script, *options)
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.tensor("gradient/Linear_weight").steps(smd.modes.TRAIN) == [0, 2]


@pytest.mark.parametrize("how", ["", ", fullgraph=True"])
def test_a_model_that_is_compiled_in_place_is_watched(tmp_path, how, in_fork):
    script = tmp_path / "train.py"
    script.write_text(
        SEVERAL
        + f"""
from torch._dynamo.utils import counters
torch.manual_seed(0)
model = Net()
model.compile(backend="aot_eager"{how})
train(model, 6)
print([p.tolist() for p in model.parameters()], counters["stats"]["unique_graphs"])
"""
    )
    options = ["--out-dir", "run", "--collections", "weights,gradients,losses"]
    watched(script, *options, "--save-interval", 2, run=in_fork)
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.tensor("gradient/Net_fc.weight").steps(smd.modes.TRAIN) == [0, 2, 4]
    assert trial.tensor("loss_output_0").steps() == [0, 2, 4]


def test_losses_that_backward_is_called_on_are_saved_however_it_is_called(tmp_path, in_fork):
    calls = """
def at_once(a, b):
    torch.autograd.backward([a, b])


def in_turn(a, b):
    a.backward(retain_graph=True)
    b.backward()


for backward in (at_once, in_turn):
    outputs = model(torch.ones(2, 3))
    backward(outputs.mean(), outputs.square().sum())
    optimizer.step()
    torch.autograd.backward((loss for loss in [model(torch.ones(2, 3)).sum()]))
    optimizer.step()
if hasattr(torch.autograd.graph, "GradientEdge"):  # a tuple, and one thing
    torch.autograd.backward(torch.autograd.graph.get_gradient_edge(model(torch.ones(1, 3)).sum()))
scripted = torch.jit.script(Net())
train(scripted, 2)
"""
    made = "model = Net()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    _, trial = watched_models(tmp_path, made + calls, in_fork)
    assert trial.tensor("loss_output_0").steps()[:4] == [0, 1, 2, 3]
    assert trial.tensor("loss_output_1").steps()[:2] == [0, 2]


def test_what_is_configured_wrongly_is_reported_before_the_script_runs(script):
    script.write_text("print('ran')")
    config = script.parent / "config.json"
    config.write_text('{"LocalPath": "x", "HookParameters": {"save_all": "perhaps"}}')
    done = python("-m", "smdebug.run", "--config", config, script, cwd=script.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert "save_all" in done.stderr
    done = python("-m", "smdebug.run", "none.py", cwd=script.parent)
    assert "none.py cannot be read" in done.stderr


def test_the_command_runs_the_example(tmp_path):
    script = ROOT / "examples" / "frameworks" / "unchanged.py"
    options = ["--out-dir", tmp_path / "run", "--collections", "weights", "--save-interval", 10]
    done = python("-m", "smdebug", "run", *options, script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == python(script, cwd=tmp_path).stdout
    assert len(smd.create_trial(str(tmp_path / "run")).steps()) == 5
