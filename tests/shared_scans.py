"""Scans that are not part of the repository: tests of them are skipped where the folder that holds them is absent."""

from pathlib import Path

import pytest


def shared_scan(name: str) -> Path:
    """A file of the folder ``shared/data`` beside the checkout, or beside a folder that it is in."""
    for above in Path(__file__).parents[1].parents:
        if (above / "shared/data" / name).is_file():
            return above / "shared/data" / name
    pytest.skip(f"no {name} in a folder shared/data beside the checkout")
