"""Named arrays of a file, with a header file that names their axes, become a scan or a stack of images.

A volume (coil, ky, kz, kx) becomes one plane (ky, kz) for every readout position, instead of slices. Samples along a
trajectory lie on no grid: their positions have a unit, and their image a matrix.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.coils import measured_samples
from mri_design.errors import InputError, option
from mri_design.operators.conventions import chosen_flags
from mri_design.operators.trajectory import ROUNDING, look_of_trajectory
from mri_design.scan import sampling
from mri_design.scan.data import ImageStack, KSpaceData, TrajectoryData
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.io.layouts import BARE, REPEATS, SERIES, KSpaceAxes, joined, kspace_axes, shown
from mri_design.scan.io.safe import ReadLimits, check_sides, read_json_table
from mri_design.scan.io.source import COUNTERS, Content, Loaded, ReadOptions, SlicedSource, Source, require_counters
from mri_design.scan.provenance import NoiseOrigin, Provenance

Arrays = Mapping[str, NDArray[Any]]
COMPANIONS = ("measured", "coil_maps", "noise_variance", "noise_covariance", "reference")
"""Arrays that may accompany k-space."""
_WITHOUT_SLICES = ("measured", "noise_variance", "noise_covariance")
TRAJECTORY_MEMBERS = ("trajectory", "matrix", "density")
"""Members of an archive that only samples along a trajectory have."""
_PARTITION, _FEWEST_PARTITIONS = 30, 16
"""Energy over the median part's above which parts are partitions of a volume, and their least number."""
_NEIGHBOURS = 8
"""Parts without coils that are compared."""
_STACK = ("slice", "row", "col")
_STACKS = {_STACK, ("echo", "row", "col")}
"""Names of the axes of several images; several echoes are read like slices."""


@dataclass(frozen=True, kw_only=True)
class ArrayHeader:
    """How an array is read: the fields of its header file and what was requested.

    Parameters
    ----------
    dims : tuple of str, optional
        Name of every stored axis.
    zero_filled : tuple of int
        Phase-encode lines that were filled with zeros, not measured.
    image_domain : bool
        Whether the array holds images, not k-space.
    float_pairs : bool
        Whether the last axis holds real and imaginary parts.
    phase_encode_axis : int or str, optional
        Stored axis of the phase encode, by position or by its name in ``dims``.
    noise_variance : float, optional
        Noise variance per real component.
    noise_covariance : complex128 array, shape (coil, coil), optional
        E[n n^H] / 2 of the coils.
    shapes : mapping of str to tuple of int
        Shapes that the arrays must have, by name; that of the data may have an empty name.
    key : str, optional
        Member of an npz archive that holds the array.
    centre : tuple of int, optional
        Line and sample of the centre of k-space, if it is not at ``N // 2``.
    matrix : tuple of int, optional
        Requested pixels (ky, kx) of the image of samples along a trajectory, if the file states none.
    counters : mapping of str to int
        Which repetition and contrast to read, of arrays with such axes; by default the first.
    from_matlab : bool
        Whether the user names the axes in reversed order.
    of_coils : bool
        Whether coils are as the receiver measured them: those without a signal of their own are left out.
    place : SliceGeometry, optional
        Size, and perhaps place, of all slices.
    identifiers : SourceImage, optional
        Of the patient, the study and the sequence.
    text : mapping of str to str
        Every field, as text for reports.
    content : mapping of str to object
        Every field of a header file, as JSON has it.
    left_out : mapping of str to tuple
        See `Provenance`.
    """

    dims: tuple[str, ...] | None = None
    zero_filled: tuple[int, ...] = ()
    image_domain: bool = False
    float_pairs: bool = False
    phase_encode_axis: int | str | None = None
    noise_variance: float | None = None
    noise_covariance: NDArray[np.complex128] | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    key: str | None = None
    centre: tuple[int, int] | None = None
    matrix: tuple[int, int] | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    from_matlab: bool = False
    of_coils: bool = False
    place: SliceGeometry | None = None
    identifiers: SourceImage | None = None
    text: Mapping[str, str] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def asked(self, options: ReadOptions) -> ArrayHeader:
        """The header with the requested names of axes, matrix and counters."""
        asked = replace(self, matrix=options.matrix, counters=options.counters)
        return asked if options.dims is None else replace(asked, dims=tuple(options.dims), phase_encode_axis=None)

    @property
    def images(self) -> bool:
        """Whether the header says that the array holds images."""
        return self.image_domain or "row" in (self.dims or ())

    @property
    def unnamed(self) -> bool:
        """Whether the header leaves the axes open."""
        return self.dims is None and self.phase_encode_axis is None

    def series(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """All values of each counter (repetition, contrast, ...) along the axes of k-space of a shape."""
        dims = self.dims or ()
        if self.images or len(dims) != len(shape):
            return {}
        return {SERIES[name]: tuple(range(side)) for name, side in zip(dims, shape, strict=True) if name in SERIES}


_Index = Annotated[int, msgspec.Meta(ge=0)]
_Wholes = (list[int], "a list of whole numbers")
_FIELDS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("kind", "dtype", "key"), (str, "text")),
    "dims": (list[str], "a list of axis names"),
    "zero_filled_k1_columns": _Wholes,
    "phase_encode_axis": (int | str, "an axis number or a name in dims"),
    "noise_variance": (Annotated[float, msgspec.Meta(gt=0, lt=1e300)], "a positive finite number"),
    "noise_covariance": (list[list[tuple[float, float]]], "rows of pairs (real, imaginary), coil by coil"),
    "centre": (tuple[_Index, _Index], "a line and a sample, as [40, 35]"),
}
"""Fields of a header file that change the reading: their types, and in words."""


