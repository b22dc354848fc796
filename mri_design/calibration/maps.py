"""Coil maps: estimated from the lines at hand, checked by coils held back or by what they explain, on other grids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.calibration.coils import central, coil_directions, espirit, gapless_side, measured_samples
from mri_design.calibration.nlinv import BLOCK, joint_estimate
from mri_design.errors import InputError, option
from mri_design.operators.conventions import to_image, to_kspace

MapMethod = Literal["auto", "espirit", "nlinv"]
"""How maps are estimated; see `maps_from_lines`."""

USUAL_LINES = 24
"""Centre lines from which ESPIRiT takes maps, and from which on it is preferred (results/coils/maps.md)."""
FEWEST_FOR_ESPIRIT = 8
_FEWEST = 2
"""Without neighbours at the centre, image and maps can take each other's place: nothing tells a fold from an image."""
_KEPT = 2
"""Estimates of `OwnMaps` that are remembered: those of the decision at hand and of the one before."""
_HELD_PART = 8
"""One in so many coils is held back of each line."""
_COILS_THAT_PREDICT = 4
BAD_PREDICTION = 0.2
"""Relative error of coils held back from which on maps are said to predict badly (results/coils/maps.md)."""

_PART, _MARGIN = 16, 4
"""The centre reaches to one part in 16 of the grid on each side; the image may reach four samples further."""
_DAMPING, _ITERATIONS = 1e-2, 20


@dataclass(frozen=True)
class CoilMapEstimate:
    """Coil maps of one slice, and what they rest on.

    Parameters
    ----------
    maps : complex64 array, shape (coil, ky, kx)
        Unit root-sum-of-squares at every pixel.
    method : {"espirit", "nlinv"}
        ESPIRiT on the gapless centre, or image and maps together (NLINV) from all lines of the central block.
    centre : int
        Side of the gapless square at the centre of k-space.
    lines : int
        Measured lines of the central 32 that they rest on.
    prediction_error : float
        Relative error of coils that were held back (`error_of_held_coils`); NaN where none were.
    samples : int
        Of a plane, or of lines that stop short, the measured samples of the central 32 x 32; 0 of whole lines.
    """

    maps: NDArray[np.complex64]
    method: str
    centre: int
    lines: int
    prediction_error: float = float("nan")
    samples: int = 0

    @property
    def predicts_badly(self) -> bool:
        """Whether coils held back speak against the maps; never of fewer than four coils, which predict little."""
        return is_bad(self.prediction_error, len(self.maps))

    @property
    def rests_on(self) -> int:
        """How many lines the maps rest on: ESPIRiT's gapless ones, or all measured ones of the block."""
        return min(self.centre, USUAL_LINES) if self.method == "espirit" else self.lines


def is_bad(prediction_error: float, n_coils: int) -> bool:
    """Whether coils held back speak against maps; see `CoilMapEstimate.predicts_badly`."""
    return n_coils >= _COILS_THAT_PREDICT and prediction_error > BAD_PREDICTION


def method_for(centre: int, lines: int, method: MapMethod) -> Literal["espirit", "nlinv"]:
    """The method by name: of ``auto`` ESPIRiT where it may use 24 gapless lines, else NLINV.

    Parameters
    ----------
    centre : int
        Side of the gapless square at the centre of k-space.
    lines : int
        Centre lines that may be used at most.
    method : {"auto", "espirit", "nlinv"}
        As asked.
    """
    if method != "auto":
        return method
    return "espirit" if min(centre, lines) >= USUAL_LINES else "nlinv"


def block_energies(kspace: NDArray[np.complex64], samples: NDArray[np.bool_]) -> NDArray[np.complex128]:
    """Sum over the measured samples s of the central block of s s^H, shape (coil, coil), for `coil_directions`."""
    inner = np.where(central(samples, BLOCK), central(kspace, BLOCK), 0).reshape(len(kspace), -1).astype(np.complex128)
    return np.asarray(inner @ inner.conj().T)


