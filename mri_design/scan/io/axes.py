"""Stored axes become (slice, coil, ky, kx): which axis is the phase encode, and what may be missing.

A volume (coil, ky, kz, kx) becomes one plane (ky, kz) for every readout position, in the place of slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import Orientation

# In the k0/k1/k2 naming k0 is the readout, k1 the phase encode and k2 the second one, of a volume.
_ROLES = {"rep": "rep", "slice": "slice", "coil": "coil", "k0": "kx", "k1": "ky", "kx": "kx", "ky": "ky"}
_ROLES |= {"k2": "kz", "kz": "kz"}
_BARE = {2: ("ky", "kx"), 3: ("coil", "ky", "kx"), 4: ("slice", "coil", "ky", "kx")}
_ORDER = ("slice", "coil", "ky", "kx")
_VOLUME_ORDER = ("kx", "coil", "ky", "kz")


@dataclass(frozen=True)
class KSpaceAxes:
    """The role of every stored axis: "rep", "slice", "coil", "ky", "kx" or, in volumes, "kz".

    Parameters
    ----------
    roles : tuple of str
        One role per stored axis; "ky" and "kx" are always among them.
    """

    roles: tuple[str, ...]

    @property
    def volume(self) -> bool:
        """Whether there are two phase encodes."""
        return "kz" in self.roles

    @property
    def orientation(self) -> Orientation:
        """Whether the phase encode runs along the stored image's rows' index or columns' index."""
        across = "kz" if self.volume else "kx"
        return "ky-rows" if self.roles.index("ky") < self.roles.index(across) else "ky-columns"

    def arrange(self, field: str, array: NDArray[Any], *, without: str = "") -> NDArray[Any]:
        """View of a stored array as (slice, coil, ky, kx), first repetition only; volumes as (kx, coil, ky, kz).

        Parameters
        ----------
        field : str
            Name of the array, for the message.
        array : stored array
            Its axes are ``roles``, minus ``without``.
        without : str
            A role that this array lacks ("coil" for a coil-combined image); it is left out of the result.

        Raises
        ------
        InputError
            On a number of axes other than that of the roles.
        """
        roles = [role for role in self.roles if role != without]
        if array.ndim != len(roles):
            raise InputError(field=field, got=f"shape {array.shape}", wanted=f"axes ({', '.join(roles)})")
        if "rep" in roles:
            array = array.take(0, axis=roles.index("rep"))
            roles.remove("rep")
        order = _VOLUME_ORDER if self.volume else _ORDER
        for missing in [role for role in ("coil", "slice") if role in order and role not in roles and role != without]:
            array = array[np.newaxis]
            roles.insert(0, missing)
        return array.transpose([roles.index(role) for role in order if role != without])


def kspace_axes(n_axes: int, dims: tuple[str, ...] | None, phase_encode_axis: int | str | None = None) -> KSpaceAxes:
    """The role of each axis of a stored k-space array.

    Parameters
    ----------
    n_axes : int
        Number of stored axes.
    dims : tuple of str, optional
        Their names. Without names two to four axes are (ky, kx), (coil, ky, kx) or (slice, coil, ky, kx).
    phase_encode_axis : int or str, optional
        Position (negative from the end) or name of the phase-encode axis, where it is not the usual one.

    Raises
    ------
    InputError
        On names that are unknown, repeated or too few, and on a phase encode that is not a k-space axis.
    """
    if dims is None and n_axes not in _BARE:
        raise InputError(
            field="dims", got=f"{n_axes} unnamed axes", wanted="2 to 4", cure="Name the axes in a card: dims."
        )
    names = _BARE[n_axes] if dims is None else dims
    roles = [_ROLES.get(name, "") for name in names]
    if len(names) != n_axes or len(set(roles)) != n_axes or not {"ky", "kx"} <= set(roles) or "" in roles:
        raise InputError(
            field="dims",
            got=f"{list(names)} for {n_axes} axes",
            wanted="one name per axis out of rep, slice, coil, k0 (readout), k1 (phase encode), kx, ky; of a volume "
            "also k2 or kz",
        )
    if "kz" in roles and ({"rep", "slice"} & set(roles) or phase_encode_axis is not None):
        raise InputError(
            field="dims",
            got=f"{list(names)}" if phase_encode_axis is None else f"{list(names)} and a phase_encode_axis",
            wanted="a volume's axes alone: coil, ky, kz and kx in any order",
            cure="Give one repetition of one volume, and name its readout k0 or kx.",
        )
    if phase_encode_axis is not None:
        _swap_phase_encode(roles, names, phase_encode_axis, named=dims is not None)
    return KSpaceAxes(tuple(roles))


def _swap_phase_encode(roles: list[str], names: tuple[str, ...], axis: int | str, *, named: bool) -> None:
    position = axis if isinstance(axis, int) else (names.index(axis) if axis in names else len(names))
    if not -len(roles) <= position < len(roles) or roles[position] not in ("ky", "kx"):
        raise InputError(
            field="phase_encode_axis",
            got=repr(axis)[:40],
            wanted=f"one of the two k-space axes of {list(names)}",
        )
    if roles[position] == "kx":
        if named and names[position] == "kx":
            raise InputError(
                field="phase_encode_axis",
                got="kx, by its name the readout",
                wanted="ky, or k0 and k1 in dims",
            )
        roles[roles.index("ky")] = "kx"
        roles[position] = "ky"
