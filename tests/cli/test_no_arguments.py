"""The command without a subcommand."""

from tests.cli.processes import in_a_shell


def test_without_arguments_it_prints_its_help_line_by_line():
    done = in_a_shell()
    printed = done.stdout + done.stderr
    assert done.returncode == 2
    assert printed.startswith("Usage: smdebug")
    assert "  inspect " in printed
    assert len(printed.splitlines()) > 20