def read_header_file(path: Path, options: ReadOptions) -> ArrayHeader:
    """The header file of the array at ``path`` (same stem, ``.json``); an empty header without one.

    Parameters
    ----------
    path : Path
        The array.
    options : ReadOptions
        The bound on the header's length, and what overrides the header.

    Raises
    ------
    InputError
        If the header is not a JSON table within bounds, or a field has a wrong type.
    """
    header_path = path.with_suffix(".json")
    if not header_path.exists() or header_path == path:
        return ArrayHeader().asked(options)
    content = read_json_table(header_path, options.limits)
    try:
        text = _as_text(content)
    except RecursionError as error:
        raise InputError(str(header_path), "tables inside tables", "a JSON table") from error
    known = {name: value for name, value in content.items() if value is not None}
    shapes = known.get("shape", {})
    shapes = shapes if isinstance(shapes, dict) else {"": shapes}
    checks = [(name, known[name], *_FIELDS[name]) for name in _FIELDS if name in known]
    for name, value, kind, wanted in (*checks, *((name or "shape", sides, *_Wholes) for name, sides in shapes.items())):
        try:
            rows = msgspec.convert(value, kind)
            good = name != "noise_covariance" or all(len(row) == len(rows) for row in rows)
        except msgspec.ValidationError:
            good = False
        if not good:
            raise InputError(f"{header_path}: {name}", repr(value)[:60], wanted)
    covariance, centre = known.get("noise_covariance"), known.get("centre")
    return ArrayHeader(
        dims=tuple(known["dims"]) if "dims" in known else None,
        zero_filled=tuple(known.get("zero_filled_k1_columns", ())),
        image_domain=known.get("kind", "").startswith("image domain"),
        float_pairs="pairs (real, imag)" in known.get("dtype", ""),
        phase_encode_axis=known.get("phase_encode_axis"),
        noise_variance=float(known["noise_variance"]) if "noise_variance" in known else None,
        noise_covariance=None if covariance is None else np.array(covariance, dtype=float) @ [1, 1j],
        shapes={name: tuple(sides) for name, sides in shapes.items()},
        key=known.get("key") or None,
        centre=None if centre is None else (centre[0], centre[1]),
        content=known,
        text={name: value for name, value in text.items() if name not in ("noise_covariance", "centre")},
    ).asked(options)


