"""Parts by name: blocks, sites and readers of this package, of scripts, and of other installed packages.

Recipes are checked and names are listed before anything is computed, so a table holds the place of a part (`Shipped`)
and loads it at its first use. Scripts add parts by `register_block`, `register_site` and their like; an installed
package declares entry points, which `installed_parts` reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from mri_design.errors import InputError, described, say_once

ALIASES: Mapping[str, tuple[str, ...]] = {
    "vd": ("vd-polynomial",),
    "poisson": ("poisson-disc",),
    "equispaced": ("fastmri-equispaced",),
    "info": ("information-gain",),
    "tv": ("total-variation", "differences"),
    "l1": ("l1-wavelet", "wavelet", "laplace"),
    "cs": ("map",),
    "sense": ("least-squares",),
    "t2*": ("t2-star",),
    "t1": ("t1-inversion",),
    "dixon": ("water-fat",),
}
"""Names that people know, and what strategies, methods and parts of priors they mean are called here."""


def split_name(name: str) -> tuple[str, str | None]:
    """Family and setting of a name: ``vd:3 draw=golden`` is ``vd`` and ``3 draw=golden``; None without a setting."""
    family, mark, setting = re.fullmatch(r"([^: ]*)([: ]?)(.*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    return family, setting.strip() if mark else None


def full_name(name: str, known: Collection[str]) -> str:
    """The name of a part by which it is ``known``, if ``name`` is an alias of it; any other name unchanged.

    A setting behind the family stays: ``vd:3`` is ``vd-polynomial:3``. A name that is neither makes `installed_parts`
    look for parts of other packages, which may add it to the table.
    """
    family, _ = split_name(name)
    if family in known:
        return name
    meant = [one for one in ALIASES.get(family, ()) if one in known]
    if not meant:
        installed_parts()
    return f"{meant[0] if meant else family}{name.removeprefix(family)}"


@dataclass(frozen=True)
class Shipped:
    """A class or function of this package, loaded when it is called; an `ImportError` names one that is not there.

    Parameters
    ----------
    module, name : str
        Module, relative to the package, and name in it.
    fields : mapping
        Keywords that it is called with besides the arguments.
    """

    module: str
    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, *arguments: Any, **fields: Any) -> Any:
        """Load the class or function and call it."""
        try:
            part = getattr(import_module(f"mri_design.{self.module}"), self.name)
        except (ModuleNotFoundError, AttributeError) as error:
            entry = f"{self.module}.{self.name}, of a table of parts (registry, kinds, strategies.toml)"
            raise ImportError(f"{entry}, cannot be loaded: {error}") from error
        return part(*arguments, **self.fields, **fields)


def require_part(
    kind: str, name: str, make: object, makes: str = "a function or a class that makes it", *, known: object = None
) -> None:
    """Refuse a part that cannot be registered: not callable, a name that shells would split, a name of this package.

    Parameters
    ----------
    kind : str
        What is registered, for messages.
    name : str
        Lower-case letters, digits and hyphens.
    make : callable
        A class, or a function that makes the part.
    makes : str
        What ``make`` has to be, for messages.
    known : object, optional
        What has the name now. A part of a script may be registered again; one of this package is not replaced.

    Raises
    ------
    InputError
        Naming the kind.
    """
    if not isinstance(name, str):
        raise InputError(kind, described(name), "its name, a text")
    if not callable(make):
        raise InputError(f"{kind} {name}", described(make), makes)
    if name != name.lower() or not all(part.isalnum() for part in name.split("-")):
        raise InputError(kind, repr(name), "lower-case letters, digits and hyphens")
    if isinstance(known, Shipped):
        raise InputError(kind, repr(name), "a name that no part of mri_design has", "Choose another name.")


BlockMaker = Callable[..., Any]
"""(`SparsityBlock`, `ImageFacts`) -> `Coefficients`, or their operator alone."""
SiteMaker = Callable[..., Any]
"""Rates tau, per standard deviation of the noise, one for all coefficients or one for each -> `Site`."""

BLOCKS: dict[str, BlockMaker] = {}
"""Kinds of coefficients, by the name that `SparsityBlock.kind` and recipes give."""
SITES: dict[str, SiteMaker] = {}
"""Kinds of sites, by the name that `SparsityBlock.site` and recipes give."""


def register_block(kind: str, make: BlockMaker) -> None:
    """Make a kind of coefficients known by a name, for `SparsityBlock` and ``[[prior]]`` of recipes.

    Parameters
    ----------
    kind : str
        Letters, digits and hyphens.
    make : callable
        (`SparsityBlock`, `ImageFacts`) -> `Coefficients`, or the operator alone where that is all.

    Raises
    ------
    InputError
        For another name, one of this package's own, and something that cannot be called.
    """
    require_part("block kind", kind, make, known=BLOCKS.get(kind))
    BLOCKS[kind] = make


def register_site(name: str, make: SiteMaker) -> None:
    """Make a kind of sites known by a name, for `SparsityBlock` and ``[[prior]]`` of recipes.

    Parameters
    ----------
    name : str
        Letters, digits and hyphens.
    make : callable
        Rates tau, per standard deviation of the noise, one for all coefficients or one for each -> `Site`.

    Raises
    ------
    InputError
        For another name, one of this package's own, and something that cannot be called.
    """
    require_part("site", name, make, known=SITES.get(name))
    SITES[name] = make


register_block("pixels", Shipped("model.sparsity", "pixels"))
register_block("differences", Shipped("model.sparsity", "differences"))
register_block("wavelet", Shipped("model.sparsity", "wavelet"))
register_block("non-local", Shipped("model.sparsity", "non_local"))
register_block("companion", Shipped("model.sparsity", "companion"))
register_block("repeat", Shipped("model.sparsity", "repeat"))
register_site("laplace", Shipped("sites.priors", "Laplace"))
register_site("student-t", Shipped("model.sparsity", "student_t"))
register_site("sech2", Shipped("sites.priors", "Sech2"))

SIGNAL_MODELS: dict[str, Callable[..., Any]] = {}
"""What makes a `SignalModel`, of nothing or of the number behind a colon, by the name that ``--fit`` gives."""


def register_signal_model(name: str, make: Callable[..., Any]) -> None:
    """Make a signal model known by a name, for ``--fit`` of ``mri-design measure`` and `ScanImage.fit`.

    Raises
    ------
    InputError
        For another name, one of this package's own, and something that cannot be called.
    """
    require_part("signal model", name, make, known=SIGNAL_MODELS.get(name))
    SIGNAL_MODELS[name] = make


for _name in ("t2", "t2-star", "t1-inversion", "t1-flip", "adc", "water-fat"):
    register_signal_model(_name, Shipped("signals.models", _name.replace("-", "_")))


@dataclass(frozen=True)
class Reader:
    """How files of one format are recognised and opened.

    Parameters
    ----------
    says : str
        The format, for people: help and refusals of other files list it.
    recognises : function
        Whether a file, which exists and is not empty, is of this format: of its path.
    opens : function
        Opens a path by `ReadOptions`: a `Source`, a context manager of one (a file that stays open while samples are
        read), or at once what the file holds.
    series : bool
        Whether files may hold repeated lines and several series, of which `ReadOptions` choose.
    arrays : bool
        Whether files hold arrays whose axes `ReadOptions` may name.
    library : str
        Module that parses such files, which runs in a child process because damaged files may crash or stall it; empty
        for formats that this package parses itself.
    """

    says: str
    recognises: Callable[[Path], bool]
    opens: Callable[..., Any]
    _: KW_ONLY
    series: bool = False
    arrays: bool = False
    library: str = ""


def _reader(says: str, module: str, **what: Any) -> Reader:
    """The reader in a module of scan/io, by its ``recognises`` and ``opened``, which is loaded for the first file."""
    recognises, opens = (Shipped(f"scan.io.{module}", name) for name in ("recognises", "opened"))
    return Reader(says, recognises, opens, **what)


READERS: list[Reader] = [
    _reader("NumPy .npy or .npz", "numpy_files", series=True, arrays=True),
    _reader("DICOM images", "dicom", library="pydicom"),
    _reader("NIfTI images", "nifti", library="nibabel"),
    _reader("fastMRI, MATLAB (v7.3) or other HDF5 (kspace)", "hdf5", series=True, arrays=True, library="h5py"),
    _reader("ISMRMRD HDF5 (dataset/xml, dataset/data)", "ismrmrd", series=True, library="h5py"),
    _reader("MRD, version 2 (a binary stream)", "mrd_v2", series=True, library="mrd"),
    _reader("Siemens raw data (twix .dat)", "twix", series=True, library="twixtools.mdh_def"),
]
"""Formats that are read, a module of scan/io and a line each, in the order in which they are tried on a file."""
BART = _reader("BART .cfl with its .hdr", "bart", series=True, arrays=True)
"""Recognised by names, because only one file of a pair need be named."""
INSTALLED: list[Reader] = []
"""Readers of other packages, which `installed_parts` finds."""


def _add_reader(_: str, reader: Any) -> None:
    if not isinstance(reader, Reader):
        raise InputError("reader", described(reader), "a mri_design.formats.Reader")
    INSTALLED.append(reader)


@cache
def installed_parts() -> None:
    """Register the parts of other packages once: entry points of the groups that follow.

    =========================  =========================================================================================
    ``mri_design.sites``       by its name, a function as of `register_site`
    ``mri_design.strategies``  by its name, a strategy's class as of `register_strategy`; its attribute ``encodings``
                               says what it chooses, lines if it has none
    ``mri_design.readers``     a `Reader`, which is tried after those of this package
    =========================  =========================================================================================

    It is called when a name, or the format of a file, is unknown. A part that cannot be loaded is named on stderr.
    """
    strategy = Shipped("experiment.strategies", "register_strategy")
    adds: dict[str, Callable[[str, Any], object]] = {
        "sites": register_site,
        "strategies": lambda name, made: strategy(name, made, getattr(made, "encodings", ("lines",))),
        "readers": _add_reader,
    }
    for group, add in adds.items():
        for entry in entry_points(group=f"mri_design.{group}"):
            try:
                add(entry.name, entry.load())
            except Exception as error:  # whatever another package raises
                say_once(f"{entry.value}, an entry point of mri_design.{group}, is left out: {error}")
