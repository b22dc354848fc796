"""Arrays by name, with the header file that says what their axes mean, become a scan or a stack of images.

A volume (coil, ky, kz, kx) becomes one plane (ky, kz) for every readout position, in the place of slices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, option
from mri_design.operators.chosen import chosen_flags
from mri_design.scan.data import OTHERS_UNREAD, ImageStack, KSpaceData, Orientation, TrajectoryData
from mri_design.scan.io.along_trajectory import along_trajectory
from mri_design.scan.io.layouts import BARE, PAIR, joined, shown
from mri_design.scan.io.safe import ReadLimits, check_file
from mri_design.scan.io.samples import measured_lines, readout_positions, to_complex64, to_float32, volume_note
from mri_design.scan.io.source import (
    COUNTERS,
    Content,
    ImageSource,
    ReadOptions,
    SlicedSource,
    Source,
    require_counters,
)
from mri_design.scan.sampling import Sampling, measured_samples, require_finite


@dataclass(frozen=True, kw_only=True)
class ArrayHeader:
    """Fields of a header file that change how an array is read, and all of it as text.

    Parameters
    ----------
    dims : tuple of str, optional
        Name of every stored axis.
    zero_filled : tuple of int
        Phase-encode lines that were filled with zeros instead of being measured.
    image_domain : bool
        True where the array holds images, not k-space.
    float_pairs : bool
        True where the last axis holds real and imaginary parts.
    phase_encode_axis : int or str, optional
        Stored axis of the phase encode, by position or by its name in ``dims``.
    noise_variance : float, optional
        Noise variance per real component.
    noise_covariance : complex128 array, shape (coil, coil), optional
        E[n n^H] / 2 of the coils.
    shape : tuple of int, optional
        Stored shape, to be compared with the array's.
    member_shapes : mapping of str to tuple of int
        The same of the members of an archive, by name.
    key : str, optional
        Member of an npz archive that holds the array.
    centre : tuple of int, optional
        Line and sample of the centre of k-space, where it is not at ``N // 2``.
    matrix : tuple of int, optional
        Pixels (ky, kx) of the image along a trajectory, where somebody asked for them; those of the header are in
        ``text``.
    counters : mapping of str to int
        Which repetition and contrast to read, of arrays with such axes; the first where none is given.
    from_matlab : bool
        Whether whoever names the axes does so in the reversed order.
    text : mapping of str to str
        Every field, for people.
    """

    dims: tuple[str, ...] | None = None
    zero_filled: tuple[int, ...] = ()
    image_domain: bool = False
    float_pairs: bool = False
    phase_encode_axis: int | str | None = None
    noise_variance: float | None = None
    noise_covariance: NDArray[np.complex128] | None = None
    shape: tuple[int, ...] | None = None
    member_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    key: str | None = None
    centre: tuple[int, int] | None = None
    matrix: tuple[int, int] | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    from_matlab: bool = False
    text: Mapping[str, str] = field(default_factory=dict)

    def asked(self, options: ReadOptions) -> ArrayHeader:
        """The header with what somebody asks for: axes by their names, a matrix, a repetition."""
        asked = replace(self, matrix=options.matrix, counters=options.counters)
        return asked if options.dims is None else replace(asked, dims=tuple(options.dims), phase_encode_axis=None)


def read_header_file(path: Path, options: ReadOptions) -> ArrayHeader:
    """Read the header file beside the array at ``path`` (same stem, ``.json``); one without fields where there is none.

    Parameters
    ----------
    path : Path
        The array.
    options : ReadOptions
        The bound on the header's length, and what is asked for in the place of what the header says.

    Raises
    ------
    InputError
        Where the header is not a JSON table within bounds, or a field that changes the reading has a
        wrong type.
    """
    header_path = path.with_suffix(".json")
    if not header_path.exists() or header_path == path:
        return ArrayHeader().asked(options)
    if check_file(header_path) > (most := options.limits.max_text_bytes):
        raise InputError(field=str(header_path), got="an over-long header", wanted=f"at most {most} bytes")
    try:
        content = json.loads(header_path.read_bytes())
        text = as_text(content) if isinstance(content, dict) else {}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(field=str(header_path), got=f"unreadable JSON ({error})", wanted="a JSON table") from error
    if not isinstance(content, dict):
        raise InputError(field=str(header_path), got=type(content).__name__, wanted="a JSON table")
    fields = _Fields(header_path, content)
    shapes = content.get("shape")
    axis = fields.checked(
        "phase_encode_axis", lambda value: type(value) in (int, str), "an axis number or a name in dims"
    )
    variance = fields.checked("noise_variance", _is_variance, "a positive finite number")
    covariance = fields.checked("noise_covariance", _is_covariance, "rows of pairs (real, imaginary), coil by coil")
    centre = fields.checked("centre", _is_place, "a line and a sample, as [40, 35]")
    return ArrayHeader(
        dims=fields.listed("dims", str),
        zero_filled=fields.listed("zero_filled_k1_columns", int) or (),
        image_domain=fields.text("kind").startswith("image domain"),
        float_pairs="pairs (real, imag)" in fields.text("dtype"),
        phase_encode_axis=axis,
        noise_variance=None if variance is None else float(variance),
        noise_covariance=None if covariance is None else np.array(covariance, dtype=float) @ [1, 1j],
        shape=None if isinstance(shapes, dict) else fields.listed("shape", int),
        member_shapes=_member_shapes(header_path, shapes),
        key=fields.text("key") or None,
        centre=None if centre is None else (centre[0], centre[1]),
        text={name: value for name, value in text.items() if name not in ("noise_covariance", "centre")},
    ).asked(options)


def as_text(content: Mapping[str, Any]) -> dict[str, str]:
    """A table with text values only; tables inside become dotted names, lists their JSON form."""
    flat: dict[str, str] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{inner}": text for inner, text in as_text(value).items()})
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            # JSON may hold lone surrogates, which no file written later could encode.
            flat[name] = text.encode("utf-8", "replace").decode("utf-8")
    return flat


@dataclass(frozen=True)
class _Fields:
    """The fields of a header file, which are None where it has none of that name."""

    path: Path
    content: Mapping[str, Any]

    def checked(self, name: str, good: Callable[[Any], bool], wanted: str) -> Any:
        """The value of a field, refused where it is none of those that are ``wanted``."""
        value = self.content.get(name)
        if value is not None and not good(value):
            raise InputError(field=f"{self.path}: {name}", got=repr(value)[:60], wanted=wanted)
        return value

    def text(self, name: str) -> str:
        """Text, empty where there is none."""
        return self.checked(name, lambda value: isinstance(value, str), "text") or ""

    def listed(self, name: str, kind: type) -> tuple[Any, ...] | None:
        """Whole numbers, or names of axes."""
        wanted = "a list of whole numbers" if kind is int else "a list of axis names"
        value = self.checked(name, lambda v: isinstance(v, list) and all(type(item) is kind for item in v), wanted)
        return None if value is None else tuple(value)


def _member_shapes(header: Path, shapes: object) -> dict[str, tuple[int, ...]]:
    """Shapes of an archive's members, where the header has a table of them."""
    if not isinstance(shapes, dict):
        return {}
    fields = _Fields(header, shapes)
    return {name: fields.listed(name, int) or () for name in shapes}