def _as_text(content: Mapping[str, Any]) -> dict[str, str]:
    """A table of texts: tables inside it become dotted names, lists their JSON form."""
    flat: dict[str, str] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{inner}": text for inner, text in _as_text(value).items()})
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            # JSON may hold lone surrogates, which no file written later could encode.
            flat[name] = text.encode("utf-8", "replace").decode("utf-8")
    return flat


@dataclass(frozen=True)
class StoredArray:
    """An array of an open file, read as a whole or in parts along its first axis.

    Parameters
    ----------
    shape, dtype
        As stored.
    read : function
        Reads the part (1, ...) with a number, or the whole array for None.
    sliced : bool
        Whether parts can be read one by one.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[int | None], NDArray[Any]]
    sliced: bool = False


@dataclass(frozen=True)
class StackSource(SlicedSource):
    """Arrays of an open file that are stacks of slices of k-space along their first axis.

    Parameters
    ----------
    path : Path
        The file, for names and messages.
    key : str
        Which of the arrays is the data.
    arrays : mapping of str to StoredArray
        The data and what accompanies them.
    header : ArrayHeader
        How the data are read.
    limits : ReadLimits
        As for `scan_of_arrays`.
    axes : KSpaceAxes
        Of the data.
    """

    path: Path
    key: str
    arrays: Mapping[str, StoredArray]
    header: ArrayHeader
    limits: ReadLimits
    axes: KSpaceAxes

    def load(self) -> Content:
        """All slices."""
        return self._scan(None)

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return self.arrays[self.key].shape[0]

    @property
    def geometry(self) -> tuple[SliceGeometry, ...] | None:
        """Sizes of pixels, if the file says them."""
        return None if self.header.place is None else (self.header.place,) * self.n_slices

    def slice(self, index: int) -> KSpaceData:
        """One slice."""
        scan = self._scan(index)
        assert isinstance(scan, KSpaceData)
        return scan

    def _scan(self, index: int | None) -> Content:
        arrays = {name: stored.read(None if name in _WITHOUT_SLICES else index) for name, stored in self.arrays.items()}
        return scan_of_arrays(self.path, self.key, arrays, self.header, self.limits)

    def samplings(self) -> tuple[sampling.Sampling, ...]:
        """Which samples each slice holds, read one by one; lines filled with zeros hold none."""
        found = []
        declared = self.arrays["measured"].read(None) if "measured" in self.arrays else None
        for number in range(self.n_slices):
            (coils,) = self.axes.arrange("array", self.arrays[self.key].read(number), chosen=self.header.counters)
            held = measured_samples(sampling.to_complex64(f"array, slice {number}", coils))
            held[[line for line in self.header.zero_filled if 0 <= line < len(held)]] = False
            if declared is not None:
                held[~chosen_flags(declared, (len(held),), field="measured")] = False
            found.append(sampling.Sampling(held))
        return tuple(found)


def source_of(
    path: Path, key: str, arrays: Mapping[str, StoredArray], header: ArrayHeader, limits: ReadLimits
) -> Source:
    """Arrays of an open file as a source; slices of k-space that lie one after another are read one by one.

    Parameters
    ----------
    path, key, arrays, header, limits
        As of a `StackSource`.

    Raises
    ------
    InputError
        For shapes that contradict the header, impossible axes, and axes that need names (`shown`).
    """
    for name, declared in header.shapes.items():
        stored = arrays.get(name or key)
        if stored is not None and stored.shape != declared:
            raise InputError(f"{name or key}: shape", f"{stored.shape}", f"{declared}, as its header says")
    known: Any = {"series": header.series(arrays[key].shape), "centre": header.centre}
    if axes := _axes_of_slices(key, arrays, header, limits):
        return StackSource(path, key, arrays, header, limits, axes, **known)
    whole = {name: stored.read(None) for name, stored in arrays.items()}
    return Loaded(scan_of_arrays(path, key, whole, header, limits), **known)


def _axes_of_slices(
    key: str, arrays: Mapping[str, StoredArray], header: ArrayHeader, limits: ReadLimits
) -> KSpaceAxes | None:
    """Axes of an array of k-space whose slices can be read one by one; None for all others."""
    data, stacks = arrays[key], [stored for name, stored in arrays.items() if name not in _WITHOUT_SLICES]
    count = data.shape[0] if len(data.shape) > 2 else 0
    alike = all(stored.sliced and stored.shape[0] == count for stored in stacks)
    if not alike or not 1 < count <= limits.max_slices or "trajectory" in arrays or header.float_pairs:
        return None
    if data.dtype.kind != "c" or holds_images(key, data.dtype, header):
        return None
    axes = kspace_axes(len(data.shape), header.dims, header.phase_encode_axis)
    if axes.volume or axes.roles[0] != "slice":
        return None
    return axes if not header.unnamed or axes_of_parts(data.read, count, axes.names) == axes.names else None


def axes_of_parts(part: Callable[[int], NDArray[Any]], count: int, usual: tuple[str, ...]) -> tuple[str, ...] | None:
    """Names of the axes of an array, by some of its parts along the first axis; None if that takes all parts.

    Parameters
    ----------
    part : function
        Reads the part (1, ...) with a number.
    count : int
        Number of parts.
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
        return shown("array", np.concatenate(seen), usual)
    except InputError:  # all parts show more
        return None


