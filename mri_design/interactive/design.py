"""A finished design: which lines it chose, what it predicted, what came, and the image of its lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.design.trace import DesignTrace
from mri_design.errors import UsageError
from mri_design.evaluation import plots
from mri_design.evaluation.pictures import Drawing
from mri_design.experiment.reconstruction import Method
from mri_design.experiment.sources import SliceChoice
from mri_design.interactive.image import ScanImage, image_of
from mri_design.interactive.running import Origin, Saved, Told, exported, reconstructed
from mri_design.interactive.shown import facts_html, facts_text, image_png, mask_png
from mri_design.kinds import count_text
from mri_design.readouts import PlaneReadouts, ShotReadouts
from mri_design.runs.design.report import report_design
from mri_design.runs.design.run import DesignResult
from mri_design.runs.image_sections import layout_of
from mri_design.runs.recon.run import ReconRequest
from mri_design.runs.run import Ending, Run
from mri_design.runs.verdicts import RelativeError


@dataclass(frozen=True, repr=False, eq=False)
class ScanDesign(Saved):
    """A finished design of one scan; `LoadedScan.design` makes it.

    Parameters
    ----------
    origin : Origin
        The scan.
    result : DesignResult
        What ``mri-design design`` computes: ``result.trace``, ``result.account``, ``result.acquisition`` and more.
    told : Told
        How it was computed.
    """

    origin: Origin
    result: DesignResult
    told: Told

    @property
    def trace(self) -> DesignTrace:
        """Every decision, with what was predicted and what was measured."""
        return self.result.trace

    @property
    def lines(self) -> tuple[int, ...]:
        """Numbers of the lines (samples of a plane row by row, shots) in the order of choice, those of the start first.

        `mask` has the same as flags.
        """
        return self.trace.lines

    @property
    def mask(self) -> NDArray[np.bool_]:
        """True for the chosen lines (ky,), samples of a plane (ky, kz), or shots."""
        return self.trace.mask().reshape(self.result.known.slice_model.candidates.shape)

    @property
    def acceleration(self) -> float:
        """Samples of the grid over samples measured."""
        return self.result.known.acceleration(self.lines)

    @property
    def error(self) -> RelativeError:
        """Relative error of the image, predicted and found; see `ScanImage.error`."""
        return self.result.images[0].error

    @property
    def predicted_error(self) -> float | None:
        """Relative L2 error of the complex image by its error bars, with no look at the truth.

        Of an image without error bars it is that of the posterior mean, where the design has looked at it
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
            For another method where shots were chosen, whose samples the scan itself does not hold, or where slices of
        the mask are companions of each other, as only the design knows which these are.
        """
        request, known = self.result.request, self.result.known
        if method is None:
            return ScanImage(known, self.mask, tuple(self.result.images), self.told, self._write)
        if request.of_shots:
            raise UsageError("samples along shots were made for the design: give the method in its recipe")
        if request.around:
            raise UsageError("slices are companions within the design alone: give the method in its recipe")
        recipe = request.recipe.replacing("reconstruction", method=method)
        told = Told(self.told.seed, self.told.jobs, self.told.watch)
        shown = SliceChoice(str(self.result.numbers[0]))
        again = ReconRequest(request.source, recipe, maps=request.maps, slices=shown, companions=request.companions)
        return image_of(reconstructed(self.origin, again, self.mask, told), told)

    def plot(self) -> Drawing:
        """Lines as they were added, samples of a plane as a mask, shots as curves: a figure of matplotlib."""
        candidates, trace = self.result.known.slice_model.candidates, self.trace
        if isinstance(candidates, ShotReadouts):
            chosen = {self._title: candidates.shots[self.mask]}
            return plots.trajectory_curves(
                chosen, candidates.grid, first=f"the {candidates.unit} with the lowest number"
            )
        if isinstance(candidates, PlaneReadouts):
            return plots.plane_masks({self._title: self.mask})
        return plots.mask_growth(trace.lines, trace.n_lines, len(trace.start))

    def to_csv(self, path: str | Path, *, overwrite: bool = False) -> list[str]:
        """Write the order of measurement as a table, as ``mri-design export --to csv`` does."""
        return exported(self._write, self.told, "csv", path, overwrite=overwrite)

    @property
    def facts(self) -> dict[str, str]:
        """Main facts in words, by what they are about."""
        candidates, trace = self.result.known.slice_model.candidates, self.trace
        unit, where = candidates.unit, "" if isinstance(candidates, ShotReadouts) else " around the centre"
        return {
            "chosen": f"{count_text(len(trace.lines), unit)} of {trace.n_lines} ({self.acceleration:.1f}x)",
            "start": f"{count_text(len(trace.start), unit)}{where}",
            "error": str(self.error) or str(RelativeError(self.predicted_error)),
            "ended": self.result.ended or self.result.ending.status,
        }

    @property
    def _title(self) -> str:
        return f"ScanDesign of {self.result.known.data.name}, {self.trace.strategy}"

    def _write(self, run: Run) -> Ending:
        return report_design(run, self.result)

    def __repr__(self) -> str:
        return facts_text(self._title, self.facts)

    def _repr_html_(self) -> str:
        known = self.result.known
        layout = layout_of(known.slice_model.candidates, known.data.orientation)
        pictures = [("image", image_png(self.result.images[0].reconstruction.image, layout))]
        if known.slice_model.candidates.name in ("lines", "plane"):
            pictures.insert(0, ("mask", mask_png(self.mask, layout)))
        return facts_html(self._title, self.facts, pictures)
