"""What scripts get of a scan: images with error bars, volumes, and comparisons of strategies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, UsageError, described, require_counts
from mri_design.evaluation import plots
from mri_design.evaluation.metrics import ImageMetrics
from mri_design.evaluation.pictures import Drawing
from mri_design.evaluation.plots.panels import ErrorCurve, Frame, ImagePanel
from mri_design.evaluation.tables import percent
from mri_design.experiment.companion_images import RegionMask
from mri_design.experiment.coverage import Coverage
from mri_design.experiment.reconstruction import Reconstruction
from mri_design.interactive.running import Report, Saved, Told, image_png, mask_png, named_file
from mri_design.kinds import count_text
from mri_design.runs.compare import ComparisonResult, report_comparison
from mri_design.runs.image_sections import frame_of, layout_of
from mri_design.runs.measure import DrawnImage, RegionMean
from mri_design.runs.recon.report import report_reconstruction
from mri_design.runs.recon.run import ReconResult
from mri_design.runs.run import Ending, Run
from mri_design.runs.scan_facts import KnownSamples, KnownScan, NamedImage
from mri_design.runs.verdicts import RelativeError

WITHOUT_DRAWS = "the image has no draws, from which the errors of regions follow: ask for reconstruct(draws=32)"
_COLUMNS = 6
"""Slices in a row."""


@dataclass(frozen=True, repr=False, eq=False)
class ScanImage(Saved):
    """An image with error bars, in the units of the scan's file; ``numpy.asarray`` takes it as its complex pixels.

    `LoadedScan.reconstruct` and `ScanDesign.reconstruct` make it.

    Parameters
    ----------
    known : KnownScan or KnownSamples
        The slice, and what is known about it.
    mask : bool array, shape (ky,), (ky, kz) or (shot,)
        True for the lines, samples or shots behind it.
    images : sequence of NamedImage
        The image, and the zero-filled or gridded one of the same lines, where there is one.
    told : Told
        How it was computed.
    write : callable
        Writes the run's folder.
    coverage : Coverage, optional
        Within how many standard deviations 50, 80 and 95 % of the pixels of other scans are, where
        `LoadedScan.reconstruct` was given such (``calibrated_on``).
    """

    known: KnownScan | KnownSamples
    mask: NDArray[np.bool_]
    images: tuple[NamedImage, ...]
    told: Told
    write: Report
    _: KW_ONLY
    coverage: Coverage | None = None

    @property
    def reconstruction(self) -> Reconstruction:
        """Image, error bars, and how the computation ended."""
        return self.images[0].reconstruction

    @property
    def array(self) -> NDArray[np.complex64]:
        """Complex pixels, shape (ky, kx): what ``recon.npy`` of the verbs holds."""
        return np.asarray(self.reconstruction.image, dtype=np.complex64)

    @property
    def std(self) -> NDArray[np.float32] | None:
        """Standard deviation of every complex pixel, shape (ky, kx); None where the method knows none."""
        return self.reconstruction.std

    @property
    def mean(self) -> NDArray[np.complex64]:
        """The posterior mean, where that is the method: `array`, in the units of the scan's file."""
        return self.array

    @property
    def sd(self) -> NDArray[np.float32] | None:
        """`std`: standard deviation of every complex pixel, in the units of `mean`."""
        return self.std

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends of the interval that holds the true modulus of each pixel with this probability, shape of `array`.

        The interval is that of a Gaussian around the modulus of the mean, from 0 up. Real and imaginary part share the
        variance of a complex pixel, so that the modulus, which only the error along its phase changes, deviates by
        `sd` over the square root of 2. The standard deviations are those of the image: where readouts could be held
        back they are scaled to the error that those predict (`Reconstruction.std_factor`; see docs/reconstruct.md).
        Pixels are wrong together: for means of regions ask `measure`, for anything else `sample`.

        Parameters
        ----------
        level : float
            Between 0 and 1.

        Returns
        -------
        tuple of float arrays
            Lower and upper ends, in the units of `mean`.

        Raises
        ------
        InputError
            For another level.
        UsageError
            Where the method knows no error bars.
        """
        if not (isinstance(level, Real) and 0 < level < 1):
            raise InputError("level", described(level), "a probability between 0 and 1, as 0.95")
        if self.std is None:
            raise UsageError(f"{self.method} has no error bars: ask for reconstruct(method='mean')")
        size = np.abs(self.array).astype(np.float64)
        half = NormalDist().inv_cdf((1 + float(level)) / 2) * self.std / np.sqrt(2)
        return np.maximum(size - half, 0), size + half

    def sample(self, count: int = 32, *, seed: int | None = None) -> NDArray[np.complex64]:
        """Images that the posterior holds possible, drawn now: shape (draw, ky, kx), in the units of `mean`.

        They deviate from the image by `sd`, and pixels vary together as errors of images do. With the seed of the image
        they are those of ``reconstruct(draws=count)``; with another one they are others.

        Parameters
        ----------
        count : int
            Of draws. Each takes a linear system to solve: a part of the time that the image took.
        seed : int, optional
            Of the draws; by default that of the image.

        Raises
        ------
        UsageError
            Where the method has no posterior.
        InputError
            For no count, and no seed.
        """
        require_counts(count=count, least=1)
        require_counts(seed=0 if seed is None else seed, least=0)
        sampler = self.reconstruction.sampler
        if sampler is None:
            raise UsageError(f"{self.method} has no posterior to draw from: ask for reconstruct(method='mean')")
        return np.asarray(sampler(count, seed), dtype=np.complex64)

    @property
    def draws(self) -> NDArray[np.complex64] | None:
        """Images that the posterior holds possible, shape (draw, ky, kx), around `array` with `std`.

        None where `LoadedScan.reconstruct` was not asked for ``draws``. What is computed from several pixels varies
        over them as it is uncertain: a map of standard deviations does not tell how pixels vary together.
        """
        return self.reconstruction.draws

    @property
    def method(self) -> str:
        """The method that made it, see `reconstruct`; the zero-filled image of a trajectory is "gridded"."""
        return self.images[0].name

    @property
    def errors(self) -> ImageMetrics | None:
        """Errors of the magnitude against the reference, with its noise; None where there is none. `error` judges."""
        return self.images[0].errors

    @property
    def error(self) -> RelativeError:
        """Relative error of the complex image as its error bars predict it, and as found without the reference's noise.

        ``print(image.error)`` says both, ``image.error.predicted`` and ``image.error.found`` are the numbers. Beside
        an image that was given, which has no phase to compare, both are those of the modulus.
        """
        return self.images[0].error

    @property
    def zero_filled(self) -> NDArray[np.complex64] | None:
        """What the same lines show without a model, shape (ky, kx); None where the image is that itself."""
        return None if len(self.images) < 2 else np.asarray(self.images[1].reconstruction.image, dtype=np.complex64)

    @property
    def reference(self) -> NDArray[Any] | None:
        """What was given, the true image, or the scan's own from all its lines, shape (ky, kx); None without any."""
        return self.known.shown_reference

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype=dtype, copy=True if copy is None else copy)

    def _write(self, run: Run) -> Ending:
        return self.write(run)

    def measure(
        self,
        region: ArrayLike | str | os.PathLike[str],
        *,
        against: ArrayLike | str | os.PathLike[str] | None = None,
    ) -> list[RegionMean]:
        """Mean moduli of regions and their differences, with the errors that draws give them: ``mri-design measure``.

        Parameters
        ----------
        region : array, str or Path
            Flags, or whole numbers from 1 for several regions, on the grid of the image, or a file of such.
        against : array, str or Path, optional
            Another region: differences to it are told, in the place of those of all pairs.

        Returns
        -------
        list of RegionMean
            Of every region, then of the differences: ``value``, ``sd``, ``interval(0.95)``, and ``true`` where a
            reference is known.

        Raises
        ------
        UsageError
            Where the image has no draws.
        InputError
            Where a mask cannot be used, or does not lie on the image.

        Examples
        --------
        >>> image = scan.reconstruct(draws=32)
        >>> lesion, muscle, difference = image.measure(mask, against=other)
        """
        masks = [
            RegionMask.read(Path(named_file(one))) if isinstance(one, str | os.PathLike) else RegionMask.of(one)
            for one in (region, *(() if against is None else (against,)))
        ]
        return self._drawn().means(*masks)

    def _drawn(self) -> DrawnImage:
        """The image with its draws, to be measured."""
        draws, truth, data = self.draws, self.reference, self.known.data
        if draws is None:
            raise UsageError(WITHOUT_DRAWS)
        places = getattr(data, "geometry", None) or (None,)
        return DrawnImage("image", self.array[None], lambda _: draws, None if truth is None else truth[None], places)

    def plot(self) -> Drawing:
        """The image, its error bars and, where a reference is known, the actual error: a figure of matplotlib."""
        caption = str(self.error)
        return plots.image_with_error_bars(self.array, self.std, self.reference, self._frame, self.method, caption)

    def to_nifti(
        self, path: str | Path, *, field_of_view: tuple[float, float] | None = None, overwrite: bool = False
    ) -> list[str]:
        """Write magnitude, error bars (``..._std``) and coil maps (``..._maps``) as NIfTI, with size and place.

        Parameters
        ----------
        path : str or Path
            Of the magnitude; the others stand beside it.
        field_of_view : tuple of float, optional
            (ky, kx) in metres; by default that of the scan, where its file says.
        overwrite : bool
            Whether files that are there may be replaced.

        Returns
        -------
        list of str
            What is in the files, and what nobody knows, as ``mri-design export --to nifti`` says it.

        Raises
        ------
        UsageError
            Where a file is there already, or the name has another ending than ``.nii`` or ``.nii.gz``.
        """
        return self._exported("nifti", path, field_of_view=field_of_view, overwrite=overwrite)

    def to_dicom(
        self, path: str | Path, *, field_of_view: tuple[float, float] | None = None, overwrite: bool = False
    ) -> list[str]:
        """Write magnitude and error bars as DICOM, as `to_nifti` does."""
        return self._exported("dicom", path, field_of_view=field_of_view, overwrite=overwrite)

    @property
    def facts(self) -> dict[str, str]:
        """Main facts in words, by what they are about."""
        made, candidates = self.reconstruction, self.known.slice_model.candidates
        std = made.std
        bars = "none of this method" if std is None else f"median std {np.median(std):.3g} per complex pixel"
        scaled = f", {made.std_factor}" if made.std_factor is not None else ""
        found = self.errors
        others = "" if found is None else f"PSNR {found.psnr:.1f} dB and SSIM {found.ssim:.3f} inside the object"
        rows, columns = made.image.shape
        count = int(np.count_nonzero(self.mask))
        return {
            "image": f"{rows} x {columns} pixels of {count_text(count, candidates.unit)} out of {self.mask.size}",
            "error bars": bars + scaled,
            "coverage": "" if self.coverage is None else self.coverage.short,
            "error": ", ".join(filter(None, (str(self.images[0].error), others))),
            "ended": made.convergence.status.value,
        }

    @property
    def _title(self) -> str:
        return f"ScanImage of {self.known.data.name}, {self.method}"

    @property
    def _frame(self) -> Frame:
        return frame_of(self.known)

    @property
    def _pictures(self) -> Sequence[tuple[str, bytes]]:
        bars = [] if self.std is None else [("error bars", image_png(self.std, self._frame.layout, error=True))]
        return [("image", image_png(self.array, self._frame.layout)), *bars]