def holds_images(key: str, dtype: np.dtype[Any], header: ArrayHeader) -> bool:
    """Whether an array of that name holds images, not k-space."""
    real_without_header = dtype.kind != "c" and not header.float_pairs and header.dims is None and key != "kspace"
    return header.images or key == "image" or real_without_header


def scan_of_arrays(
    path: Path, key: str, arrays: Arrays, header: ArrayHeader, limits: ReadLimits
) -> KSpaceData | TrajectoryData | ImageStack:
    """A scan or a stack of images from the arrays of a file.

    Parameters
    ----------
    path : Path
        The file, for names and messages.
    key : str
        Which of the arrays is the data: complex k-space, or images.
    arrays : mapping of str to array
        The data, `COMPANIONS`, and for samples along a trajectory what `_along_trajectory` takes.
    header : ArrayHeader
        How the data are read.
    limits : ReadLimits
        Bounds on slices, coils and the sides of the grid.

    Raises
    ------
    InputError
        For arrays that contradict the header or each other, or hold no such data.
    """
    if header.noise_covariance is not None:
        arrays = {"noise_covariance": header.noise_covariance, **arrays}
    if "trajectory" in arrays and key == "kspace":
        require_counters(path, header.counters)
        known = _common(path, header) | _noise(arrays, header)
        return _along_trajectory(arrays, header.content, header.matrix, limits, **known)
    stored = arrays[key]
    if header.float_pairs:
        if stored.ndim < 2 or stored.shape[-1] != 2:
            raise InputError(key, f"shape {stored.shape}", "real and imaginary parts on the last axis")
        stored = sampling.to_float32(key, stored).view(np.complex64)[..., 0]
    elif not (header.images or key == "image"):
        stored, dims, parts = joined(key, stored, header.dims)
        names: tuple[str, ...] = ()
        if stored.dtype.kind == "c" and stored.ndim in BARE and header.unnamed and "coil_maps" not in arrays:
            sampling.require_finite(key, stored)
            dims = shown(key, stored, BARE[stored.ndim], reverse=header.from_matlab)
            names = dims if dims != BARE[stored.ndim] else ()
        left_out = {**header.left_out, **({"axes": (names, parts)} if names or parts else {})}
        header = replace(header, dims=dims, left_out=left_out)
    if holds_images(key, stored.dtype, header):
        require_counters(path, header.counters)
        return _images(path, key, stored, header, limits)
    return _kspace(path, key, stored, arrays, header, limits)


