"""The shipped phantoms: where their files lie, and readers by name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mri_design.errors import InputError
from mri_design.scan.data import ImageStack
from mri_design.scan.simulation.ellipse_table import read_ellipse_table, read_ellipsoid_table, read_json_object
from mri_design.scan.simulation.ellipses import EllipsePhantom
from mri_design.scan.simulation.ellipsoids import EllipsoidPhantom

PhantomKind = Literal["ellipses", "ellipsoids", "images", "kspace"]
"""A table of ellipses or of ellipsoids, a magnitude slice from which k-space is simulated, or raw measured k-space."""


@dataclass(frozen=True)
class _Entry:
    file: str
    card: str
    kind: PhantomKind


_ENTRIES = {
    "shepp-logan": _Entry("shepp_logan.json", "shepp_logan.card.json", "ellipses"),
    "brain": _Entry("brain.json", "brain.card.json", "ellipses"),
    "head-3d": _Entry("head_3d.json", "head_3d.card.json", "ellipsoids"),
    "t2w": _Entry("t2w_6A_slice.npz", "t2w_6A_slice.json", "images"),
    "t1w": _Entry("t1w_7A_slice.npz", "t1w_7A_slice.json", "images"),
    "lf-gre": _Entry("lf_6A_gre_slice.npy", "lf_6A_gre_slice.json", "kspace"),
}


def phantom_names() -> tuple[str, ...]:
    """Names of the shipped phantoms."""
    return tuple(_ENTRIES)


def phantom_kind(name: str) -> PhantomKind:
    """What a shipped phantom is: "ellipses", "ellipsoids", "images" or "kspace".

    Raises
    ------
    InputError
        On an unknown name.
    """
    return _entry(name).kind


def phantoms_folder() -> Path:
    """The folder of the shipped phantoms, in a checkout or in an installed package.

    Raises
    ------
    InputError
        Where neither place has it: the installation is incomplete.
    """
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "phantoms", package.parent / "phantoms"):
        if (folder / _ENTRIES["shepp-logan"].file).is_file():
            return folder
    raise InputError(
        field="phantoms",
        got="no folder with phantoms beside or inside the package",
        wanted="the data files that belong to it",
        cure="Install mri-design again.",
    )


def phantom_path(name: str) -> Path:
    """Path of a shipped phantom's data file; the raw scan "lf-gre" is read with the package's file readers.

    Raises
    ------
    InputError
        On an unknown name or an incomplete installation.
    """
    return phantoms_folder() / _entry(name).file


def phantom_card(name: str) -> dict[str, Any]:
    """The phantom's card: source, licence, checksum (``sha256``), caveats.

    Raises
    ------
    InputError
        On an unknown name or an incomplete installation.
    """
    return read_json_object(phantoms_folder() / _entry(name).card)


def read_shipped_ellipses(name: str) -> EllipsePhantom:
    """A shipped ellipse scene, by name.

    Raises
    ------
    InputError
        On an unknown name, a name that is no ellipse scene, or a file that does not match its card.
    """
    return read_ellipse_table(_checked_file(name, "ellipses"), name=name)


def read_shipped_ellipsoids(name: str) -> EllipsoidPhantom:
    """A shipped scene of ellipsoids, by name.

    Raises
    ------
    InputError
        As `read_shipped_ellipses`.
    """
    return read_ellipsoid_table(_checked_file(name, "ellipsoids"), name=name)


def read_shipped_images(name: str) -> ImageStack:
    """A shipped magnitude slice, by name, with the text of its card.

    Raises
    ------
    InputError
        On an unknown name, a name that is no image, or a file that does not match its card.
    """
    path = _checked_file(name, "images")
    card = phantom_card(name)
    with np.load(path, allow_pickle=False) as archive:
        images = archive[card["key"]].astype(np.float32)
    return ImageStack(images=images, name=name, card=text_of_card(card))


def text_of_card(card: dict[str, Any]) -> dict[str, str]:
    """The entries of a card that people read, as text."""
    wanted = ("title", "anatomy", "subject", "sequence", "licence", "citation", "caveat")
    return {key: str(card[key]) for key in wanted if key in card}


def _entry(name: str) -> _Entry:
    if not isinstance(name, str) or name not in _ENTRIES:
        raise InputError(field="phantom", got=repr(name), wanted="one of " + ", ".join(_ENTRIES))
    return _ENTRIES[name]


def _checked_file(name: str, kind: PhantomKind) -> Path:
    """Path of the data file after its kind and its checksum were compared with the card."""
    if phantom_kind(name) != kind:
        fitting = [n for n, entry in _ENTRIES.items() if entry.kind == kind]
        raise InputError(field="phantom", got=f"{name} ({phantom_kind(name)})", wanted="one of " + ", ".join(fitting))
    path = phantom_path(name)
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksum != phantom_card(name).get("sha256"):
        raise InputError(
            field=path.name,
            got=f"checksum {checksum[:12]}...",
            wanted="the checksum on its card",
            cure="The file was changed or damaged; install mri-design again.",
        )
    return path