@dataclass(frozen=True, repr=False, eq=False)
class ScanVolume(ScanImage):
    """Images of several slices, with error bars; what is said of one slice is said of the one in the middle.

    Parameters
    ----------
    known, mask, images, told, write, coverage
        As for `ScanImage`, of the slice in the middle.
    result : ReconResult
        What ``mri-design recon`` computes of several slices.
    """

    result: ReconResult

    @property
    def error(self) -> RelativeError:
        """As of an image, means over the slices, which the verb ends with; ``images[0].error`` is of the one shown."""
        return self.result.error

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the slices in the scan, in the order of the arrays."""
        return tuple(self.result.numbers)

    @property
    def array(self) -> NDArray[np.complex64]:
        """Complex pixels, shape (slice, ky, kx)."""
        return np.stack(list(self.result.stack("recon")))

    @property
    def std(self) -> NDArray[np.float32] | None:
        """Standard deviation of every complex pixel, shape (slice, ky, kx); None where the method knows none."""
        known = "std" in self.result.kept.arrays(self.result.numbers[0])
        return np.stack(list(self.result.stack("std"))) if known else None

    def sample(self, count: int = 32, *, seed: int | None = None) -> NDArray[np.complex64]:
        """The first draws of those that the volume was made with, shape (slice, draw, ky, kx): its posteriors are gone.

        Raises
        ------
        UsageError
            Where it was made with fewer, or another seed is asked for.
        """
        require_counts(count=count, least=1)
        draws = self.draws
        if draws is None or draws.shape[1] < count or seed not in (None, self.told.seed):
            raise UsageError(f"a volume keeps the draws that it is made with: ask for reconstruct(draws={count})")
        return draws[:, :count]

    @property
    def draws(self) -> NDArray[np.complex64] | None:
        """Images that the posterior holds possible, shape (slice, draw, ky, kx); None where none were asked for."""
        known = "draws" in self.result.kept.arrays(self.result.numbers[0])
        return np.stack(list(self.result.stack("draws"))) if known else None

    def _drawn(self) -> DrawnImage:
        numbers, kept = self.result.numbers, self.result.kept
        if "draws" not in kept.arrays(numbers[0]):
            raise UsageError(WITHOUT_DRAWS)
        known = all("reference" in kept.arrays(number) for number in numbers)
        truths = np.stack(list(self.result.stack("reference"))) if known else None
        places = self.result.places
        return DrawnImage("image", self.array, lambda at: kept.arrays(numbers[at])["draws"], truths, places)

    def plot(self) -> Drawing:
        """The slices side by side on one grey scale: a figure of matplotlib."""
        panels = [ImagePanel(one, f"slice {number}") for number, one in zip(self.numbers, self.array, strict=True)]
        return plots.image_grid(panels, self._frame, _COLUMNS)

    @property
    def facts(self) -> dict[str, str]:
        """Main facts in words, by what they are about."""
        of_one = super().facts
        every = [one.converged for one in self.result.facts]
        ended = "converged" if all(every) else f"{every.count(False)} of {len(every)} slices not converged"
        mean = f", mean error {self.error}" if str(self.error) else ""
        slices = f"{len(self.numbers)} of {self.result.count}{mean}; slice {self.result.shown} is described below"
        return {"slices": slices, **of_one, "ended": ended}

    @property
    def _title(self) -> str:
        return f"ScanVolume of {self.known.data.name.partition('[')[0]}, {self.method}"

    @property
    def _pictures(self) -> Sequence[tuple[str, bytes]]:
        """Some slices, evenly spread over the volume."""
        every = list(zip(self.numbers, self.array, strict=True))[:: -(-len(self.numbers) // _COLUMNS)]
        return [(f"slice {number}", image_png(one, self._frame.layout)) for number, one in every]


def image_of(result: ReconResult, told: Told) -> ScanImage:
    """What was reconstructed as an image, or of several slices as a volume."""
    images, covered = tuple(result.images), result.coverage
    write = partial(report_reconstruction, result=result)
    if result.several:
        return ScanVolume(result.known, result.mask, images, told, write, result, coverage=covered)
    return ScanImage(result.known, result.mask, images, told, write, coverage=covered)


@dataclass(frozen=True, repr=False, eq=False)
class StrategyComparison(Saved):
    """Strategies compared on one scan; `LoadedScan.compare` makes it.

    Parameters
    ----------
    result : ComparisonResult
        What ``mri-design compare`` computes.
    told : Told
        How it was computed.
    """

    result: ComparisonResult
    told: Told

    @property
    def rows(self) -> Sequence[Mapping[str, object]]:
        """Mean error and its spread for each strategy and number of lines, as summary.csv has them."""
        return self.result.errors.tables["summary"]

    @property
    def methods(self) -> Sequence[Mapping[str, object]]:
        """Mean errors of every method on the masks of each strategy, as methods.csv has them; empty without methods."""
        return self.result.methods

    @property
    def errors(self) -> dict[str, dict[int, float]]:
        """Mean relative error by strategy and number of lines."""
        counts = sorted(self.result.study.lines)
        return {
            name: dict(zip(counts, np.mean(runs, axis=0).tolist(), strict=True))
            for name, runs in self.result.errors.runs.items()
        }

    def plot(self) -> Drawing:
        """Errors against the number of lines: a figure of matplotlib."""
        study = self.result.study
        counts = np.array(sorted(study.lines))
        curves = [ErrorCurve(name, counts, runs) for name, runs in self.result.errors.runs.items()]
        return plots.error_against_lines(curves, bands=False, unit=study.tests[0].slice_model.candidates.unit)

    @property
    def facts(self) -> dict[str, str]:
        """Errors in words, by strategy, those of the four best."""
        best = dict(sorted(self.errors.items(), key=lambda one: min(one[1].values()))[:4])
        facts = {
            name: ", ".join(f"{percent(error, 3)} with {count}" for count, error in found.items()).replace("\xa0", " ")
            for name, found in best.items()
        }
        return facts | ({"...": f"{len(self.errors) - 4} more in .errors"} if len(self.errors) > 4 else {})

    @property
    def _title(self) -> str:
        study = self.result.study
        return f"StrategyComparison on {study.tests[0].name}, error by number of {study.counted}"

    def _write(self, run: Run) -> Ending:
        return report_comparison(run, self.result)

    @property
    def _pictures(self) -> Sequence[tuple[str, bytes]]:
        pictures = list[tuple[str, bytes]]()
        for one in self.result.shown:
            layout = layout_of(one.readouts, self.result.orientation)
            if one.readouts.name in ("lines", "plane"):
                pictures.append((f"{one.strategy}: mask", mask_png(one.mask, layout)))
            pictures.append((f"{one.strategy}: image", image_png(one.reconstruction.image, layout)))
        return pictures