def _images(path: Path, key: str, stored: NDArray[Any], header: ArrayHeader, limits: ReadLimits) -> ImageStack:
    names = None if header.dims is None else tuple(name for name in header.dims if name != "real/imag")
    known = {_STACK[-2:]} if stored.ndim == 2 else {*_STACKS, ("x", "y", "z")}
    if stored.ndim not in (2, 3) or (names is not None and names not in known):
        got = f"shape {stored.shape}" + ("" if names is None else f" named {list(names)}")
        raise InputError(key, got, "images (row, col), (slice, row, col) or (echo, row, col), or a volume (x, y, z)")
    check_sides(limits, dict(zip(_STACK[-stored.ndim :], stored.shape, strict=True)), field=f"{key}: ")
    pixels = sampling.to_complex64(key, stored) if stored.dtype.kind == "c" else sampling.to_float32(key, stored)
    return ImageStack(pixels.reshape((-1, *pixels.shape[-2:])), **_common(path, header))


def _kspace(
    path: Path, key: str, stored: NDArray[Any], arrays: Arrays, header: ArrayHeader, limits: ReadLimits
) -> KSpaceData:
    axes = kspace_axes(stored.ndim, header.dims, header.phase_encode_axis)
    check_sides(limits, dict(zip(axes.roles, stored.shape, strict=True)), field=f"{key}: ")
    require_counters(path, header.counters, replace(header, dims=axes.names).series(stored.shape))
    chosen = {role: header.counters.get(role, 0) for role in axes.roles if role in COUNTERS}
    kspace = sampling.to_complex64(key, axes.arrange(key, stored, chosen=chosen)).copy()
    left_out, taken = header.left_out, dict[str, tuple[int, tuple[int, ...]]]()
    if axes.volume:
        kspace = sampling.readout_positions(kspace)
    again: NDArray[np.complex64] | None = None
    for role, number in chosen.items():
        count = stored.shape[axis := axes.roles.index(role)]
        if count > 1:
            taken[role] = (number, tuple(range(count)))
        if count > 1 and axes.names[axis] in REPEATS:
            other = {**chosen, role: 0 if number else 1}
            again = sampling.to_complex64(key, axes.arrange(key, stored, chosen=other)).copy()
    if header.of_coils:
        coils, dropped = sampling.working_coils(kspace)
        kspace, left_out = sampling.only_coils(kspace, coils), {**left_out, **dropped}
    n_lines = kspace.shape[2]
    declared = np.ones(n_lines, dtype=bool)
    if "measured" in arrays:
        declared = chosen_flags(arrays["measured"], (n_lines,), field="measured").copy()
    for line in header.zero_filled:
        if not 0 <= line < n_lines:
            named = f"{path.with_suffix('.json').name}: zero_filled_k1_columns"
            raise InputError(named, str(line), f"lines 0 to {n_lines - 1}")
        declared[line] = False
    noise = NoiseOrigin(source="file" if "noise_covariance" in arrays else "unknown")
    beside: dict[str, Any] = {
        name: _complex_or_real(name, axes.arrange(name, arrays[name], without=without))
        for name, without in (("coil_maps", ""), ("reference", "coil"))
        if name in arrays
    }
    known = _common(path, header) | {"provenance": Provenance(noise=noise, series=taken, left_out=left_out)}
    return KSpaceData(
        kspace=kspace,
        measured=sampling.measured_lines("mask" if header.of_coils else "measured lines", kspace, declared),
        repeat=again,
        orientation=axes.orientation,
        volume=axes.volume,
        geometry=None if header.place is None else (header.place,) * len(kspace),
        source=header.identifiers,
        **known,
        **_noise(arrays, header),
        **beside,
    )


