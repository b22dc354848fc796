"""Results of a scan in memory: images with error bars, designs, and comparisons of strategies.

The command line computes the same. A result is written by its `save` or `report`; consoles and notebooks show it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.design.trace import DesignTrace
from mri_design.errors import (
    UsageError,
    number_array,
    probability,
    require_counts,
    require_instance,
)
from mri_design.evaluation import plots
from mri_design.evaluation.metrics import ImageMetrics, RelativeError
from mri_design.evaluation.plots.pictures import Drawing, ImagePanel, Layout, layout_of, scale_top
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import percent
from mri_design.evidence.regions import RegionMean
from mri_design.experiment.companion_images import RegionMask
from mri_design.experiment.reconstruction import Image, Method
from mri_design.interactive.scan import Computation, Shown, named_file, naming_arguments
from mri_design.kinds import count_text
from mri_design.runs.compare import ComparisonResult, report_comparison
from mri_design.runs.design import DesignResult
from mri_design.runs.design_report import report_design
from mri_design.runs.export import export_run
from mri_design.runs.image_sections import StoredImage
from mri_design.runs.known_slice import KnownSlice
from mri_design.runs.maps import QuantityMap, fit_run
from mri_design.runs.measure import means_of, slices_of
from mri_design.runs.provenance import phrase
from mri_design.runs.recon import ReconResult, report_reconstruction
from mri_design.runs.store import Report, Run
from mri_design.runs.stored_run import StoredComparison, StoredRun, read_result, write_made_files
from mri_design.signals.models import SignalModel

METRICS = "metrics.csv"
_COLUMNS = 6
"""Slices in a row."""
_BARCODE = 24
"""Pixels that a mask of lines is high, or wide."""


class Saved(Shown):
    """Base of results that can be written: `save` and `report` write the folder that the command line writes."""

    computation: Computation | None

    @property
    def result(self) -> Any:
        """Everything that was computed; None after `load_run`, when the scan is not in memory."""
        return None if self.computation is None else self.computation.result

    @property
    def computed(self) -> Computation:
        """The computation; a UsageError after `load_run`, when the scan is not in memory."""
        if self.computation is None:
            raise UsageError("the result was read from a folder without its scan: copy the folder, or compute it again")
        return self.computation

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write arrays, tables and manifest into a folder, as the command line does. `load_run` reads it.

        Raises
        ------
        UsageError
            If the folder holds a finished run, or other files.
        """
        return self._saved(folder, overwrite=overwrite, reported=False)

    def report(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """`save`, with figures and ``report.html``, whose path is returned."""
        return self._saved(folder, overwrite=overwrite, reported=True) / "report.html"

    @naming_arguments
    def _saved(self, folder: str | Path, *, overwrite: bool, reported: bool) -> Path:
        folder, made = named_file(folder), self.computed
        with RunFolder(folder, overwrite=overwrite, reported=reported) as kept:
            if not overwrite and kept.existing("manifest.json") is not None:
                raise UsageError(f"{kept.path.name} holds a finished run; give another folder, or overwrite=True")
            kept.begin()
            work, began = made.work, time.perf_counter() - made.seconds
            run = Run(folder=kept, seed=work.seed, jobs=work.jobs, began=began)
            run.save(made.record, _REPORTS[type(made.result)](kept, made.result))
        return Path(folder)


_REPORTS: Mapping[type, Callable[[RunFolder, Any], Report]] = {
    DesignResult: report_design,
    ReconResult: report_reconstruction,
    ComparisonResult: report_comparison,
}


@naming_arguments
def exported(
    run: StoredRun,
    form: str,
    path: str | Path,
    field_of_view: tuple[float, float] | None = None,
    *,
    overwrite: bool = False,
) -> list[str]:
    """Write the files of one format (`mri-design export`), and return sentences that describe them."""
    if field_of_view is not None:
        wanted = "two positive numbers of metres, along ky and kx, as (0.22, 0.22)"
        number_array("field_of_view", field_of_view, wanted=wanted, shape=(2,), kind="positive")
    made = export_run(run, Path(named_file(path)), form=form, field_of_view=field_of_view)
    write_made_files(made, overwrite=overwrite)
    return list(made.sentences)


def image_png(image: NDArray[np.generic], layout: Layout, *, error: bool = False) -> bytes:
    """Magnitude of an image, or its error bars in the colours of errors, as it lies on a report's page."""
    pixels = np.abs(image)
    return plots.pixels_png(pixels, scale_top([pixels]), layout, error=error)


def mask_png(mask: NDArray[np.bool_], layout: Layout) -> bytes:
    """A mask as a picture: lines as bars, of which each is a pixel thick, and samples of a plane as pixels."""
    flags = mask if mask.ndim == 2 else np.repeat(mask[:, np.newaxis], _BARCODE, axis=1)
    return plots.pixels_png(flags.astype(float), 1.0, layout)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ScanImage(Saved, StoredImage):
    """An image with error bars; of several slices, all of them along the first axis.

    `LoadedScan.reconstruct`, `ScanDesign.reconstruct` and `load_run` return it. ``numpy.asarray(image)`` gives its
    complex pixels. It has

    - ``array``, complex pixels (ky, kx), or (slice, ky, kx), in the units of the scan's file;
    - ``std``, the standard deviation of every complex pixel, same shape and units; None if the method has no posterior;
    - ``error``, the relative error of the image, predicted from ``std`` and found against a reference;
    - ``mask``, the lines that were used; ``maps``, coil sensitivity maps (coil, ky, kx); ``noise`` and ``g_factor``;
    - ``geometry``, size and place of the slice in millimetres;
    - ``draws``, samples of the posterior (draw, ky, kx), if they were requested.

    Three things to do with it: ``image.interval(0.95)`` bounds the modulus of every pixel, ``image.measure(mask)``
    gives the mean of a region with its error, and ``image.to_nifti("image.nii.gz")`` writes it.

    Parameters
    ----------
    computation : Computation, optional
        The computation that made it; None after `load_run`, when the scan is not in memory.
    """

    computation: Computation | None = None

    @property
    def known(self) -> KnownSlice:
        """The slice and its calibration; a UsageError after `load_run`, when the scan is not in memory."""
        known: KnownSlice = self.computed.result.known
        return known

    @property
    def reconstruction(self) -> Image:
        """Image, error bars, and how the computation ended; of a volume those of the slice in the middle."""
        return self.judged.reconstruction

    @property
    def array(self) -> NDArray[np.complex64]:
        """Complex pixels, shape (ky, kx), of a volume (slice, ky, kx): what ``recon.npy`` of the verbs holds."""
        assert self.image is not None
        return self.image

    @property
    def zero_filled(self) -> NDArray[np.complex64] | None:
        """The zero-filled image of the same lines, shape (ky, kx); None if `array` is zero-filled, or was read."""
        images = [] if self.result is None else self.result.images[1:]
        return np.asarray(images[0].reconstruction.image, dtype=np.complex64) if images else None

    @property
    def method(self) -> str:
        """The method that made it, see `reconstruct`; the zero-filled image of a trajectory is "gridded"."""
        return self.judged.name

    @property
    def errors(self) -> ImageMetrics | None:
        """Errors of the magnitude against the reference and its noise; None without a reference."""
        return self.judged.errors

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends of the interval that holds the true modulus of each pixel with this probability, shape of `array`.

        The interval is that of a Gaussian around the modulus of the image, from 0 up. Real and imaginary part share the
        variance of a complex pixel, so that the modulus, which only the error along its phase changes, deviates by
        `std` over the square root of 2. The standard deviations are those of the image: where readouts could be held
        back they are scaled to the error that those predict (`Image.std_factor`; see docs/reconstruct.md).
        Pixels are wrong together: for means of regions ask `measure`, for anything else `sample`.

        Parameters
        ----------
        level : float
            Above 0 and below 1, or in per cent.

        Returns
        -------
        tuple of float arrays
            Lower and upper ends, in the units of `array`.

        Raises
        ------
        InputError
            For another level.
        UsageError
            Where the method knows no error bars.
        """
        level = probability(level)
        if self.std is None:
            raise UsageError(f"{self.method} has no error bars: ask for reconstruct(method='mean')")
        size = np.abs(self.array).astype(np.float64)
        half = NormalDist().inv_cdf((1 + level) / 2) * self.std / np.sqrt(2)
        return np.maximum(size - half, 0), size + half

    def sample(self, count: int = 32, *, seed: int | None = None) -> NDArray[np.complex64]:
        """Images that the posterior holds possible, drawn now: shape (draw, ky, kx), in the units of `array`.

        They deviate from the image by `std`, and pixels vary together as errors of images do. With the seed of the
        image they are those of ``reconstruct(draws=count)``; with another one they are others. Of a volume, and of an
        image that was read, whose posteriors are gone, they are the first of ``draws``.

        Parameters
        ----------
        count : int
            Of draws. Each takes a linear system to solve: a part of the time that the image took.
        seed : int, optional
            Of the draws; by default that of the image.

        Raises
        ------
        UsageError
            Where the method has no posterior, or it is gone and there are not so many ``draws`` with this seed.
        InputError
            For no count, and no seed.
        """
        require_counts(count=count, least=1)
        require_counts(seed=0 if seed is None else seed, least=0)
        sampler, draws = self.reconstruction.sampler, self.draws
        if sampler is not None:
            return np.asarray(sampler(count, seed), dtype=np.complex64)
        if self.std is None:
            raise UsageError(f"{self.method} has no posterior to draw from: ask for reconstruct(method='mean')")
        if draws is None or draws.shape[-3] < count or seed not in (None, self.seed):
            raise UsageError(
                f"only the posterior of a single slice in memory can be sampled: use reconstruct(draws={count})"
            )
        return np.asarray(draws[..., :count, :, :])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype=dtype, copy=True if copy is None else copy)

    def measure(
        self,
        region: ArrayLike | str | os.PathLike[str] | Sequence[str | os.PathLike[str] | NDArray[Any]],
        *,
        against: ArrayLike | str | os.PathLike[str] | None = None,
        frame: int | None = None,
    ) -> list[RegionMean]:
        """Mean moduli of regions and their differences, with the errors that draws give them: ``mri-design measure``.

        Parameters
        ----------
        region : array, str or Path
            Flags, or whole numbers from 1 for several regions, on the grid of the image, or a file of such, or a list
            of these.
        against : array, str or Path, optional
            Another region: differences from it are returned, instead of those of all pairs.
        frame : int, optional
            Of several echoes or repetitions, the one that is measured.

        Returns
        -------
        list of RegionMean
            Of every region, then of the differences: ``value``, ``sd``, ``interval(0.95)``, and ``true`` where a
            reference is known.

        Raises
        ------
        UsageError
            Where the image has no draws, or several frames and none is named.
        InputError
            Where a mask cannot be used, or does not lie on the image.

        Examples
        --------
        >>> image = scan.reconstruct(draws=32)
        >>> lesion, muscle, difference = image.measure(mask, against=other)
        """
        other = None if against is None else RegionMask.given(against, "against")
        return means_of(slices_of(self, frame=frame), RegionMask.all_given(region), other)

    def fit(
        self, model: str | SignalModel, times: Sequence[float] | str, *, complex_signals: bool = False
    ) -> QuantityMap:
        """A map of what echoes show, with its errors, of a run of several frames: ``mri-design measure --fit``.

        Parameters
        ----------
        model : str or SignalModel
            "T2", "T2*", "t1-inversion", "t1-flip:TR", "adc", "water-fat:HZ", a name of `register_signal_model`, or a
            model of your own.
        times : sequence of float or str
            Of the frames: echo or inversion times in ms, flip angles in degrees, b values in s/mm2; or a text with
            units, as "0.01s,0.02s".
        complex_signals : bool
            Fit complex signals, whose phase is the same in all frames, instead of moduli.

        Returns
        -------
        QuantityMap
            ``value``, ``std``, ``interval(0.95)`` and ``misfit`` of every pixel, and ``measure(mask)`` for regions.

        Raises
        ------
        UsageError
            Where the image is one frame, or has no draws.
        InputError
            For times that do not fit, and echoes that do not determine what is mapped.

        Examples
        --------
        >>> made = md.load_run("recon-echoes").fit("T2", [10, 20, 30, 40])
        """
        return fit_run(self, model, times, complex_signals=complex_signals)

    @property
    def _slices(self) -> list[tuple[int, NDArray[np.complex64]]]:
        """Numbers and images of a volume's slices, in its first frame."""
        return list(zip(self.numbers, self.array[0] if self.frames else self.array, strict=True))

    def plot(self) -> Drawing:
        """A figure of matplotlib: the image, its error bars and, against a reference, the actual error.

        Of several slices it shows the images side by side on one grey scale, those of the first frame.
        """
        if self.numbers:
            panels = [ImagePanel(one, f"slice {number}") for number, one in self._slices]
            return plots.image_grid(panels, self.frame, _COLUMNS)
        caption = str(self.error)
        doubt = [] if self.std is None else plots.doubt_panels(self.std, self.array, self.reference)
        return plots.image_grid(
            [ImagePanel(self.array, self.method, caption), *doubt], self.frame, 3, "per pixel" if doubt else ""
        )

    def to_nifti(
        self, path: str | Path, *, field_of_view: tuple[float, float] | None = None, overwrite: bool = False
    ) -> list[str]:
        """Write magnitude, error bars (``..._std``) and coil maps (``..._maps``) as NIfTI, with size and place.

        Parameters
        ----------
        path : str or Path
            Of the magnitude; the others come with it.
        field_of_view : tuple of float, optional
            (ky, kx) in metres; by default that of the scan, where its file says.
        overwrite : bool
            Whether files that are there may be replaced.

        Returns
        -------
        list of str
            What is in the files and which facts are unknown, as ``mri-design export`` prints it.

        Raises
        ------
        UsageError
            Where a file is there already, or the name has another ending than ``.nii`` or ``.nii.gz``.
        """
        return exported(self, "nifti", path, field_of_view, overwrite=overwrite)

    def to_dicom(
        self, path: str | Path, *, field_of_view: tuple[float, float] | None = None, overwrite: bool = False
    ) -> list[str]:
        """Write magnitude and error bars as DICOM, as `to_nifti` does."""
        return exported(self, "dicom", path, field_of_view, overwrite=overwrite)

    @property
    def facts(self) -> dict[str, str]:
        """Main facts in words, by what they are about."""
        std, factor, found, kind = self.reconstruction.std, self.reconstruction.std_factor, self.errors, self.kind
        bars = "none of this method" if std is None else f"median std {np.median(std):.3g} per complex pixel"
        others = "" if found is None else f"PSNR {found.psnr:.1f} dB and SSIM {found.ssim:.3f} inside the object"
        rows, columns = self.array.shape[-2:]
        used = f"{count_text(int(np.count_nonzero(self.mask)), kind.unit)} out of {self.mask.size}"
        mean = f", mean error {self.error}" if str(self.error) else ""
        slices = f"{len(self.numbers)} of {self.of_scan}{mean}; slice {self.shown} is described below"
        return {
            "slices": slices if self.numbers else "",
            "image": f"{rows} x {columns} pixels of {used}",
            "error bars": bars if factor is None else f"{bars}, {phrase('error_bars', factor, template='image')}",
            "coverage": "" if self.coverage is None else self.coverage.short,
            "error": ", ".join(filter(None, (str(self.judged.error), others))),
            "ended": self.status,
        }

    @property
    def _title(self) -> str:
        return f"{type(self).__name__} of {self.scan}, {self.method}"

    @property
    def _pictures(self) -> Sequence[tuple[str, bytes]]:
        if self.numbers:  # some slices, evenly spread over the volume
            every, layout = -(-len(self.numbers) // _COLUMNS), self.frame.layout
            return [(f"slice {number}", image_png(one, layout)) for number, one in self._slices[::every]]
        bars = [] if self.std is None else [("error bars", image_png(self.std, self.frame.layout, error=True))]
        return [("image", image_png(self.array, self.frame.layout)), *bars]


@naming_arguments
def load_run(folder: str | os.PathLike[str]) -> ScanDesign | ScanImage | StrategyComparison | StoredRun:
    """Read what `save`, or a verb, has left in a folder: the same object, without the scan.

    Of ``mri-design protocol``, which makes no image, it is the `StoredRun` with the mask and its decisions.

    Parameters
    ----------
    folder : str or Path
        Of a run that has ended.

    Raises
    ------
    UsageError
        Where it is no folder of such a run.
    InputError
        Where its files are damaged or contradict each other.

    Examples
    --------
    >>> scan.reconstruct().save("run")
    >>> image = md.load_run("run")
    """
    require_instance((str, os.PathLike), wanted="the folder of a run", folder=folder)
    run = read_result(Path(named_file(folder)), StoredImage)
    if not isinstance(run, StoredRun):
        return StrategyComparison(**vars(run))
    if not isinstance(run, StoredImage):
        return run
    image = ScanImage(**vars(run))
    return image if run.trace is None else ScanDesign(image)


@dataclass(frozen=True, repr=False, eq=False)
class ScanDesign(Saved):
    """A finished design: the chosen lines in order, and the image made from them.

    `LoadedScan.design` and `load_run` return it. ``design.lines`` are the numbers of the lines in the order of choice,
    ``design.mask`` the same as flags (ky,), ``design.trace`` every decision, ``design.reconstruct()`` the image.
    ``design.result`` has everything that ``mri-design design`` computes; it is None after `load_run`.

    Parameters
    ----------
    image : ScanImage
        The image of the chosen lines.
    reconstructed : callable, optional
        `LoadedScan.reconstruct` of the scan, for images by other methods.
    """

    image: ScanImage
    reconstructed: Callable[..., ScanImage] | None = None

    @property
    def computation(self) -> Computation | None:  # type: ignore[override]
        """How it was computed."""
        return self.image.computation

    @property
    def trace(self) -> DesignTrace:
        """Every decision, with predictions and measurements."""
        assert self.image.trace is not None
        return self.image.trace

    @property
    def ended(self) -> str:
        """The reason why the design ended."""
        return self.image.ended

    @property
    def acceleration(self) -> float:
        """Samples of the grid over samples measured."""
        assert self.image.acceleration is not None
        return self.image.acceleration

    @property
    def lines(self) -> tuple[int, ...]:
        """Numbers of the lines (samples of a plane row by row, shots) in the order of choice, those of the start first.

        `mask` has the same as flags.
        """
        return self.trace.lines

    @property
    def mask(self) -> NDArray[np.bool_]:
        """True for the chosen lines (ky,), samples of a plane (ky, kz), or shots."""
        return self.image.mask

    @property
    def error(self) -> RelativeError:
        """Relative error of the image, predicted and found; see `ScanImage.error`."""
        return self.image.error

    @property
    def predicted_error(self) -> float | None:
        """Relative L2 error of the complex image by its error bars, with no look at the truth.

        Of an image without error bars it is that of the posterior mean, where the design has reconstructed it
        (`Forecast.image_error`), or what the design itself predicts; None where that predicts nothing.
        """
        found = self.error.predicted
        forecast = self.trace.forecast(len(self.lines))
        if found is not None or forecast is None:
            return found
        return forecast.image_error if np.isfinite(forecast.image_error) else forecast.predicted_error

    def reconstruct(self, method: Method | None = None) -> ScanImage:
        """The image of the chosen lines.

        Parameters
        ----------
        method : str, optional
            "mean", "map", "least-squares", "zero-filled", "l1-wavelet" or "total-variation", see `reconstruct`.
            By default the image is the design's own, which was made with it, going on from where its inference stood.
            By another method it is that of `LoadedScan.reconstruct` with the design's mask.

        Raises
        ------
        UsageError
            For another method of a design that was read, without its scan; where shots were chosen, whose samples the
            scan itself does not hold; or where slices of the mask are companions of each other, which only the design
            knows.
        """
        if method is None:
            return self.image
        if self.computation is None or self.reconstructed is None:
            raise UsageError(
                "the design was read from a folder without its scan: use md.load(...).reconstruct(design.mask)"
            )
        work, request = self.computation.work, self.result.request
        if request.of_shots:
            raise UsageError("samples along shots were made for the design: give the method in its recipe")
        if request.around:
            raise UsageError("slices are companions within the design alone: give the method in its recipe")
        return self.reconstructed(
            self.mask,
            method=method,
            companions=request.companions,
            slices=self.result.numbers[0],
            seed=work.seed,
            recipe=request.recipe,
            jobs=work.jobs,
            watch=work.progress.watch,
        )

    def plot(self) -> Drawing:
        """Lines as they were added, samples of a plane and shots from the start to the end: a figure of matplotlib."""
        run, trace = self.image, self.trace
        if run.kind.on is not None:
            readouts = run.kind.on(self.image.array.shape)
            return plots.drawn(readouts).growth(readouts, trace)
        shots, grid = run.trajectory()
        counts = dict.fromkeys((len(trace.start), len(trace.lines)))
        shown = {count_text(count, run.kind.unit): shots[:count] for count in counts}
        return plots.trajectory_curves(shown, grid, f"the first {run.kind.unit} of the start")

    def to_csv(self, path: str | Path, *, overwrite: bool = False) -> list[str]:
        """Write the order of measurement as a table, as ``mri-design export RUN NAME.csv`` does."""
        return exported(self.image, "csv", path, overwrite=overwrite)

    @property
    def facts(self) -> dict[str, str]:
        """Main facts in words, by what they are about."""
        kind, trace = self.image.kind, self.trace
        return {
            "chosen": f"{count_text(len(trace.lines), kind.unit)} of {trace.n_lines} ({self.acceleration:.1f}x)",
            "start": f"{count_text(len(trace.start), kind.unit)}{' around the centre' if kind.on_grid else ''}",
            "error": str(self.error) or str(RelativeError(self.predicted_error)),
            "ended": self.ended,
        }

    @property
    def _title(self) -> str:
        return f"ScanDesign of {self.image.scan}, {self.trace.strategy}"

    @property
    def _pictures(self) -> Sequence[tuple[str, bytes]]:
        mask = [("mask", mask_png(self.mask, self.image.frame.layout))] if self.image.kind.on_grid else []
        return [*mask, *self.image._pictures[:1]]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StrategyComparison(Saved, StoredComparison):
    """Errors of several strategies on one scan, by number of lines.

    `LoadedScan.compare` and `load_run` return it. ``errors`` are the mean relative errors, ``rows`` the table with
    their spread. ``result`` has everything that ``mri-design compare`` computes; it is None after `load_run`.

    Parameters
    ----------
    computation : Computation, optional
        The computation that made it; None after `load_run`.
    """

    computation: Computation | None = None

    @property
    def rows(self) -> Sequence[Mapping[str, object]]:
        """Mean error and its spread for each strategy and number of lines, as summary.csv has them."""
        return self.tables.tables["summary"]

    @property
    def errors(self) -> dict[str, dict[int, float]]:
        """Mean relative error by strategy and number of lines."""
        return {
            name: dict(zip(self.tables.counts, np.mean(runs, axis=0).tolist(), strict=True))
            for name, runs in self.tables.runs.items()
        }

    def plot(self) -> Drawing:
        """Errors against the number of lines: a figure of matplotlib."""
        return plots.error_against_lines(self.tables.counts, self.tables.runs, bands=False, unit=self.kind.unit)

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
        return f"StrategyComparison on {self.tables.rows[0]['image']}, error by number of {self.kind.counted}"

    @property
    def _pictures(self) -> Sequence[tuple[str, bytes]]:
        pictures, result = list[tuple[str, bytes]](), self.result
        if result is None:
            return pictures
        for one in result.shown:
            layout = layout_of(one.readouts, result.orientation)
            if one.readouts.kind.on_grid:
                pictures.append((f"{one.label}: mask", mask_png(one.mask, layout)))
            pictures.append((f"{one.label}: image", image_png(one.reconstruction.image, layout)))
        return pictures
