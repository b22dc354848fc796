"""Coil maps that the user gives: those of a file, or those of another scan that was measured with the same coils."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class MapsOfScan:
    """A scan, such as a prescan or an earlier one, whose coil maps another scan uses.

    Parameters
    ----------
    path : Path
        Its file, with the same coils in the same order.
    """

    path: Path

    @property
    def name(self) -> str:
        """The file without its folders."""
        return self.path.name

    def __str__(self) -> str:
        return str(self.path)


GivenMaps = Path | MapsOfScan


def maps_origin(maps: GivenMaps) -> str:
    """What maps are, in front of the name of their file: ``maps``, or ``maps of`` a scan."""
    return "maps of" if isinstance(maps, MapsOfScan) else "maps"