def _noise(arrays: Arrays, header: ArrayHeader) -> dict[str, Any]:
    """Variance and covariance of the noise from the arrays and their header, as fields of a scan."""
    variance, covariance = arrays.get("noise_variance"), arrays.get("noise_covariance")
    if variance is not None and (variance.size != 1 or variance.dtype.kind not in "iuf"):
        raise InputError("noise_variance", f"{variance.dtype} {variance.shape}", "one real number")
    if covariance is not None and (covariance.ndim != 2 or covariance.dtype.kind not in "fc"):
        cure = "Store variances of the coils as numpy.diag(variances)." if covariance.ndim == 1 else ""
        raise InputError("noise_covariance", f"{covariance.dtype} {covariance.shape}", "numbers (coil, coil)", cure)
    return {
        "noise_variance": header.noise_variance if variance is None else float(variance.reshape(-1)[0]),
        "noise_covariance": None if covariance is None else covariance.astype(np.complex128),
    }


def _common(path: Path, header: ArrayHeader) -> dict[str, Any]:
    """Name, header and provenance, as fields of a scan or a stack of images."""
    text = {**header.text, "file": path.name}
    return {"name": path.stem, "header": text, "provenance": Provenance(left_out=header.left_out)}


_PER_FIELD_OF_VIEW, _PER_PIXEL, _RADIANS = "cycles per field of view", "cycles per pixel", "radians per pixel"
_EDGES = {_PER_PIXEL: 0.5, _RADIANS: np.pi}
"""Reach of a trajectory that fills k-space, in units that do not depend on the grid."""
_LOOKS = {_PER_PIXEL: 0.0, _RADIANS: 0.8 * np.pi}
"""Least reach, up to that edge, of a trajectory without ``matrix`` that looks like one in these units."""
_COLUMNS = ("ky", "kx", "kz")
_NAME_COLUMNS = 'Name the columns in the header file: "trajectory_axes": ["kx", "ky", "kz"].'
_LIKE_SQUARE = 0.05
"""Largest relative difference of the reach along ky and kx of a square image."""
_LARGER_GRID, _NEAR = "cycles per field of view of a larger grid", 20
"""Largest reach over the grid's for which the matrix may be the mistake."""
_ON_GRID = ("coil_maps", "reference")
"""Arrays that have the pixels of the image, by which a file states them."""
_LEAST_REACH = 4
"""Cycles per field of view: a trajectory that reaches less far does not show the pixels of the image."""


