"""The application that the wheel brings: laid out once, and refused without its packages."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import pytest

import smdebug
from smdebug.cli.this_machine import shipped

ROOT = Path(__file__).parents[3]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder like site-packages after the wheel was installed."""
    site = tmp_path / "site-packages"
    for name in (*shipped._OF_LAYER, *shipped._OF_RULES):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text("# installed")
    app = site / "smdebug" / "app"
    (app / "local_aws").mkdir(parents=True)
    (app / "local_aws" / "__init__.py").write_text("")
    shutil.copy(ROOT / "cdk.json", app / "cdk.json")
    monkeypatch.setattr(smdebug, "__file__", str(site / "smdebug" / "__init__.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return site


def test_it_is_laid_out_as_a_checkout_once(installed):
    place = shipped.shipped_checkout()
    assert (place / "local_aws" / "__init__.py").is_file()
    assert (place / "layers/smdebug_core/python/smdebug/__init__.py").read_text() == "# installed"
    assert (place / "rules/smdebug_rules/__init__.py").is_file()
    assert not (place / "layers/smdebug_core/python/smdebug/app").exists()
    (place / "mark").touch()
    assert shipped.shipped_checkout() == place
    assert (place / "mark").exists()
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_another_version_is_laid_out_again(installed, monkeypatch):
    before = shipped.shipped_checkout()
    monkeypatch.setattr(smdebug, "__version__", "9.9")
    assert shipped.shipped_checkout() != before


def test_missing_packages_are_named_with_the_extra(installed, monkeypatch):
    monkeypatch.setattr(shipped, "_NEEDED", ("click", "not_there", "nor_this"))
    with pytest.raises(
        click.UsageError, match=r"not_there, nor_this are not installed: pip install .*\[local\]'"
    ):
        shipped.shipped_checkout()


def test_a_cache_that_cannot_be_written_is_named(installed, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(click.UsageError, match="XDG_CACHE_HOME"):
        shipped.shipped_checkout()


def test_without_the_application_there_is_none(installed):
    shutil.rmtree(installed / "smdebug" / "app")
    assert shipped.shipped_checkout() is None