def _is_place(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(at) is int and at >= 0 for at in value)


def _is_variance(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e300


def _is_covariance(value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(row, list) and len(row) == len(value) for row in value):
        return False
    pairs = [pair for row in value for pair in row]
    return all(isinstance(p, list) and len(p) == 2 and all(type(x) in (int, float) for x in p) for p in pairs)


# In the k0/k1/k2 naming k0 is the readout, k1 the phase encode and k2 the second one, of a volume.
_ROLES = {"slice": "slice", "coil": "coil", "k0": "kx", "k1": "ky", "kx": "kx", "ky": "ky", "k2": "kz", "kz": "kz"}
_REPEATS = ("rep", "repetition")
SERIES = dict.fromkeys((*_REPEATS, "frame", "time"), "repetition") | {"echo": "contrast", "contrast": "contrast"}
SERIES |= {"set": "set", "phase": "phase"}
"""Names of axes of which one entry is read, and the counter that chooses it."""
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
        """Whether the phase encode runs along the stored image's rows' index or columns' index."""
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
            A role that this array lacks ("coil" for a coil-combined image); it is left out of the result.
        chosen : mapping of str to int, optional
            Which repetition and contrast, of several; the first by default.

        Raises
        ------
        InputError
            On a number of axes other than that of the roles.
        """
        roles = [role for role in self.roles if role != without]
        if array.ndim != len(roles):
            raise InputError(field=field, got=f"shape {array.shape}", wanted=f"axes ({', '.join(roles)})")
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
        Position (negative from the end) or name of the phase-encode axis, where it is not the usual one.

    Raises
    ------
    InputError
        On names that are unknown, repeated or too few, and on a phase encode that is not a k-space axis.
    """
    if dims is None and n_axes not in BARE:
        cure = f"Name them, as {option('dims', 'repetition,slice,coil,ky,kx')}, or as dims in a header file."
        raise InputError(field="dims", got=f"{n_axes} unnamed axes", wanted="2 to 4", cure=cure)
    names = BARE[n_axes] if dims is None else dims
    roles = [_ROLES.get(name, SERIES.get(name, "")) for name in names]
    if len(names) != n_axes or len(set(roles)) != n_axes or not {"ky", "kx"} <= set(roles) or "" in roles:
        raise InputError(
            field="dims",
            got=f"{', '.join(names)} for {n_axes} axes",
            wanted="one name for each axis, in their order: kx (or k0, the readout), ky (k1, the phase encode), coil, "
            "slice, repetition (rep, frame), contrast (echo), set, phase; of a volume also kz (k2); of real numbers "
            f"{PAIR}",
            cure=f"Give them as {option('dims', 'coil,ky,kx')}, or as dims in the header file.",
        )
    if "kz" in roles and ({*COUNTERS, "slice"} & set(roles) or phase_encode_axis is not None):
        raise InputError(
            field="dims",
            got=f"{list(names)}" if phase_encode_axis is None else f"{list(names)} and a phase_encode_axis",
            wanted="a volume's axes alone: coil, ky, kz and kx in any order",
            cure="Give one repetition of one volume, and name its readout k0 or kx.",
        )
    if phase_encode_axis is not None:
        _swap_phase_encode(roles, names, phase_encode_axis, named=dims is not None)
    return KSpaceAxes(tuple(roles), tuple(names))


def _swap_phase_encode(roles: list[str], names: tuple[str, ...], axis: int | str, *, named: bool) -> None:
    position = axis if isinstance(axis, int) else (names.index(axis) if axis in names else len(names))
    if not -len(roles) <= position < len(roles) or roles[position] not in ("ky", "kx"):
        raise InputError(
            field="phase_encode_axis", got=repr(axis)[:40], wanted=f"one of the two k-space axes of {list(names)}"
        )
    if roles[position] == "kx":
        if named and names[position] == "kx":
            raise InputError(
                field="phase_encode_axis", got="kx, by its name the readout", wanted="ky, or k0 and k1 in dims"
            )
        roles[roles.index("ky")] = "kx"
        roles[position] = "ky"


COMPANIONS = ("measured", "coil_maps", "noise_variance", "noise_covariance", "reference")
"""Arrays that may stand beside k-space."""

Arrays = Mapping[str, NDArray[Any]]
_PARTITION, _FEWEST_PARTITIONS = 30, 16
"""Energy over that of the median part from which on parts are partitions of a volume, of so many at least."""
_NEIGHBOURS = 8
"""Parts without coils that are held against each other."""
_STACK = ("slice", "row", "col")
_STACKS = {_STACK, ("echo", "row", "col")}
"""Names of the axes of several images; those of several echoes are taken like slices, one after the other."""


def series_of(shape: tuple[int, ...], header: ArrayHeader) -> dict[str, tuple[int, ...]]:
    """Numbers of the repetitions, contrasts and the like that an array of k-space has, by counter."""
    dims = header.dims or ()
    if len(dims) != len(shape) or header.image_domain or "row" in dims:
        return {}
    return {SERIES[name]: tuple(range(side)) for name, side in zip(dims, shape, strict=True) if name in SERIES}


def scan_of_arrays(
    path: Path, key: str, arrays: Arrays, header: ArrayHeader, limits: ReadLimits
) -> KSpaceData | TrajectoryData | ImageStack:
    """Make a scan or a stack of images of the arrays of a file.

    Parameters
    ----------
    path : Path
        The file, for names and messages.
    key : str
        Which of the arrays is the data: complex k-space, or images.
    arrays : mapping of str to array
        The data, `COMPANIONS`, and for samples along a trajectory what `along_trajectory` takes.
    header : ArrayHeader
        Names of axes, and what else is known.
    limits : ReadLimits
        Bounds on slices, coils and the sides of the grid.

    Raises
    ------
    InputError
        For arrays that contradict the header or each other, or hold no such data.
    """
    for name, declared in header.member_shapes.items():
        if name in arrays and arrays[name].shape != declared:
            raise InputError(
                field=f"{name}: shape", got=f"{arrays[name].shape}", wanted=f"{declared}, as its header says"
            )
    if header.matrix is not None:
        arrays = {**arrays, "matrix": np.array(header.matrix)}
    if header.noise_covariance is not None:
        arrays = {"noise_covariance": header.noise_covariance, **arrays}
    if "trajectory" in arrays and key == "kspace":
        noise_variance = _noise_variance(arrays.get("noise_variance"), header)
        covariance = _noise_covariance(arrays.get("noise_covariance"))
        require_counters(path, header.counters)
        scan = along_trajectory(
            arrays, limits, name=path.stem, noise_variance=noise_variance, header=_provenance(path, header)
        )
        return scan if covariance is None else replace(scan, noise_covariance=covariance)
    stored = arrays[key]
    if header.shape is not None and header.shape != stored.shape:
        raise InputError(field=f"{key}: shape", got=f"{stored.shape}", wanted=f"{header.shape}, as its header says")
    if header.float_pairs:
        stored = _joined_pairs(key, stored)
    elif not (header.image_domain or key == "image" or "row" in (header.dims or ())):
        stored, header = _settled(key, stored, header, with_maps="coil_maps" in arrays)
    if holds_images(key, stored.dtype, header):
        require_counters(path, header.counters)
        return _images(path, key, stored, header, limits)
    return _kspace(path, key, stored, arrays, header, limits)


def _settled(
    key: str, stored: NDArray[Any], header: ArrayHeader, *, with_maps: bool
) -> tuple[NDArray[Any], ArrayHeader]:
    """The array as complex numbers, and its header with the names that its axes have where it gives none."""
    stored, dims, note = joined(key, stored, header.dims)
    unsaid = dims is None and header.phase_encode_axis is None and not with_maps
    if stored.dtype.kind == "c" and stored.ndim in BARE and unsaid:
        require_finite(key, stored)
        dims, found = shown(key, stored, BARE[stored.ndim], reverse=header.from_matlab)
        note = "; ".join(filter(None, (note, found)))
    return stored, replace(header, dims=dims, text={**header.text, **({"axes": note} if note else {})})


def holds_images(key: str, dtype: np.dtype[Any], header: ArrayHeader) -> bool:
    """Whether an array of that name is one of images, not of k-space."""
    real_without_header = dtype.kind != "c" and not header.float_pairs and header.dims is None and key != "kspace"
    return header.image_domain or key == "image" or "row" in (header.dims or ()) or real_without_header


@dataclass(frozen=True)
class StoredSource(Source):
    """A file whose arrays are read as a whole.

    Parameters
    ----------
    path : Path
        The file, for names and messages.
    header : ArrayHeader
        Names of axes, and what else is known.
    limits : ReadLimits
        As for `scan_of_arrays`.
    """

    path: Path
    header: ArrayHeader
    limits: ReadLimits

    @property
    def centre(self) -> tuple[int, int] | None:
        """As the header file says it."""
        return self.header.centre


def images_of(
    file: StoredSource, key: str, parts: Iterable[NDArray[Any]], shape: tuple[int, ...], header: ArrayHeader
) -> ImageSource | None:
    """A stack of images, with one in memory at a time; None where it is no stack along its first axis.

    Parameters
    ----------
    file : StoredSource
        That reads all of them.
    key, header
        As for `scan_of_arrays`.
    parts : iterable of arrays, shape (1, row, column)
        The images.
    shape : tuple of int
        Of all of them.

    Raises
    ------
    InputError
        As `scan_of_arrays`.
    """
    if len(shape) != 3 or header.float_pairs or header.dims not in {None, *_STACKS}:
        return None
    require_counters(file.path, header.counters)
    _check_sides(key, _STACK, shape, file.limits)
    count, rows, columns = shape
    images = (_pixels(key, part)[0] for part in parts)
    return _StoredImages(
        images, (count, rows, columns), name=file.path.stem, header=_provenance(file.path, header), file=file
    )


@dataclass(frozen=True, kw_only=True)
class _StoredImages(ImageSource):
    """A stack of images that is loaded at once."""

    file: StoredSource

    def load(self) -> ImageStack:
        """All of them."""
        stack = self.file.load()
        assert isinstance(stack, ImageStack)
        return stack


def axes_of_slices(
    shape: tuple[int, ...], dtype: np.dtype[Any], header: ArrayHeader, part: Callable[[int], NDArray[Any]]
) -> KSpaceAxes | None:
    """Axes of a stored array that is a stack of slices of k-space, one after the other; None where it is not.

    Parameters
    ----------
    shape, dtype
        Of the array, as stored.
    header : ArrayHeader
        Names of axes, and what else is known.
    part : function
        The part (1, ...) of a number, of which some are held against the usual names where there are no others.

    Raises
    ------
    InputError
        For axes that cannot be, and those that have to be named (`shown`).
    """
    if dtype.kind != "c" or header.image_domain or header.float_pairs or "row" in (header.dims or ()):
        return None
    axes = kspace_axes(len(shape), header.dims, header.phase_encode_axis)
    if axes.volume or axes.roles[0] != "slice":
        return None
    unsaid = header.dims is None and header.phase_encode_axis is None
    return None if unsaid and axes_of_parts(part, shape[0], axes.names) != axes.names else axes


def axes_of_parts(part: Callable[[int], NDArray[Any]], count: int, usual: tuple[str, ...]) -> tuple[str, ...] | None:
    """Names of the axes of an array by some of its parts along the first one; None where all have to be looked at.

    Parameters
    ----------
    part : function
        The part (1, ...) of a number.
    count : int
        Parts.
    usual : tuple of str
        As for `shown`.
    """
    places = sorted({0, count // 2, *range(0, count, max(1, count // 8))})
    energies = {place: float(np.linalg.norm(part(place))) ** 2 for place in places}
    strongest = max((0, count // 2), key=energies.__getitem__)
    others = [energy for place, energy in energies.items() if place != strongest]
    if count >= _FEWEST_PARTITIONS and energies[strongest] > _PARTITION * float(np.median(others)):
        return None
    width = 1 if "coil" in usual else min(count, _NEIGHBOURS)
    seen = [part(number) for number in range(count // 2 - width // 2, count // 2 - width // 2 + width)]
    try:
        return shown("array", np.concatenate(seen), usual)[0]
    except InputError:  # all of them show more
        return None


@dataclass(frozen=True)
class StackSource(SlicedSource):
    """Arrays of a file that are stacks of slices along their first axis.

    Parameters
    ----------
    file : StoredSource
        That reads all slices.
    part : function
        By a slice's number what `scan_of_arrays` takes: first the part (1, ...) of the data, then those of
        `COMPANIONS`.
    count : int
        Slices.
    axes : KSpaceAxes
        Of the data, from `axes_of_slices`.
    header : ArrayHeader
        Names of axes, and what else is known.
    """

    file: StoredSource
    part: Callable[[int], Arrays]
    count: int
    axes: KSpaceAxes
    header: ArrayHeader

    @property
    def series(self) -> Mapping[str, tuple[int, ...]]:
        """See `Source`."""
        return self.file.series

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return self.count

    @property
    def centre(self) -> tuple[int, int] | None:
        """As the header file says it."""
        return self.header.centre

    def load(self) -> Content:
        """All slices."""
        return self.file.load()

    def slice(self, index: int) -> KSpaceData:
        """One slice; the shapes in its header file are of whole arrays, and not looked at."""
        arrays, header = self.part(index), replace(self.header, shape=None, member_shapes={})
        scan = scan_of_arrays(self.file.path, next(iter(arrays)), arrays, header, self.file.limits)
        assert isinstance(scan, KSpaceData)
        return scan

    def samplings(self) -> tuple[Sampling, ...]:
        """Which samples every slice holds, one after the other; lines filled with zeros hold nothing."""
        return tuple(self._sampling(next(iter(self.part(number).values())), number) for number in range(self.count))

    def _sampling(self, stored: NDArray[Any], number: int) -> Sampling:
        (coils,) = self.axes.arrange("array", stored, chosen=self.header.counters)
        coils = to_complex64(f"array, slice {number}", coils)
        held = measured_samples(coils)
        held[[line for line in self.header.zero_filled if 0 <= line < len(held)]] = False
        return Sampling(held)


def _joined_pairs(key: str, stored: NDArray[Any]) -> NDArray[Any]:
    if stored.ndim < 2 or stored.shape[-1] != 2:
        raise InputError(field=key, got=f"shape {stored.shape}", wanted="real and imaginary parts on the last axis")
    parts = to_float32(key, stored)
    return parts.view(np.complex64)[..., 0]


def _images(path: Path, key: str, stored: NDArray[Any], header: ArrayHeader, limits: ReadLimits) -> ImageStack:
    names = None if header.dims is None else tuple(name for name in header.dims if name != "real/imag")
    known = {_STACK[-2:]} if stored.ndim == 2 else {*_STACKS, ("x", "y", "z")}
    if stored.ndim not in (2, 3) or (names is not None and names not in known):
        raise InputError(
            field=key,
            got=f"shape {stored.shape}" + ("" if names is None else f" named {list(names)}"),
            wanted="images (row, col), (slice, row, col) or (echo, row, col), or a volume (x, y, z) whose readout is x",
        )
    _check_sides(key, _STACK[-stored.ndim :], stored.shape, limits)
    pixels = _pixels(key, stored)
    return ImageStack(pixels.reshape((-1, *pixels.shape[-2:])), name=path.stem, header=_provenance(path, header))


def _pixels(key: str, stored: NDArray[Any]) -> NDArray[np.float32] | NDArray[np.complex64]:
    return to_complex64(key, stored) if stored.dtype.kind == "c" else to_float32(key, stored)


def _kspace(
    path: Path, key: str, stored: NDArray[Any], arrays: Arrays, header: ArrayHeader, limits: ReadLimits
) -> KSpaceData:
    axes = kspace_axes(stored.ndim, header.dims, header.phase_encode_axis)
    _check_sides(key, axes.roles, stored.shape, limits)
    require_counters(path, header.counters, series_of(stored.shape, replace(header, dims=axes.names)))
    chosen = {role: header.counters.get(role, 0) for role in axes.roles if role in COUNTERS}
    kspace = to_complex64(key, axes.arrange(key, stored, chosen=chosen)).copy()
    if axes.volume:
        kspace = readout_positions(kspace)
    n_lines = kspace.shape[2]
    provenance = _provenance(path, header)
    if axes.volume:
        provenance["volume"] = volume_note(len(kspace), kspace.shape[2:])
    again: NDArray[np.complex64] | None = None
    for role, number in chosen.items():
        count = stored.shape[axis := axes.roles.index(role)]
        if count > 1:
            provenance[role] = f"{number or 'first'} of {count}; {OTHERS_UNREAD}"
        if count > 1 and axes.names[axis] in _REPEATS:
            other = {**chosen, role: 0 if number else 1}
            again = to_complex64(key, axes.arrange(key, stored, chosen=other)).copy()
    declared = _declared_lines(path, header, arrays.get("measured"), n_lines)
    if "noise_covariance" in arrays:
        provenance["noise_covariance"] = "given with the data"
    return KSpaceData(
        kspace=kspace,
        measured=measured_lines("measured lines", kspace, declared),
        name=path.stem,
        noise_variance=_noise_variance(arrays.get("noise_variance"), header),
        noise_covariance=_noise_covariance(arrays.get("noise_covariance")),
        coil_maps=_companion("coil_maps", arrays, axes, without=""),
        reference=_companion("reference", arrays, axes, without="coil"),
        repeat=again,
        orientation=axes.orientation,
        header=provenance,
    )


def _check_sides(key: str, roles: tuple[str, ...], shape: tuple[int, ...], limits: ReadLimits) -> None:
    bounds = dict.fromkeys((*COUNTERS, "slice"), limits.max_slices) | {"coil": limits.max_coils}
    for role, side in zip(roles, shape, strict=True):
        bound = bounds.get(role, limits.max_side)
        if not 1 <= side <= bound:
            raise InputError(field=f"{key}: {role}", got=str(side), wanted=f"1 to {bound}")


def _declared_lines(path: Path, header: ArrayHeader, measured: NDArray[Any] | None, n_lines: int) -> NDArray[np.bool_]:
    declared = np.ones(n_lines, dtype=bool)
    if measured is not None:
        declared = chosen_flags(measured, (n_lines,), field="measured").copy()
    for line in header.zero_filled:
        if not 0 <= line < n_lines:
            raise InputError(
                field=f"{path.with_suffix('.json').name}: zero_filled_k1_columns",
                got=str(line),
                wanted=f"lines 0 to {n_lines - 1}",
            )
        declared[line] = False
    return declared


def _noise_variance(stored: NDArray[Any] | None, header: ArrayHeader) -> float | None:
    if stored is None:
        return header.noise_variance
    if stored.size != 1 or stored.dtype.kind not in "iuf":
        raise InputError(field="noise_variance", got=f"{stored.dtype} {stored.shape}", wanted="one real number")
    return float(stored.reshape(-1)[0])


def _noise_covariance(stored: NDArray[Any] | None) -> NDArray[np.complex128] | None:
    if stored is None:
        return None
    if stored.ndim != 2 or stored.dtype.kind not in "fc":
        got = f"{stored.dtype} {stored.shape}"
        cure = "Of variances coil by coil, store numpy.diag(variances)." if stored.ndim == 1 else ""
        raise InputError(field="noise_covariance", got=got, wanted="numbers (coil, coil), E[n n^H] / 2", cure=cure)
    return stored.astype(np.complex128)


def _companion(name: str, arrays: Arrays, axes: KSpaceAxes, *, without: str) -> NDArray[np.complex64] | None:
    if name not in arrays:
        return None
    stored = arrays[name]
    arranged = axes.arrange(name, stored, without=without)
    return to_complex64(name, arranged.astype(np.complex128) if stored.dtype.kind in "iuf" else arranged)


def _provenance(path: Path, header: ArrayHeader) -> dict[str, str]:
    return {**header.text, "file": path.name}