def _along_trajectory(
    arrays: Arrays, content: Mapping[str, Any], matrix: tuple[int, int] | None, limits: ReadLimits, **known: Any
) -> TrajectoryData:
    """Samples with their trajectory from named arrays.

    A trajectory in cycles or radians per pixel is converted if the header says so (``trajectory_unit``) and its values
    can be in that unit; its look proves nothing. Every sample is a measurement of its own, also where several lie at
    one place: none is averaged or left out.

    Parameters
    ----------
    arrays : mapping of str to array
        ``kspace`` (sample), (coil, sample) or (slice, coil, sample) and ``trajectory`` (sample, 2), columns ky and kx,
        or (sample, 3) with a third column kz of zeros; the header's ``trajectory_axes`` names the columns in another
        order, as ``["kx", "ky", "kz"]``. Both may have two axes of samples, (readout, sample). ``matrix``, the pixels
        (ky, kx) or one number for both, may stand in the header; ``coil_maps`` and ``reference`` show it, too. It may
        be left out if the trajectory reaches equally far along ky and kx, four cycles or more: then it is twice that
        far. ``density``, of the axes of samples, are density compensation weights of any scale. ``coil_maps`` and
        ``reference`` lie on the grid, (slice, coil, ky, kx) and (slice, ky, kx); without an axis of slices they are
        the same for all.
    content : mapping
        Fields of the header file: unit and columns of the trajectory, and the matrix.
    matrix : tuple of int, optional
        Pixels (ky, kx) of the image, if the file states none.
    limits : ReadLimits
        Bounds on slices, coils and the sides of the image.
    **known
        Further fields of a `TrajectoryData`.

    Raises
    ------
    InputError
        For arrays that do not fit together, a matrix that is unknown or impossible, positions that cannot be in the
        header's unit, and as `TrajectoryData`.
    """
    kspace, trajectory = arrays["kspace"], _in_order(arrays["trajectory"], content)
    if trajectory.shape[-1:] == (3,) and not trajectory[..., 2].any():  # kz of a plane
        trajectory = trajectory[..., :2]
    axes = trajectory.shape[:-1]
    if len(axes) not in (1, 2) or trajectory.shape[-1] != 2 or trajectory.dtype.kind not in "fiu":
        three = trajectory.shape[-1:] == (3,)
        got = f"{trajectory.dtype} {trajectory.shape}" + (", whose column kz is not zero" if three else "")
        wanted = "real numbers (sample, 2) or (readout, sample, 2): ky and kx in cycles per field of view"
        raise InputError("trajectory", got, wanted, _NAME_COLUMNS if three else "")
    lead = kspace.shape[: kspace.ndim - len(axes)]
    if kspace.shape[len(lead) :] != axes or len(lead) > 2:
        raise InputError("kspace", f"shape {kspace.shape}", f"(slice, coil, {', '.join(map(str, axes))}) of samples")
    slices, coils = (1, 1, *lead)[-2:]
    check_sides(limits, {"slice": slices, "coil": coils}, field="kspace: ")
    points = trajectory.reshape(-1, 2).astype(np.float64)
    named = "coil, readout, sample" if len(axes) == 2 else "coil, sample"
    shown = (arrays[name].shape[-2:] for name in _ON_GRID if name in arrays)
    given = (arrays.get("matrix"), content.get("matrix"), next(shown, None), matrix)
    pixels = next((one for one in given if one is not None), None)
    grid = _grid(pixels, points, limits, f"{coils} x {' x '.join(map(str, axes))} samples ({named})")
    density = arrays.get("density")
    if density is not None and (density.shape != axes or density.dtype.kind not in "fiu"):
        cure = "Leave the array out: the weights are then computed from the trajectory."
        raise InputError("density", f"{density.dtype} {density.shape}", f"real numbers {axes}, as trajectory", cure)
    on_grid = dict[str, Any]()
    for name, shape in zip(_ON_GRID, ((slices, coils, *grid), (slices, *grid)), strict=True):
        if name in arrays:
            if arrays[name].shape not in (shape, shape[1:]):
                raise InputError(name, f"shape {arrays[name].shape}", f"{shape[1:]} or {shape}")
            on_grid[name] = np.broadcast_to(_complex_or_real(name, arrays[name]), shape).copy()
    return TrajectoryData(
        sampling.to_complex64("kspace", kspace).reshape(slices, coils, -1),
        _per_field_of_view(points, content.get("trajectory_unit", _PER_FIELD_OF_VIEW), grid),
        grid,
        n_readouts=axes[0] if len(axes) == 2 else 1,
        density=None if density is None else density.reshape(-1).astype(np.float64),
        **known,
        **on_grid,
    )


def _complex_or_real(name: str, stored: NDArray[Any]) -> NDArray[np.complex64]:
    """Complex or real samples as complex64."""
    return sampling.to_complex64(name, stored.astype(np.complex128) if stored.dtype.kind in "iuf" else stored)


def _in_order(trajectory: NDArray[Any], content: Mapping[str, Any]) -> NDArray[Any]:
    """The columns of a trajectory in the order ky, kx and perhaps kz; the header may name another order."""
    if (named := content.get("trajectory_axes")) is None:
        return trajectory
    columns = _COLUMNS[: trajectory.shape[-1]]
    if not isinstance(named, list) or sorted(map(str, named)) != sorted(columns) or len(columns) < 2:
        wanted = f"the names of the {trajectory.shape[-1]} columns of the trajectory"
        raise InputError("trajectory_axes", str(named)[:60], wanted, _NAME_COLUMNS)
    return trajectory[..., [named.index(name) for name in columns]]


