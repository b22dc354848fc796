"""Maps of what the echoes of a run show, as T2, T1, diffusion or fat, with their errors, and those of regions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, UsageError, option, optional_package
from mri_design.evaluation import plots
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evidence.regions import RegionMean, region_means, require_several
from mri_design.experiment.companion_images import RegionMask
from mri_design.runs.export import export_run
from mri_design.runs.measure import LEVEL, Measured, means_of, regions_of, require_draws
from mri_design.runs.provenance import sentences
from mri_design.runs.stored_run import StoredRun, read_run
from mri_design.scan.io.atomic import write_bytes
from mri_design.signals.maps import SignalMap, fit_map
from mri_design.signals.models import SignalModel, signal_model

MAP = Path("map.nii.gz")
"""Where a map goes, in the folder of a run; its standard deviations and others have names with a mark."""
Region = ArrayLike | str | os.PathLike[str] | RegionMask | Sequence[Any]
ALL = "all that is identified"
"""Name of the region where none is given."""


@briefly
@dataclass(frozen=True)
class QuantityMap:
    """A quantity of every pixel, which the echoes of a run show: `ScanImage.fit` returns it.

    Parameters
    ----------
    model : SignalModel
        What was fitted.
    slices : tuple of SignalMap
        Of every slice.
    run : StoredRun
        The run, of which the image is the map, with its standard deviations and draws; NaN where the quantity is not
        identified.
    first : complex array, shape (slice, ky, kx)
        The first echo.
    """

    model: SignalModel
    slices: tuple[SignalMap, ...]
    run: StoredRun
    first: NDArray[np.complexfloating]

    @property
    def value(self) -> NDArray[Any]:
        """The quantity, (slice, ky, kx), in the unit of the model; NaN where it is not identified."""
        return np.stack([one.value for one in self.slices])

    @property
    def std(self) -> NDArray[Any]:
        """Standard deviations, as ``value``."""
        return np.stack([one.std for one in self.slices])

    @property
    def misfit(self) -> NDArray[Any]:
        """Squares that the model leaves over those that errors of the images leave; NaN where nothing is fitted."""
        return np.stack([one.misfit for one in self.slices])

    def interval(self, level: float = 0.95) -> tuple[NDArray[Any], NDArray[Any]]:
        """Ends of the interval that holds the true quantity of a pixel with this probability, as ``value``."""
        low, high = zip(*(one.interval(level) for one in self.slices), strict=True)
        return np.stack(low), np.stack(high)

    def measure(self, region: Region | None = None, *, against: Region | None = None) -> list[RegionMean]:
        """Means over identified pixels of regions and differences, as `ScanImage.measure`; of all without a region."""
        if region is not None:
            other = None if against is None else RegionMask.given(against, "against")
            return means_of(self.run, RegionMask.all_given(region), other)
        assert self.run.image is not None and self.run.draws is not None
        return region_means({ALL: np.isfinite(self.run.image)}, self.run.image, self.run.draws)

    @property
    def found(self) -> tuple[int, int]:
        """Pixels that are identified, and pixels that were fitted."""
        return int(np.isfinite(self.value).sum()), sum(one.fitted for one in self.slices)


def fit_run(run: StoredRun, model: str | SignalModel, times: object, *, complex_signals: bool = False) -> QuantityMap:
    """Fit a model to the frames of a run.

    Parameters
    ----------
    run : StoredRun
        Of several frames, with draws.
    model : str or SignalModel
        See `signal_model`.
    times : str or sequence of float
        See `SignalModel.times`.
    complex_signals : bool
        Whether complex signals are fitted, whose phase is the same in all frames, or moduli.

    Raises
    ------
    UsageError
        For a run without draws, or of one frame.
    InputError
        For times that do not fit, frames from other lines, and echoes that do not determine the quantity.
    """
    chosen = signal_model(model)
    require_draws(run)
    if len(run.frames) < 2:
        every = option("input.series.contrast", "all")
        raise UsageError(f"{run.name} holds one image of every slice: reconstruct all echoes together, as with {every}")
    found = chosen.times(times, len(run.frames))
    if not run.same_lines:  # their errors differ, and echoes count alike
        cure = f"Reconstruct with the {run.counted} that all have: {option('mask', 'MASK')}."
        raise InputError(f"{run.name}: {run.counted}", "others in some frames", "the same in all frames", cure)
    assert run.image is not None and run.draws is not None and run.std is not None
    require_several(run.draws[0, 0])
    slices = []
    for place in range(run.image.shape[1]):
        parts = [np.asarray(values[:, place]) for values in (run.image, run.draws, run.std)]
        pull = None if run.pull is None else run.pull[:, place]
        slices.append(fit_map(chosen, found, *parts, pull=pull, complex_signals=complex_signals))
    mapped = replace(
        run,
        image=np.stack([one.value for one in slices]),
        draws=np.stack([one.draws for one in slices]),
        std=np.stack([one.std for one in slices]),
        reference=None,
        noise=None,
        g_factor=None,
        pull=None,
        maps=None,
        frames=(),
        axis="",
        places=run.places[: len(slices)],
        sources=run.sources[: len(slices)],
    )
    return QuantityMap(chosen, tuple(slices), mapped, run.image[0])


def measure_map(
    folder: Path,
    model: str | SignalModel,
    times: object,
    *,
    regions: Sequence[Path] = (),
    against: Path | None = None,
    complex_signals: bool = False,
    level: float = LEVEL,
) -> tuple[QuantityMap, Measured]:
    """The map of a run's folder, and means of its regions; nothing is written.

    Raises
    ------
    UsageError, InputError
        As `fit_run`, and where a mask cannot be used or holds no identified pixel.
    MissingPackageError
        Where nibabel is not installed, by which `report_map` writes.
    """
    optional_package("nibabel", "export")  # which writes the map
    if against is not None and not regions:
        raise UsageError(f"{option('against', against)} needs {option('region', 'MASK')}, which differs from it")
    masks, beside = [RegionMask.read(one) for one in regions], None if against is None else RegionMask.read(against)
    made = fit_run(read_run(folder), model, times, complex_signals=complex_signals)
    outlines = regions_of(made.run, masks, beside)
    pixels = list(outlines.values()) or [np.isfinite(made.value)]
    shown = int(np.argmax(np.sum(pixels, axis=(0, 2, 3))))
    place = made.run.places[shown] if made.run.places else None
    measured = Measured(
        tuple(made.measure(masks or None, against=beside)),
        made.first[shown],
        {name: inside[shown] for name, inside in outlines.items()},
        None if place is None else place.pixel,
        tuple(sentences("measure", "mapped", made, made.misfit[np.isfinite(made.value)])),
        level,
    )
    return made, measured


def report_map(folder: RunFolder, made: QuantityMap, measured: Measured) -> None:
    """Write the map, its standard deviations, its misfit and where it is identified as NIfTI, a table and pictures."""
    flags = np.isfinite(made.value).astype(np.float32)
    others = {"_misfit": made.misfit, "_identified": flags}
    files = export_run(made.run, MAP, form="nifti").files
    for mark, values in others.items():
        path = MAP.with_name(MAP.name.replace(".", f"{mark}.", 1))
        files = {**files, **export_run(replace(made.run, image=values, std=None), path, form="nifti").files}
    for path, content in files.items():
        write_bytes(folder.output_path(path.name), content)
    folder.write_table("measures.csv", measured.rows)
    if folder.reported:
        shown = int(np.argmax(flags.sum(axis=(1, 2))))
        unit = f" ({made.model.unit})" if made.model.unit else ""
        panels = {
            f"{made.model.name}{unit}, grey: not identified": made.value[shown],
            f"standard deviation{unit}": made.std[shown],
            "misfit": made.misfit[shown],
        }
        folder.write_figure("map", plots.quantity_maps(panels, made.run.frame))
        if measured.outlines:
            frame = replace(made.run.frame, pixel=measured.pixel)
            folder.write_figure("regions", plots.image_with_regions(measured.image, measured.outlines, frame))