def maps_from_lines(
    kspace: NDArray[np.complex64],
    measured: NDArray[np.bool_],
    *,
    method: MapMethod = "auto",
    directions: NDArray[np.complex128] | None = None,
    noise_variance: float = 0.0,
    check: bool = True,
    rough: bool = False,
) -> CoilMapEstimate:
    """Coil maps of one slice from the lines, or samples, that were measured; nothing else is looked at.

    The phase of the maps is that of `estimate_coil_maps`: their combination along the strongest direction of coil space
    is real and positive.

    Parameters
    ----------
    kspace : complex64 array, shape (coil, ky, kx)
        Of white coils (`prewhiten`). What stands where nothing was measured is of no account.
    measured : bool array, shape (ky,) or (ky, kx)
        Which lines or samples were measured.
    method : {"auto", "espirit", "nlinv"}
        By default ESPIRiT where 24 gapless lines were measured, and NLINV where there are fewer.
    directions : complex array, shape (coil, coil), optional
        `coil_directions`, so that the phase of the maps runs on from slice to slice; by default those of this slice.
    noise_variance : float
        Per real component of a sample, for the check alone (`error_of_held_coils`).
    check : bool
        Whether to hold coils back line by line and see how well they are predicted.
    rough : bool
        Whether NLINV may solve less accurately, with fewer iterations: for maps on the way to those of an image.

    Raises
    ------
    InputError
        Where the centre of k-space was not measured, fewer than eight gapless lines were for ESPIRiT, or the central
        samples hold no signal.
    """
    if method not in get_args(MapMethod):
        raise InputError(field="maps", got=repr(method), wanted="'auto', 'espirit' or 'nlinv'")
    samples = measured if measured.ndim == 2 else np.repeat(measured[:, None], kspace.shape[-1], axis=1)
    centre = gapless_side(samples)
    method = method_for(centre, USUAL_LINES, method)
    fewest = FEWEST_FOR_ESPIRIT if method == "espirit" else _FEWEST
    if centre < fewest:
        got = f"{centre} gapless lines and columns around the centre of k-space"
        without = f", or leave {option('maps', 'espirit')} out." if method == "espirit" else "."
        cure = f"Give coil maps ({option('maps')} or {option('maps-from')}), or measure a centre{without}"
        raise InputError("measured", got, f"at least {fewest} for coil calibration", cure)
    energies = block_energies(kspace, samples)
    if not energies.any():
        raise InputError(field="kspace", got="no signal in the central lines", wanted="signal to calibrate with")
    directions = coil_directions(energies) if directions is None else directions
    inside = central(samples, BLOCK)
    lines, count = int(inside.any(axis=1).sum()), int(inside.sum())
    count = 0 if count == lines * inside.shape[1] else count
    if method == "espirit":
        whole = np.zeros(kspace.shape, np.complex64)
        central(whole, centre)[:] = np.where(central(samples, centre), central(kspace, centre), 0)
        maps = espirit(whole, directions, min(centre, USUAL_LINES))
    else:
        maps = joint_estimate(kspace, samples, rough=rough).maps((samples.shape[0], samples.shape[1]))
        strongest = np.tensordot(directions[:, 0].conj(), maps, axes=1)
        maps *= np.exp(-1j * np.angle(strongest)).astype(np.complex64)
    missed = error_of_held_coils(kspace, samples, noise_variance) if check else float("nan")
    return CoilMapEstimate(maps, method, centre, lines, missed, count)


@briefly
@dataclass(frozen=True)
class OwnMaps:
    """Estimates of the coil maps of one slice, by which of its samples had been measured.

    Maps depend on the measured samples alone, so that whoever asks, in whichever process and order, gets the same bits.
    The last ones are remembered.

    Parameters
    ----------
    method : {"auto", "espirit", "nlinv"}
        As `maps_from_lines` takes it.
    noise_variance : float
        Of the samples, likewise.
    """

    method: MapMethod = "auto"
    noise_variance: float = 0.0
    _made: dict[bytes, CoilMapEstimate] = field(default_factory=dict, init=False, repr=False, compare=False)

    def of(
        self, kspace: NDArray[np.complex64], measured: NDArray[np.bool_], *, rough: bool = False, check: bool = False
    ) -> CoilMapEstimate:
        """The maps of a slice from its ``measured`` samples.

        Parameters
        ----------
        kspace : complex array, shape (coil, ky, kx)
            Of white coils, always of the same slice.
        measured : bool array, shape (ky,) or (ky, kx)
            Lines or samples to look at.
        rough : bool
            Whether the maps are those of a step on the way to an image, see `maps_from_lines`.
        check : bool
            Whether the estimate has to say how well it predicts lines that are held back.

        Raises
        ------
        InputError
            Where these are too few for any maps.
        """
        which = np.packbits(measured).tobytes() + bytes([rough])
        if not check and which + b"checked" in self._made:
            check = True
        key = which + (b"checked" if check else b"")
        if key not in self._made:
            estimate = maps_from_lines(
                kspace,
                measured,
                method=self.method,
                noise_variance=self.noise_variance,
                check=check,
                rough=rough,
            )
            while len(self._made) >= _KEPT:
                del self._made[next(iter(self._made))]
            self._made[key] = estimate
        return self._made[key]

    def __getstate__(self) -> dict[str, object]:
        """Without what is remembered: another process makes its own."""
        return {"method": self.method, "noise_variance": self.noise_variance, "_made": {}}


