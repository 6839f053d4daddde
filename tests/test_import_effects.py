"""Importing the library loads little and touches nothing."""

import subprocess
import sys


def test_asking_for_the_service_loads_neither_numpy_nor_boto3():
    script = (
        "import sys, smdebug.service.records, smdebug.service.step_index.items\n"
        "assert 'smdebug.service.client' not in sys.modules\n"
        "from smdebug.service import connect, WatchedRun\n"
        "print(sorted({'numpy', 'boto3', 'botocore', 'smdebug.trials'} & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_importing_the_library_touches_nothing_outside():
    script = (
        "import sys\n"
        "events = []\n"
        "watched = ('socket.connect', 'socket.bind', 'subprocess.', 'os.mkdir', 'os.remove')\n"
        "def watch(name, args):\n"
        "    if name.startswith(watched): events.append((name, str(args[:1])))\n"
        "sys.addaudithook(watch)\n"
        "import smdebug, smdebug.trials, smdebug.rules, smdebug.core.utils\n"
        "print(events)"
    )
    output = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_the_level_that_a_program_gives_the_logger_holds(tmp_path):
    script = (
        "import logging, sys, smdebug\n"
        "logging.getLogger('smdebug').setLevel(logging.WARNING)\n"
        "with smdebug.Hook(sys.argv[1]) as hook:\n"
        "    with hook.step():\n"
        "        hook.record('loss', 1.0)\n"
    )
    words = [sys.executable, "-B", "-c", script, str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
