"""The meaning of the axes of an array: by their names, or else by the samples.

K-space gathers its energy in an eighth of each of its axes; coils and slices do not. Coils see one image through smooth
maps, so that some of them predict the others; slices of one coil do not. Parts of complex numbers are negative as often
as positive; pixels of an image are not. An array whose samples contradict the usual axes is refused, and the error asks
for their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.coils import BLOCK, central, error_of_held_coils, gapless_side
from mri_design.errors import InputError, option
from mri_design.operators.conventions import to_image
from mri_design.scan.data import Orientation
from mri_design.scan.io.source import COUNTERS
from mri_design.scan.sampling import refused_samples, require_finite

BARE = {2: ("ky", "kx"), 3: ("coil", "ky", "kx"), 4: ("slice", "coil", "ky", "kx")}
"""Usual axes of arrays without names."""
PAIR = "real/imag"
"""Name of an axis of length two with real and imaginary parts."""
IN_TURN, IN_HALVES = f"coil*{PAIR}", f"{PAIR}*coil"
"""Names of an axis of coils whose real and imaginary parts alternate, or whose real parts come before the imaginary."""
_GATHERED, _LEAST_SIDE = 0.6, 16
"""Least share of the energy in an eighth of an axis of k-space, and the shortest axis that is judged by it."""
_NO_COILS, _NO_COILS_OF_MORE = {2: 0.7, 3: 0.25}, 0.15
_COILS, _SURELY_COILS = 0.25, 0.1
"""Relative errors with which coils predict each other: without noise, above which two, three or more are no coils; with
noise, below which they may be coils or surely are. In the scans tried coils had 0 to .17 (two) or .05 (more), slices of
one coil .16 to .86."""
_ONE_IMAGE = 0.08
"""Second over first singular value, below which entries are one image: repeats of scans had .02 to .1, two coils at
least .15, more coils .4."""
_CLEARLY = 2
"""Factor by which one reading of an array has to predict coils better than the others."""
_TENTH = 0.105
"""A tenth of the energies of noise lies below this multiple of their mean."""
_NOISY, _LEAST_CENTRE = 0.02, 8
"""Largest share of noise in the energy of the centre, and fewest gapless lines there, for a judgement of coils."""


def looks_signed(stored: NDArray[Any]) -> bool:
    """Whether real numbers are negative about as often as positive, as the parts of k-space are."""
    if stored.dtype.kind not in "if" or not (held := np.count_nonzero(stored)):
        return False
    return bool(0.3 < np.count_nonzero(stored < 0) / held < 0.7)


def joined(
    field: str, stored: NDArray[Any], dims: tuple[str, ...] | None
) -> tuple[NDArray[Any], tuple[str, ...] | None, tuple[str, int] | tuple[()]]:
    """Join real and imaginary parts to complex numbers; complex numbers and images stay as they are.

    Parameters
    ----------
    field : str
        Name of the array, for messages.
    stored : array
        As stored.
    dims : tuple of str, optional
        Names of its axes; `PAIR`, `IN_TURN` or `IN_HALVES` has the parts.

    Returns
    -------
    array, dims, parts
        The numbers, the names of their axes, and how and along which axis parts were found without a name.

    Raises
    ------
    InputError
        For parts along an axis that cannot have them, and for parts that the samples do not show how to join.
    """
    if dims is not None:
        way = next((name for name in dims if PAIR in name), None)
        if way is None or len(dims) != stored.ndim:
            return stored, dims, ()
        if way not in (PAIR, IN_TURN, IN_HALVES) or stored.dtype.kind not in "iuf":
            wanted = f"{PAIR}, {IN_TURN} (in turn) or {IN_HALVES} (in halves), of an array of real numbers"
            raise InputError("dims", f"{way} of {stored.dtype}", wanted, "Leave it out of complex numbers.")
        rest = ["coil" if name in (IN_TURN, IN_HALVES) else name for name in dims if name != PAIR]
        return _paired(field, stored, dims.index(way), way), tuple(rest), ()
    if not looks_signed(stored) or (stored.ndim < 3 and len(gathering(stored)) < 2):
        return stored, None, ()
    require_finite(field, stored)
    for axis in sorted(range(stored.ndim), key=lambda axis: axis != stored.ndim - 1):
        if stored.shape[axis] == 2 and len(gathering(pair := _paired(field, stored, axis, PAIR))) >= 2:
            return pair, None, ("", axis)
    along = gathering(stored)
    found = []
    for axis in range(stored.ndim):
        if len(along) == 2 and axis not in along and stored.shape[axis] % 2 == 0:
            for way in (IN_TURN, IN_HALVES):
                found.append((_misfit(_paired(field, stored, axis, way), axis, along), way, axis))
    found.sort()
    if found and found[0][0] < _COILS and (len(found) == 1 or found[1][0] > _CLEARLY * found[0][0]):
        _, way, axis = found[0]
        return _paired(field, stored, axis, way), None, ("in turn " if way == IN_TURN else "in halves ", axis)
    if len(along) < 2 and stored.shape[-1] != 2:
        return stored, None, ()
    got = f"real numbers {stored.shape} that look like real and imaginary parts"
    cure = f"Name their axis: {option('dims', f'ky,kx,{PAIR}')}, {IN_TURN} (coil by coil) or {IN_HALVES}; or save "
    cure += "complex numbers: numpy.save('kspace.npy', parts[..., 0::2] + 1j * parts[..., 1::2])."
    raise InputError(f"{field}: dims", got, "k-space, or parts whose axis is named", cure)


def shown(
    field: str, array: NDArray[np.complexfloating[Any, Any]], usual: Sequence[str], *, reverse: bool = False
) -> tuple[str, ...]:
    """Names of the axes of k-space without names, as the samples show them.

    Parameters
    ----------
    field : str
        Name of the array, for messages.
    array : complex array of two to four axes
        K-space; one of several slices is enough.
    usual : sequence of str
        Names of the axes unless the samples contradict them.
    reverse : bool
        Whether the user has the axes in reversed order, as in MATLAB.

    Raises
    ------
    InputError
        If the samples contradict the usual names without showing others.
    """
    if refused_samples(array):  # not finite: refused later
        return tuple(usual)
    along, unnamed = gathering(array), partial(_unnamed_axes, field, array.shape, reverse)
    if len(along) > 2:
        raise unnamed("of which three look like k-space: a volume, or frames", "coil,kz,ky,kx")
    if len(along) < 2:  # flat as noise: only the lengths can tell
        *others, last = array.shape
        if last < _LEAST_SIDE <= max(others[:-1], default=0):
            raise unnamed("of which the last is too short for samples of a readout", "ky,kx,coil")
        return tuple(usual)
    names, several = list(usual), [axis for axis in range(array.ndim) if axis not in along and array.shape[axis] > 1]
    as_usual = sorted(along) == sorted(map(usual.index, ("ky", "kx")))
    if not as_usual:
        single = [axis for axis in range(array.ndim) if axis not in (*along, *several)]
        for axis, name in zip([*along, *several, *single], ("ky", "kx", "coil", "slice"), strict=False):
            names[axis] = name
    coil = names.index("coil") if "coil" in names else None
    missed = 0.0 if coil is None else _are_none(array, coil, along)
    if len(several) == 2 and (not as_usual or missed):
        misfits = {axis: _misfit(array, axis, along) for axis in several}
        coil, other = sorted(several, key=misfits.__getitem__)
        if not (misfits[coil] < _COILS and misfits[other] > _CLEARLY * misfits[coil]):
            raise unnamed("of which two could be coils or slices", "coil,slice,ky,kx")
        names[coil], names[other] = "coil", "slice"
    elif coil in several and (missed or _proportional(array, coil, along)):
        doubt = f"predict each other with an error of {missed:.0%}, as slices of one coil do"
        if not missed:
            doubt = "see the same image, as repetitions and echoes do"
        likely = _exchanged(names) if missed else ",".join(names).replace("coil", "repetition")
        raise unnamed(f"of which {array.shape[coil]} would be coils, which {doubt}", likely)
    elif (
        coil not in several
        and several
        and array.shape[several[0]] > 2
        and min(array.shape[axis] for axis in along) >= BLOCK
        and _misfit(array, several[0], along) < _SURELY_COILS
        and not _proportional(array, several[0], along)
    ):
        would_be = f"of which {array.shape[several[0]]} would be slices, which predict each other as coils do"
        raise unnamed(would_be, _exchanged(names))
    ky, kx = names.index("ky"), names.index("kx")
    if _gaps(array, kx) > 1 >= _gaps(array, ky):  # undersampled along the other axis
        names[ky], names[kx] = "kx", "ky"
    return tuple(names)


def looks_like_coils(array: NDArray[Any], axis: int) -> bool:
    """Whether the entries along an axis predict each other as coils do, on the two axes that look like k-space."""
    along = gathering(array)
    return len(along) == 2 and axis not in along and _misfit(array, axis, along) < _SURELY_COILS


def _exchanged(names: Sequence[str]) -> str:
    """Names with coils and slices exchanged."""
    other = {"coil": "slice", "slice": "coil"}
    return ",".join(other.get(name, name) for name in names)


def _unnamed_axes(field: str, shape: tuple[int, ...], reverse: bool, doubt: str, likely: str) -> InputError:
    step = -1 if reverse else 1
    likely, usual = (",".join(names[::step]) for names in (likely.split(","), BARE[len(shape)]))
    return InputError(
        f"{field}: dims",
        f"{len(shape)} axes without names, {shape[::step]}, {doubt}",
        "the name of every axis",
        f"Name them: {option('dims', likely)}, {option('dims', usual)}, or whatever they are (repetition, frame, "
        "echo); in a header file or a recipe under [input] as dims = [...].",
    )


def gathering(array: NDArray[Any]) -> list[int]:
    """Axes of k-space: those along which some eighth holds most of the energy."""
    energies = [np.zeros(side) for side in array.shape]
    for number, part in enumerate(array):  # slice by slice, to save memory
        with np.errstate(over="ignore", invalid="ignore"):  # of damaged files
            energy = np.abs(part).astype(np.float64) ** 2
        energies[0][number] = energy.sum()
        for axis in range(1, array.ndim):
            energies[axis] += energy.sum(axis=tuple(other for other in range(array.ndim - 1) if other != axis - 1))
    return [axis for axis, energy in enumerate(energies) if _share(energy) > _GATHERED]


def _share(energy: NDArray[np.float64]) -> float:
    """Largest share of the energy in an eighth of an axis; 0 of a short one."""
    side, total = len(energy), float(energy.sum())
    if side < _LEAST_SIDE or not 0 < total < np.inf:
        return 0.0
    width = -(-side // 8)
    return float(np.convolve(np.concatenate([energy, energy[: width - 1]]), np.ones(width), "valid").max()) / total


def _misfit(array: NDArray[Any], axis: int, along: Sequence[int]) -> float:
    """Relative error, noise included, with which the coils along an axis predict each other (`error_of_held_coils`).

    Of further axes the strongest entry is taken.
    """
    stack = _coils(array, axis, along)
    return error_of_held_coils(stack, np.any(stack, axis=0)) if len(stack) > 1 else float("nan")


def _are_none(array: NDArray[Any], axis: int, along: Sequence[int]) -> float:
    """Prediction error, without noise, of entries that are no coils; 0 for coils, and if noise hides it."""
    stack = _coils(array, axis, along)
    samples, centre = np.any(stack, axis=0), central(stack, BLOCK)
    share = np.count_nonzero(samples) / samples.size
    # The outer samples and the air around an object hold noise, perhaps with signal: the lower one is nearer to noise.
    values = (stack[:, samples], to_image(stack) / np.sqrt(share))
    noise = min(float(np.quantile(np.abs(of) ** 2, 0.1)) for of in values) / _TENTH
    noisy = noise * np.count_nonzero(centre) > _NOISY * np.linalg.norm(centre) ** 2
    if len(stack) < 2 or noisy or gapless_side(samples) < _LEAST_CENTRE or min(samples.shape) < BLOCK:
        return 0.0
    missed = error_of_held_coils(stack, samples, noise / 2)
    return missed if missed > _NO_COILS.get(len(stack), _NO_COILS_OF_MORE) else 0.0


def _proportional(array: NDArray[Any], axis: int, along: Sequence[int]) -> bool:
    """Whether the entries along an axis are one image, brighter or darker."""
    stack = _coils(array, axis, along)
    values = np.linalg.svd(central(stack, BLOCK).reshape(len(stack), -1), compute_uv=False)
    return min(stack.shape[1:]) >= BLOCK and bool(values[1] < _ONE_IMAGE * values[0])


def _coils(array: NDArray[Any], axis: int, along: Sequence[int]) -> NDArray[np.complex64]:
    """The strongest stack of entries along an axis, their strongest sample in the middle of k-space."""
    stacks = np.moveaxis(array, (axis, *along), (-3, -2, -1))
    stacks = stacks.reshape(-1, *stacks.shape[-3:])
    stack = stacks[int(np.argmax([np.sum(np.abs(one).astype(np.float64) ** 2) for one in stacks]))]
    stack = stack / np.abs(stack).max()
    peak = np.unravel_index(int(np.argmax(np.sum(np.abs(stack) ** 2, axis=0))), stack.shape[1:])
    middle = [side // 2 - place for side, place in zip(stack.shape[1:], peak, strict=True)]
    return np.roll(stack, middle, axis=(1, 2)).astype(np.complex64)


def _gaps(array: NDArray[Any], axis: int) -> int:
    """Number of changes along an axis of k-space from positions with samples to positions without."""
    held = array.any(axis=tuple(other for other in range(array.ndim) if other != axis))
    return int(np.count_nonzero(held & ~np.roll(held, -1)))


def _paired(field: str, stored: NDArray[Any], axis: int, way: str) -> NDArray[Any]:
    side = stored.shape[axis]
    if side % 2 or (way == PAIR and side != 2):
        wanted = "two entries" if way == PAIR else "an even number of entries"
        raise InputError(f"{field}: dims", f"{side} entries along {way}", f"{wanted}: real and imaginary parts")
    parts = np.moveaxis(stored, axis, 0)
    real, imaginary = (parts[0::2], parts[1::2]) if way != IN_HALVES else (parts[: side // 2], parts[side // 2 :])
    whole: NDArray[Any] = np.empty(real.shape, np.complex128 if stored.dtype.itemsize > 4 else np.complex64)
    whole.real, whole.imag = real, imaginary
    return whole[0] if way == PAIR else np.moveaxis(whole, 0, axis)


# In the k0/k1/k2 naming k0 is the readout, k1 the phase encode and k2 the second one, of a volume.
_ROLES = {"slice": "slice", "coil": "coil", "k0": "kx", "k1": "ky", "kx": "kx", "ky": "ky", "k2": "kz", "kz": "kz"}
REPEATS = ("rep", "repetition")
SERIES = dict.fromkeys((*REPEATS, "frame", "time"), "repetition") | {"echo": "contrast", "contrast": "contrast"}
SERIES |= {"set": "set", "phase": "phase"}
"""Names of axes of which one entry is read, with the counter that chooses it."""
_ORDER = ("slice", "coil", "ky", "kx")
_VOLUME_ORDER = ("kx", "coil", "ky", "kz")


@dataclass(frozen=True)
class KSpaceAxes:
    """The role of every stored axis: a counter of `SERIES`, "slice", "coil", "ky", "kx" or, in volumes, "kz".

    Parameters
    ----------
    roles : tuple of str
        One role per stored axis; "ky" and "kx" are always among them.
    names : tuple of str
        The axes' own names.
    """

    roles: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def volume(self) -> bool:
        """Whether there are two phase encodes."""
        return "kz" in self.roles

    @property
    def orientation(self) -> Orientation:
        """Whether the phase encode runs along the rows or the columns of the stored image."""
        across = "kz" if self.volume else "kx"
        return "ky-rows" if self.roles.index("ky") < self.roles.index(across) else "ky-columns"

    def arrange(
        self, field: str, array: NDArray[Any], *, without: str = "", chosen: Mapping[str, int] | None = None
    ) -> NDArray[Any]:
        """View of a stored array as (slice, coil, ky, kx), of one repetition; volumes as (kx, coil, ky, kz).

        Parameters
        ----------
        field : str
            Name of the array, for the message.
        array : stored array
            Its axes are ``roles``, minus ``without``.
        without : str
            A role that this array and the result lack ("coil" for a coil-combined image).
        chosen : mapping of str to int, optional
            Which of several repetitions and contrasts; by default the first.

        Raises
        ------
        InputError
            For an array with another number of axes.
        """
        roles = [role for role in self.roles if role != without]
        if array.ndim != len(roles):
            raise InputError(field, f"shape {array.shape}", f"axes ({', '.join(roles)})")
        for role in [role for role in roles if role in COUNTERS]:
            array = array.take((chosen or {}).get(role, 0), axis=roles.index(role))
            roles.remove(role)
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
        Position (negative from the end) or name of the phase-encode axis, if it is not the usual one.

    Raises
    ------
    InputError
        For names that are unknown, repeated or too few, and for a phase encode that is no axis of k-space.
    """
    if dims is None and n_axes not in BARE:
        cure = f"Name them, as {option('dims', 'repetition,slice,coil,ky,kx')}, or as dims in a header file."
        raise InputError("dims", f"{n_axes} unnamed axes", "2 to 4", cure)
    names = BARE[n_axes] if dims is None else dims
    roles = [_ROLES.get(name, SERIES.get(name, "")) for name in names]
    if len(names) != n_axes or len(set(roles)) != n_axes or not {"ky", "kx"} <= set(roles) or "" in roles:
        wanted = f"of each axis kx (or k0), ky (k1), kz (k2) of a volume, coil, slice, {', '.join(SERIES)} or {PAIR}"
        cure = f"Give them as {option('dims', 'coil,ky,kx')}, or as dims in the header file."
        raise InputError("dims", f"{', '.join(names)} for {n_axes} axes", wanted, cure)
    if "kz" in roles and ({*COUNTERS, "slice"} & set(roles) or phase_encode_axis is not None):
        got = f"{list(names)}" if phase_encode_axis is None else f"{list(names)} and a phase_encode_axis"
        cure = "Give one repetition of one volume, and name its readout k0 or kx."
        raise InputError("dims", got, "a volume's axes alone: coil, ky, kz and kx in any order", cure)
    if phase_encode_axis is not None:
        axis = phase_encode_axis
        position = axis if isinstance(axis, int) else (names.index(axis) if axis in names else len(names))
        if not -len(roles) <= position < len(roles) or roles[position] not in ("ky", "kx"):
            wanted = f"one of the two k-space axes of {list(names)}"
            raise InputError("phase_encode_axis", repr(axis)[:40], wanted)
        if dims is not None and names[position] == "kx":
            raise InputError("phase_encode_axis", "kx, by its name the readout", "ky, or k0 and k1 in dims")
        if roles[position] == "kx":
            roles[roles.index("ky")], roles[position] = "kx", "ky"
    return KSpaceAxes(tuple(roles), tuple(names))