def _per_field_of_view(points: NDArray[np.float64], unit: str, grid: tuple[int, int]) -> NDArray[np.float64]:
    """Positions (sample, 2) converted from the header's unit, which their values have to fit."""
    if unit not in (_PER_FIELD_OF_VIEW, *_EDGES):
        raise InputError("trajectory_unit", repr(unit)[:60], " or ".join((_PER_FIELD_OF_VIEW, *_EDGES)))
    if not np.isfinite(points).all():
        return points  # refused later, by its number
    looks, largest, known_cure = look_of_trajectory(points, grid)
    if unit in _EDGES:
        too_small = unit == _RADIANS and 0 < largest <= _EDGES[_PER_PIXEL] * (1 + ROUNDING)
        if not too_small and largest <= _EDGES[unit] * (1 + ROUNDING):
            return points * grid / (2 * _EDGES[unit])
        cure = f'{known_cure} Leave "trajectory_unit" out of the header.'.lstrip()
        if looks in _EDGES:
            cure = f'Say "trajectory_unit": "{looks}" in the header.'
        got = f"{unit}, by its header, but values up to {largest:.4g}, which look like {looks}"
        wanted = "values in [-pi, pi], not all within 1/2" if unit == _RADIANS else "values in [-1/2, 1/2]"
        raise InputError("trajectory", got, wanted, cure)
    limits, reach = np.array(grid) / 2, np.abs(points).max(axis=0)
    if looks in _EDGES:
        cure = f'Say "trajectory_unit": "{looks}" in the JSON header next to the file. In Python: {known_cure}'
    elif looks.endswith((_LARGER_GRID, "per metre")) and (reach < _NEAR * limits).all():
        sides = np.maximum(grid, 2 * np.ceil(reach * (1 - ROUNDING))).astype(int).tolist()
        larger = str(sides[0]) if sides[0] == sides[1] else ",".join(map(str, sides))
        cure = f"Give a larger matrix (ky, kx), in the file if it states one: {option('matrix', larger)} is enough."
        if looks != _LARGER_GRID:
            cure += f" If the trajectory is in {looks} instead, {known_cure[0].lower()}{known_cure[1:]}"
        looks = _LARGER_GRID
    else:
        return points
    wanted = f"columns (ky, kx) in {_PER_FIELD_OF_VIEW}, up to {limits[0]:g} and {limits[1]:g} on a matrix of "
    got = f"values up to {largest:.4g}, which looks like {looks}"
    raise InputError("trajectory", got, f"{wanted}{grid[0]} x {grid[1]} pixels", cure)


def _grid(matrix: Any, points: NDArray[np.float64], limits: ReadLimits, held: str) -> tuple[int, int]:
    """The given pixels of the image, or those that the trajectory reaches; ``held`` names the samples in messages."""
    if matrix is not None:
        sides = np.array(matrix, dtype=object).ravel()
        real = [side for side in sides if isinstance(side, int | float | np.integer | np.floating)]
        whole = [int(side) for side in real if 4 <= side <= limits.max_side and side == np.floor(side)]
        if not len(whole) == sides.size in (1, 2):
            raise InputError("matrix", str(sides[:4]), f"one or two whole numbers, 4 to {limits.max_side}")
        return whole[0], whole[-1]
    reach = np.abs(points[np.isfinite(points).all(axis=1)]).max(axis=0, initial=0)
    got = f"none for {held} along a trajectory that reaches {reach[0]:.4g} along ky and {reach[1]:.4g} along kx"
    cure = f'Give the pixels (ky, kx) of the image: as {option("matrix", "N")}, an array matrix, or "matrix": '
    cure += "[N, N] in the JSON header next to the file."
    looks = next((unit for unit in _LOOKS if _LOOKS[unit] < reach.max() <= _EDGES[unit] * (1 + ROUNDING)), None)
    if looks is not None:
        got += f", which looks like {looks}"
        cure += f' If these are {looks}, the header has to say "trajectory_unit": "{looks}" too.'
    side = 2 * int(np.ceil(reach.max() * (1 - ROUNDING)))
    lopsided = abs(reach[0] - reach[1]) > _LIKE_SQUARE * reach.max()
    if lopsided or not 2 * reach.max() >= 2 * _LEAST_REACH or side > limits.max_side:
        raise InputError("matrix", got, "the pixels of the image", cure)
    return side, side