def error_of_held_coils(
    kspace: NDArray[np.complex64], samples: NDArray[np.bool_], noise_variance: float = 0.0
) -> float:
    """Relative error of NLINV on one in eight coils of each measured line of the block, which it does not get.

    The other coils have the same line, so that maps are judged and not the width of gaps, and few lines are enough.
    What it says holds for any maps of these lines: whether one image and smooth maps explain all coils. The noise of
    the samples that were held back is no error of maps, nor is as much again that the prediction has from the others:
    both are taken off, so that sound maps of noisy scans are not called bad (results/coils/maps.md).

    Parameters
    ----------
    kspace : complex64 array, shape (coil, ky, kx)
        Of white coils.
    samples : bool array, shape (ky, kx) or (coil, ky, kx)
        Which were measured, or may be looked at.
    noise_variance : float
        Per real component of a sample.

    Returns
    -------
    float
        NaN where the samples hold no signal, or no more than noise has.
    """
    kept = np.broadcast_to(samples, kspace.shape).copy()
    inside = central(kept, BLOCK).copy()
    order = np.cumsum(inside.any(axis=(0, 2))) - 1
    held = ((np.arange(len(kspace))[:, None] + order) % _HELD_PART == 0)[:, :, None] & inside
    central(kept, BLOCK)[held] = False
    wanted = central(kspace, BLOCK)[held]
    noise = 2 * noise_variance * wanted.size
    signal = float(np.linalg.norm(wanted)) ** 2 - noise
    if not signal > 0 or not np.any(kspace[kept]):
        return float("nan")
    missed = float(np.linalg.norm(joint_estimate(kspace, kept, rough=True).block[held] - wanted)) ** 2 - 2 * noise
    return float(np.sqrt(max(missed, 0.0) / signal))


