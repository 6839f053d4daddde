"""Folders that are filled at synthesis and uploaded at deployment."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_

ROOT = Path(__file__).parents[2]
_NOT_SHIPPED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def bundle(source: Path, fill: Callable[[Path], None], fingerprint: str) -> lambda_.Code:
    """Return the folder that `fill` fills, as the code of a function or layer, without Docker.

    An existing asset with this fingerprint is reused. If bundling is disabled (`aws:cdk:bundling-stacks`),
    the asset is `source` itself.
    """
    return lambda_.Code.from_asset(
        str(source),
        asset_hash=fingerprint,
        asset_hash_type=cdk.AssetHashType.CUSTOM,
        bundling=cdk.BundlingOptions(
            image=cdk.DockerImage.from_registry("never-pulled"),  # required, never used
            local=_Filled(fill),
        ),
    )


def copied(*folders: Path) -> Callable[[Path], None]:
    """Return a function that fills a folder with copies of these, without bytecode."""

    def fill(target: Path) -> None:
        for folder in folders:
            shutil.copytree(folder, target / folder.name, ignore=_NOT_SHIPPED)

    return fill


@jsii.implements(cdk.ILocalBundling)
class _Filled:
    def __init__(self, fill: Callable[[Path], None]) -> None:
        self._fill = fill

    def try_bundle(self, output_dir: str, options: Any = None, **_: Any) -> bool:
        self._fill(Path(output_dir))
        return True
