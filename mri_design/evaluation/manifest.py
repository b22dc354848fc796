"""The manifest of a run: command, versions, seed, inputs, settings, status, lines."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path, PurePath, PureWindowsPath

import numpy as np

from mri_design.experiment.inputs import names_file
from mri_design.experiment.strategies import reads_file, strategy_label
from mri_design.scan.io.safe import check_file

_PACKAGES = (
    "mri-design",
    "numpy",
    "scipy",
    "pyfftw",
    "PyWavelets",
    "scikit-image",
    "matplotlib",
    "h5py",
    "ismrmrd",
    "sigpy",
    "jinja2",
    "typer",
)
PERSONAL = ("source_image", "source_images")
"""Settings that name a patient."""
_ABSOLUTE = re.compile(r"(?:^|[=:,])(?:/|~|[A-Za-z]:[\\/]|\\\\)")
"""Somewhere in an argument an absolute path begins."""


@dataclass(frozen=True)
class InputFile:
    """An input named by what it is, not by where it lay.

    Parameters
    ----------
    name : str
        File name without folders.
    sha256 : str
        Checksum of the bytes, hexadecimal.
    """

    name: str
    sha256: str

    @classmethod
    def of(cls, path: str | Path) -> InputFile:
        """Read the file once and keep its name and checksum.

        Raises
        ------
        InputError
            Where the file cannot be read.
        """
        check_file(Path(path))
        with open(path, "rb") as source:
            return cls(Path(path).name, hashlib.file_digest(source, "sha256").hexdigest())

    @classmethod
    def of_all(cls, sources: Sequence[str]) -> list[InputFile]:
        """The files among ``sources``; embedded phantoms (``phantom:NAME``) and scans of arrays are none.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        return [cls.of(source) for source in sources if names_file(source)]


def installed_versions(packages: Sequence[str] = _PACKAGES) -> dict[str, str]:
    """Version of Python and of each package, "not installed" where it is absent."""
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def manifest_text(
    command: Sequence[str], wall_seconds: float, versions: Mapping[str, str] | None = None, **known: object
) -> str:
    """The manifest as JSON with sorted keys, so that two runs can be compared as text.

    No folder of the machine is kept: a path in ``command`` or ``settings`` is cut to its last name.

    Parameters
    ----------
    command : sequence of str
        The arguments as typed, without the interpreter.
    wall_seconds : float
        Duration of the run.
    versions : mapping of str to str, optional
        Package versions; those installed here by default.
    **known
        Everything else that is needed to repeat it and to tell whether another run is the same: ``seed``, None where
        nothing was random; ``inputs``, see `InputFile`; ``settings``, every one that was in force, defaults included;
        ``status``, how the computation ended, in words (`mri_design.status.Status` values); ``lines``, those chosen
        (index into ky) in acquisition order.

    Notes
    -----
    Arrays become lists, numbers that JSON lacks ("nan", "inf") become text, absolute paths lose their
    folders.
    """
    known |= {"command": [_without_folders(argument) for argument in command], "wall_seconds": round(wall_seconds, 3)}
    known["versions"] = installed_versions() if versions is None else versions
    return json.dumps(_portable(known), indent=2, sort_keys=True, allow_nan=False) + "\n"


def command_line(command: Sequence[str]) -> str:
    """The command as it was typed, for a shell; absolute paths lose their folders. Empty for calls from Python."""
    typed = [_without_folders(argument) if _ABSOLUTE.search(argument) else argument for argument in command]
    return shlex.join(["mri-design", *typed]) if typed else ""


def _without_folders(argument: str) -> str:
    """``--out=a/b/c`` to ``--out=c``; a slash that is no path loses its left side too, to be safe."""
    flag, equals, value = argument.partition("=") if argument.startswith("-") else ("", "", argument)
    names = value.split(",")
    if any(reads_file(name) for name in names):
        return flag + equals + ",".join(strategy_label(name) for name in names)
    return flag + equals + (PureWindowsPath(value).name or value if "/" in value or "\\" in value else value)


def _portable(value: object) -> object:
    """The value in what JSON knows, without machine paths."""
    match value:
        case str():
            machine = value.startswith(("/", "~/")) or PureWindowsPath(value).is_absolute()
            return PureWindowsPath(value).name if machine else value
        case PurePath():
            return value.name
        case float():
            return value if math.isfinite(value) else str(value)
        case np.ndarray() | np.generic():
            return _portable(value.tolist())
        case Mapping():
            return {str(key): _portable(entry) for key, entry in value.items()}
        case Enum():
            return _portable(value.value)
        case list() | tuple():
            return [_portable(entry) for entry in value]
    if dataclasses.is_dataclass(value):
        return {entry.name: _portable(getattr(value, entry.name)) for entry in dataclasses.fields(value)}
    return value