def share_explained(
    kspace: NDArray[np.complex64], coil_maps: NDArray[np.complex64], noise_variance: float = 0.0
) -> float:
    r"""Share of the energy of the central samples that an image seen through coil maps explains, 0 to 1.

    The image u of low resolution minimises :math:`\|y - P F S u\|^2 + 0.01 \|u\|^2`, where P keeps the measured samples
    y of the centre of k-space, F is the Fourier transform and S multiplies with the maps. So an undersampled scan is
    judged as fairly as a complete one, as long as it has clearly more coils than its acceleration. What the noise alone
    leaves unexplained is taken off.

    The right maps explain nearly all. Maps of other coils, in another order, or with rows and columns exchanged explain
    less, far less with many coils. Two coils explain nearly everything with any smooth maps, and cannot be judged. The
    shares of several scans are in results/benchmarks/measured-once.md.

    Parameters
    ----------
    kspace, coil_maps : complex64 array, shape (slice, coil, ky, kx)
        Samples, zero where none was measured, and maps.
    noise_variance : float
        Per real component, 0 where it is not known.
    """
    grid = (kspace.shape[-2], kspace.shape[-1])
    unexplained = total = 0.0
    for stack, fine_maps in zip(kspace, coil_maps, strict=True):
        coarse = _coarse(grid)
        inner = np.ix_(*(n // 2 - m // 2 + np.arange(m) for n, m in zip(grid, coarse, strict=True)))
        samples, maps = stack[:, *inner], fine_maps[:, *_pixels(grid, coarse)]
        centre = measured_samples(samples) & _central(coarse, grid, 0)
        samples = np.where(centre, samples, 0).astype(np.complex128)
        energy = float(np.sum(np.abs(samples) ** 2))
        if energy > 0:
            support = _central(coarse, grid, _MARGIN)
            lost = energy * _residual(samples / np.sqrt(energy), maps.astype(np.complex128), centre, support)
            unexplained += max(0.0, lost - 2 * noise_variance * len(stack) * np.count_nonzero(centre))
            total += energy
    return 1 - unexplained / total if total > 0 else 0.0


def _reach(n: int, margin: int) -> int:
    return max(4, n // _PART) + margin


def _coarse(shape: tuple[int, int]) -> tuple[int, ...]:
    """A grid of the same field of view that holds the image's band twice over: maps are smooth enough for it."""
    return tuple(min(n, 2 * (2 * _reach(n, _MARGIN) + 1)) for n in shape)


def _pixels(shape: tuple[int, int], coarse: tuple[int, ...]) -> tuple[NDArray[np.int_], ...]:
    """Where the coarse grid's pixels lie on the fine one."""
    places = (
        np.rint((np.arange(m) - m // 2) * (n / m) + n // 2).astype(int) for n, m in zip(shape, coarse, strict=True)
    )
    return np.ix_(*places)


def _central(coarse: tuple[int, ...], shape: tuple[int, int], margin: int) -> NDArray[np.bool_]:
    inside = np.zeros(coarse, dtype=bool)
    ranges = (
        slice(max(0, m // 2 - _reach(n, margin)), m // 2 + _reach(n, margin) + 1)
        for m, n in zip(coarse, shape, strict=True)
    )
    inside[tuple(ranges)] = True
    return inside


def _residual(
    samples: NDArray[np.complex128], maps: NDArray[np.complex128], centre: NDArray[np.bool_], support: NDArray[np.bool_]
) -> float:
    """Energy of what is left of samples of unit energy, after the best image whose spectrum lies in the support."""
    band = np.flatnonzero(support)

    def seen(u: NDArray[np.complex128]) -> NDArray[np.complex128]:
        spectrum = np.zeros(centre.size, dtype=np.complex128)
        spectrum[band] = u
        return np.asarray(np.where(centre, to_kspace(maps * to_image(spectrum.reshape(centre.shape))), 0))

    def back(r: NDArray[np.complex128]) -> NDArray[np.complex128]:
        return np.asarray(to_kspace(np.sum(maps.conj() * to_image(r), axis=0)).ravel()[band])

    from scipy.sparse.linalg import LinearOperator, cg  # here: few scans come with maps

    normal = LinearOperator((band.size, band.size), matvec=lambda u: back(seen(u)) + _DAMPING * u, dtype=np.complex128)
    image, _ = cg(normal, back(samples), rtol=1e-3, maxiter=_ITERATIONS)
    return float(np.sum(np.abs(samples - seen(image)) ** 2))


def places_in(
    of: tuple[int, ...], shape: tuple[int, int], ratio: tuple[float, float]
) -> tuple[NDArray[np.float64], ...]:
    """Where the pixels of a grid lie in another one around the same centre, in its pixels: rows and columns.

    Parameters
    ----------
    of, shape : (int, int)
        Rows and columns of the other grid, and of the grid whose pixels are placed.
    ratio : (float, float)
        As in `maps_on_grid`.
    """
    along = ((np.arange(n) - n // 2) / n * wide * m + m // 2 for n, m, wide in zip(shape, of, ratio, strict=True))
    rows, columns = np.meshgrid(*along, indexing="ij")
    return rows, columns


def maps_on_grid(
    maps: NDArray[np.complex64], shape: tuple[int, int], ratio: tuple[float, float] = (1.0, 1.0)
) -> NDArray[np.complex64]:
    """Coil maps between their pixels, linearly, and beyond their field of view as at its edge.

    Parameters
    ----------
    maps : complex64 array, shape (coil, row, column)
        Smooth, with pixel ``N // 2`` at the centre.
    shape : (int, int)
        Rows and columns of the new grid.
    ratio : (float, float)
        Field of view of the new grid over that of the maps, along rows and columns.

    Returns
    -------
    complex64 array, shape (coil, *shape)
        With unit root-sum-of-squares wherever there are maps.
    """
    from scipy.ndimage import map_coordinates

    places = places_in(maps.shape[-2:], shape, ratio)
    found = np.stack([map_coordinates(coil, places, order=1, mode="nearest") for coil in maps])
    strength = np.linalg.norm(found, axis=0)
    return np.asarray(found / np.where(strength > 0, strength, 1), dtype=np.complex64)
