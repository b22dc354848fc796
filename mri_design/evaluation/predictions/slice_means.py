"""The posteriors of a finished design, made again one after another under the models that it went by."""

from __future__ import annotations

from dataclasses import dataclass, field

from mri_design.design.keeping import SliceInference, infer_slice
from mri_design.design.model_choice import CandidateModels
from mri_design.design.trace import DesignTrace
from mri_design.inference.base import WarmStart
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array


@dataclass(frozen=True)
class Replay:
    """Settings with which the means of a finished design are made again.

    Parameters
    ----------
    inference : DoubleLoop
        The design's.
    first_loops, loops : int
        Outer loops at the first mean and at the others, as in `DesignEngine`. More loops change the means' error
        little (results/benchmarks/measured-once.md).
    seed : int
        Of the variances.
    models : callable, optional
        Candidate models that the design chose from: each mean is that of the model in use then. Its phase
        map is estimated from the previous mean; where the design had computed others in between, from a first mean of
        the same lines.
    """

    inference: DoubleLoop
    first_loops: int = 3
    loops: int = 1
    seed: int = 0
    models: CandidateModels | None = None


@dataclass
class SliceMeans:
    """Posteriors of one slice at growing numbers of lines, each from the one before.

    Parameters
    ----------
    slice_model : MRSlice
        The slice.
    signal : float
        Its signal level during the design.
    index : int
        Its place among the design's slices.
    replay : Replay
        Inference, seed and candidate models.
    """

    slice_model: MRSlice
    signal: float
    index: int
    replay: Replay
    _warm: dict[int, WarmStart] = field(default_factory=dict)
    _count: int = 0
    _image: Array | None = None

    def posterior(self, trace: DesignTrace, count: int, first: DoubleLoop, later: DoubleLoop) -> GaussianPosterior:
        """The posterior behind the decision after ``count`` lines; ``first`` infers a model not used before."""
        lines = trace.lines[:count]
        seen = self._inferred(trace, count, lines, self._image, first, later)
        jumped = self.replay.models is not None and not self._followed(trace, count)
        if jumped and self._variant(trace, count, lines, seen.mean).phase is not None:
            seen = self._inferred(trace, count, lines, seen.mean, first, later)
        self._count, self._image = count, seen.mean
        return seen

    def _followed(self, trace: DesignTrace, count: int) -> bool:
        """Whether the design too went from the last mean to this one, or began here."""
        between = trace.steps[max(self._count - len(trace.start) + 1, 0) : count - len(trace.start)]
        return all(step.choice.pending for step in between) and (self._count > 0 or count == len(trace.start))

    def _number(self, trace: DesignTrace, count: int) -> int:
        forecast = trace.forecast(count)
        return forecast.models[self.index] if forecast is not None and forecast.models else 0

    def _variant(self, trace: DesignTrace, count: int, lines: tuple[int, ...], image: Array | None) -> MRSlice:
        if self.replay.models is None:
            return self.slice_model
        variants = self.replay.models(
            self.slice_model, self.slice_model.central_image(lines) if image is None else image
        )
        number = self._number(trace, count)
        return variants[number if number < len(variants) else 0]

    def _inferred(
        self,
        trace: DesignTrace,
        count: int,
        lines: tuple[int, ...],
        image: Array | None,
        first: DoubleLoop,
        later: DoubleLoop,
    ) -> GaussianPosterior:
        number = self._number(trace, count)
        warm = self._warm.get(number)
        variant = self._variant(trace, count, lines, image)
        engine = first if warm is None else later
        job = SliceInference(variant, lines, self.signal, warm, engine, (self.replay.seed, self.index), image)
        posterior, _ = infer_slice(job)
        self._warm[number] = WarmStart.from_posterior(posterior)
        return posterior
