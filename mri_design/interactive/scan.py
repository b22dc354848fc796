"""A scan in memory, from which designs and images are made with one call each; how objects show themselves."""

from __future__ import annotations

import inspect
import os
import time
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from hashlib import sha256
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design import experiment, interactive, runs
from mri_design.calibration.coils import MapMethod
from mri_design.errors import (
    InputError,
    UsageError,
    argument_behind,
    described,
    number_array,
    positive_number,
    require_counts,
    require_instance,
    say_once,
)
from mri_design.experiment.calibration import calibrate
from mri_design.experiment.companion_images import listed_regions
from mri_design.experiment.inputs import (
    MEMORY_PREFIX,
    ScanSource,
    SliceChoice,
    data_of_array,
    load_scan,
    require_grid_data,
    scan_of,
    with_given,
    with_given_maps,
    with_noise_samples,
)
from mri_design.experiment.recipe import Recipe, recipe_from
from mri_design.experiment.regions import GivenRegion, WantedRegions
from mri_design.experiment.strategies import name_of_strategy, usual_strategies
from mri_design.kinds import KINDS
from mri_design.operators.conventions import Chosen
from mri_design.runs.provenance import centre_words, phrase
from mri_design.scan.calibration import with_its_centre
from mri_design.scan.data import ImageStack, KSpaceData, TrajectoryData, slice_number
from mri_design.scan.io.formats import mask_of_measured
from mri_design.scan.io.layouts import looks_signed
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits
from mri_design.signals.models import signal_model
from mri_design.templates import environment

if TYPE_CHECKING:
    from mri_design.design.strategy import Strategy
    from mri_design.experiment.reconstruction import Method
    from mri_design.model.generalized_linear import SiteBlock
    from mri_design.model.sparsity import SparsityBlock
    from mri_design.runs.recon import ReconResult
    from mri_design.runs.store import Record
    from mri_design.runs.work import Keep, Work
    from mri_design.signals.models import SignalModel

P = ParamSpec("P")
T = TypeVar("T")
Watch = Callable[[str, int, int], None]
"""Takes what is being done, how much of it is done, and of how many."""
_WIDE = 100
"""Letters of a line that shows itself in a console."""


def named_file(path: str | os.PathLike[str]) -> str:
    """A path as text, ``~`` replaced by the home folder; other names of inputs unchanged."""
    return os.path.expanduser(os.fspath(path))


def file_given(value: object) -> Path | None:
    """The path in an argument; None if it is an array, another object, or None."""
    return Path(named_file(value)) if isinstance(value, str | os.PathLike) else None


def naming_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: an `InputError` of the function has as its field the argument that caused it."""

    @wraps(function)
    def called(*values: P.args, **named: P.kwargs) -> T:
        try:
            return function(*values, **named)
        except InputError as error:
            given = inspect.signature(function).bind(*values, **named).arguments
            field = argument_behind(error, given)
            raise error.about(field or error.field).with_traceback(error.__traceback__) from error.__cause__

    return called


@dataclass(frozen=True)
class Computation:
    """A finished computation in memory: its request, its result, and its time. Nothing was written.

    Parameters
    ----------
    work : Work
        Seed, processes and progress.
    record : Record
        Inputs and settings, for a manifest.
    result : DesignResult, ReconResult or ComparisonResult
        What it returned.
    seconds : float
        Time that it took.
    """

    work: Work
    record: Record
    result: Any
    seconds: float

    @classmethod
    def of(cls, request: Any, compute: Callable[[Work, Keep], object], work: Work) -> Computation:
        """Carry out a request."""
        began, record = time.perf_counter(), request.record(work)
        result = compute(work, runs.Keep())
        return cls(work, record, result, time.perf_counter() - began)

    @property
    def parts(self) -> dict[str, Any]:
        """What its folder would hold, part by part, and itself."""
        run = self.result.stored()
        return vars(run) | {"identity": self.record.identity, "seed": self.work.seed, "computation": self}


class Shown(ABC):
    """Base of results: a title and main facts in a console, with pictures in a notebook."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, str]:
        """Main facts in words, by what they are about."""

    @property
    @abstractmethod
    def _title(self) -> str:
        """The object in a line."""

    @property
    @abstractmethod
    def _pictures(self) -> Sequence[tuple[str, bytes]]:
        """What they show, and PNG."""

    def __repr__(self) -> str:
        lines = [self._title, *(f"  {name}: {text}" for name, text in self.facts.items() if text)]
        return "\n".join(line if len(line) <= _WIDE else f"{line[: _WIDE - 3]}..." for line in lines)

    def _repr_html_(self) -> str:
        page = environment("mri_design.interactive", autoescape=True)
        figures = [(says, b64encode(png).decode()) for says, png in self._pictures]
        facts = {name: text for name, text in self.facts.items() if text}
        return page.get_template("shown.html.j2").render(title=self._title, figures=figures, facts=facts)


File = str | os.PathLike[str]
Source = File | KSpaceData | TrajectoryData | ImageStack | ArrayLike
Blocks: TypeAlias = "Sequence[SparsityBlock | SiteBlock | Mapping[str, object]]"
RecipeLike = Recipe | str | Path | Mapping[str, object]


@naming_arguments
def load(
    source: Source,
    *,
    recipe: RecipeLike | None = None,
    seed: int = 0,
    matrix: int | None = None,
    coil_maps: File | ArrayLike | LoadedScan | None = None,
    noise: float | File | ArrayLike | None = None,
    mask: Chosen | None = None,
    duplicates: str | None = None,
    encoding: int | None = None,
    dims: str | Sequence[str] | None = None,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> LoadedScan:
    """Load a scan: k-space from a file or an array, or simulated k-space of a phantom or of images.

    The scan that it returns has the samples (``scan.kspace``), and methods for an image with error bars
    (``scan.reconstruct()``), a design of lines (``scan.design(lines=64)``) and a comparison of strategies
    (``scan.compare(lines=[32, 64])``); ``print(scan)`` shows what is known about it.

    Parameters
    ----------
    source : str, Path, array, KSpaceData, TrajectoryData or ImageStack
        A file of any format that ``mri-design info`` reads; ``phantom:NAME``; k-space as a complex array (ky, kx),
        (coil, ky, kx) or (slice, coil, ky, kx), phase encodes along the axis before the last and zeros in lines that
        were not measured; or an object of this package. Tensors and arrays of other libraries that have ``__array__``
        are taken as arrays. Of images k-space is simulated.
    recipe : Recipe, str, Path or mapping, optional
        All settings, those of designs and reconstructions included: an object, a TOML file, the name of a shipped
        recipe, or a mapping with the sections of a recipe file. By default the default recipe.
    seed : int
        Seed of the simulation, and of designs and reconstructions that are called without one.
    matrix : int, optional
        Lines and readout samples of simulated k-space, instead of the recipe's.
    coil_maps : str, Path or array, optional
        Coil maps instead of the scan's own or of an estimate: a file as of ``--maps``, or an array
        (coil, ky, kx), or one for each slice (slice, coil, ky, kx), as `LoadedScan.kspace`; or those of another scan
        with the same coils, loaded by `load`. ``"espirit"`` and ``"nlinv"`` are methods of estimating them;
        ``"espirit:16"`` takes 16 lines at most.
    noise : float, str, Path or complex array, optional
        The noise of k-space, instead of an estimate: its standard deviation per real component, or samples (coil,
        sample) measured without excitation in the units of the scan, as an array or a file.
    duplicates : {"refuse", "average", "first", "last"}, optional
        What becomes of a line or shot that raw data hold several times; the recipe's by default.
    encoding : int, optional
        Number of the encoding space to read, of MRD files with several; the first by default.
    dims : str or sequence of str, optional
        Names of the axes of an array, in memory or in a file, where they are others than the samples show, as
        ``"coil,ky,kx"``: coil, slice, ky, kx, kz, repetition, frame, contrast, echo, real/imag.
    limits : ReadLimits
        Bounds on the sizes in a file, checked before its samples are read.
    mask : array or sequence of int, optional
        Lines that were measured (readouts along a trajectory), as flags, zeros and ones, or by number, or samples (ky,
        kx); what else the source holds is left out. By default all lines that are not zero.

    Raises
    ------
    InputError
        If the input cannot be used.

    Examples
    --------
    >>> scan = md.load("phantom:t2w", matrix=64)
    >>> design = scan.design(lines=24)
    >>> image = design.reconstruct()
    """
    settings = recipe_from(recipe)
    axes = [name.strip() for name in dims.split(",")] if isinstance(dims, str) else dims
    settings = settings.replacing("input", matrix=matrix, duplicates=duplicates, dims=axes)
    settings = settings.replacing("input", series=None if encoding is None else {"encoding": encoding})
    if isinstance(coil_maps, str) and coil_maps.partition(":")[0] in get_args(MapMethod):
        settings, coil_maps = settings.replacing("coils", maps=coil_maps), None
    if isinstance(noise, Real | str | os.PathLike) or getattr(noise, "shape", None) == ():
        level = named_file(noise) if isinstance(noise, str | os.PathLike) else positive_number("noise", noise)
        settings, noise = settings.replacing("input", noise=level), None
    elif noise is not None and settings.input.noise_variance is not None:
        got = "samples, and a standard deviation in the recipe"
        raise InputError("noise", got, "one of the two", "Leave one of them out.")
    require_counts(seed=seed, least=0)
    file = named_file(source) if isinstance(source, str | os.PathLike) else None
    if file is not None:
        data = load_scan(file, settings, seed, limits=limits)
    else:
        data = with_given(_in_memory(source, settings, seed), settings)
    data = data if noise is None else with_noise_samples(data, np.asarray(noise))
    maps = file_given(coil_maps)
    if isinstance(coil_maps, LoadedScan):
        data = with_given_maps(data, require_grid_data(coil_maps.data, coil_maps.source), settings)
    elif coil_maps is not None:
        data = with_given_maps(data, number_array("coil_maps", coil_maps) if maps is None else maps, settings)
    if mask is not None:
        measured = _measured(data, mask, "mask", settings)
        data = data.only(measured)
    if file is None:
        file = f"{MEMORY_PREFIX}{data.name} {sha256(data.kspace.tobytes()).hexdigest()[:16]}"
        return LoadedScan(file, data, maps, settings, seed)
    in_files = mask is None and noise is None and (coil_maps is None or maps is not None)
    return LoadedScan(file, data, maps, settings, seed, in_files)


def _in_memory(source: object, recipe: Recipe, seed: int) -> KSpaceData | TrajectoryData:
    if not isinstance(source, KSpaceData | TrajectoryData | ImageStack):
        wanted = "a path, phantom:NAME, k-space as a complex array, KSpaceData, TrajectoryData or ImageStack"
        images = "Images are md.ImageStack(array): (slice, row, column), of which k-space is simulated."
        array = number_array("source", source, wanted=wanted)
        if not (np.iscomplexobj(array) or looks_signed(array) or recipe.input.dims):
            raise InputError("source", described(source), wanted, images if array.ndim else "")
        source = with_its_centre(data_of_array(array, recipe.input.dims), recipe.input.centre)
    return scan_of(source, recipe, seed)


def _measured(data: KSpaceData | TrajectoryData, chosen: Chosen, field: str, recipe: Recipe) -> NDArray[np.bool_]:
    """The flags of a mask argument: readouts along a trajectory, lines, or samples of a plane."""
    if isinstance(data, TrajectoryData):
        return mask_of_measured(chosen, np.ones(data.n_readouts, dtype=bool), field=field, unit="readout")
    every, plane = np.ones(data.grid_shape, dtype=bool), data.volume or KINDS[recipe.design.encoding].square
    return mask_of_measured(chosen, data.measured, every, field=field, plane=plane)


@dataclass(frozen=True, repr=False, eq=False)
class LoadedScan(Shown):
    """A scan in memory: samples of k-space, and the computations that start from them. `load` returns it.

    Three things to do with it:

    - ``scan.reconstruct()`` returns the image of all measured lines with error bars (`ScanImage`);
    - ``scan.design(lines=64)`` chooses 64 lines of a fully sampled scan one by one, as if at the scanner, and
      returns their order and the image (`ScanDesign`);
    - ``scan.compare(lines=[32, 64])`` returns the errors of several strategies (`StrategyComparison`).

    Besides the attributes below it has ``kspace``, the samples as complex64, shape (slice, coil, ky, kx), in the units
    of the file and with the centre of k-space at N // 2; ``mask``, True for the measured lines, shape (ky,); and
    ``calibrated``, the data with noise variance and coil sensitivity maps, estimated if the file has none.

    Parameters
    ----------
    source : str
        The file, the phantom, or a name for a scan given as arrays.
    data : KSpaceData or TrajectoryData
        All slices as read: samples, coil maps, noise, geometry in millimetres, and where each of them comes from.
    maps : Path, optional
        The file of coil maps, if one was given.
    recipe : Recipe
        Settings of reconstructions and designs that are called without a recipe.
    seed : int
        Seed of reconstructions and designs that are called without a seed.
    in_files : bool
        Whether all of it is in files, so that further frames of a series can be read.

    Examples
    --------
    >>> scan = md.load("phantom:t2w")
    >>> design = scan.design(lines=64)
    >>> image = scan.reconstruct(design.mask, draws=32)
    >>> image.array, image.std           # complex pixels and their standard deviations, shape (ky, kx)
    >>> image.error                      # predicted and, against a known reference, actual relative error
    >>> image.to_nifti("image.nii.gz")
    """

    source: str
    data: KSpaceData | TrajectoryData
    maps: Path | None
    recipe: Recipe
    seed: int = 0
    in_files: bool = False

    @property
    def kspace(self) -> NDArray[np.complex64]:
        """Samples, complex64 (slice, coil, ky, kx), centred; along a trajectory (slice, coil, readout, sample)."""
        return self.data.by_readout

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Measured lines as flags (ky,); samples (ky, kx) if lines are incomplete; readouts along a trajectory.

        The mask of the first slice, if there are several.
        """
        data = self.data
        return runs.what_is_used(data if data.n_slices == 1 else data.select_slice(0), None, self.recipe)

    @cached_property
    def calibrated(self) -> KSpaceData | TrajectoryData:
        """All slices with noise variance and coil sensitivity maps, estimated if the file has none."""
        return calibrate(self.data, self.recipe, ordinary=True)

    @naming_arguments
    def design(
        self,
        lines: int | None = None,
        *,
        acceleration: float | None = None,
        until_error: float | None = None,
        until_interval: float | str | None = None,
        region: File | ArrayLike | Sequence[File | NDArray[Any]] | None = None,
        difference: tuple[File | ArrayLike, File | ArrayLike] | None = None,
        level: float | None = None,
        fit: str | SignalModel | None = None,
        times: str | ArrayLike = "",
        strategy: str | Strategy | None = None,
        start: int | None = None,
        block: int | None = None,
        encoding: str | None = None,
        companions: Sequence[File] = (),
        slices: int | str | Sequence[int] = 0,
        seed: int | None = None,
        recipe: RecipeLike | None = None,
        blocks: Blocks | None = None,
        jobs: int = 1,
        watch: Watch | None = None,
    ) -> interactive.ScanDesign:
        """Decide which lines to measure, in order, and reconstruct the image from them: ``mri-design design``.

        The scan must hold data in every line that may be chosen: it is replayed as the scanner.

        Parameters
        ----------
        lines : int, optional
            Lines in the end, samples of a plane, or shots; with ``until_error`` the most.
        acceleration : float, optional
            Instead of ``lines``: their number is the grid's divided by this, rounded.
        until_error : float, optional
            End as soon as the predicted relative error is at most this; 0.05 is 5 %.
        until_interval : float or str, optional
            End as soon as all regions are known to within this on either side: 0.02 or "2%" of the region's mean (of a
            difference, of the brighter region's), or "3.5 units", as the image has them.
        region : array, str or Path, optional
            Flags, or whole numbers from 1 for several regions, on the grid of the image or, of several slices, of the
            volume; or a file of such, or a list of these: their means are to be known.
        difference : pair of the same, optional
            Two regions whose difference is to be known.
        level : float, optional
            Probability with which such an interval holds the truth; 0.9 by default.
        fit : str or SignalModel, optional
            The regions are those of a map: what is fitted, as by `ScanImage.fit`, to the frames of the slice, all of
            which are read from the scan's file and share the lines. By default these are the contrasts.
        times : str or sequence of float, optional
            What the frames differ by.
        strategy : str or Strategy, optional
            The strategy that chooses: a name of `strategy_names`, or an object, which is registered under its name. By
            default the recipe's, `calibrated`; information-gain if shots are chosen.
        start : int, optional
            Centre lines to begin with; by default the strategy's.
        block : int, optional
            Lines that are chosen after each inference: the echoes of a train.
        encoding : {"lines", "plane", "radial", "spiral"}, optional
            The readouts that are chosen one by one; by default the recipe's, lines.
        companions : sequence of str or Path
            Files of other images of the object, which the prior uses where the measured lines agree: ``--with``.
            ``"slices"`` offers the mean of those above and below that of the image, of several that share the mask;
            ``"frames"`` of a file those around the contrast, phase or set of the recipe, or before its repetition.
        slices : int, str or sequence of int
            The slice, by number from 0 (negative ones count from the end), several, or ``"all"``: these share one mask,
            and the image is that of the one in their middle.
        seed : int, optional
            Seed of everything random; by default the scan's.
        recipe : Recipe, str, Path or mapping, optional
            Other settings than the scan's; the scan itself stays as it was loaded.
        blocks : sequence of SparsityBlock or SiteBlock, optional
            The prior instead of the recipe's; blocks of your own are allowed.
        jobs : int
            Processes; no result depends on it.
        watch : callable, optional
            Called with the name of the present step, how much of it is done, and of how many.

        Raises
        ------
        UsageError, InputError
            For a design without an end, contradicting settings, and a scan that cannot be replayed.
        """
        require_instance((int, np.integer, NoneType), wanted="a whole number", lines=lines)
        settings = self._settings(recipe, blocks).replacing(
            "design",
            start=start,
            block=block,
            encoding=encoding,
            until_error=until_error,
            until_interval=until_interval,
            level=level,
        )
        named = None if strategy is None else name_of_strategy(strategy, settings.design.encoding)
        settings = settings.with_strategy(named)
        request = runs.DesignRequest(
            self.source,
            settings,
            lines,
            maps=self.maps,
            acceleration=acceleration,
            slices=self._choice(slices),
            companions=_files(companions),
            regions=replace(
                _regions(region, difference), fit=None if fit is None else signal_model(fit), times=_listed(times)
            ),
        )
        if fit is not None:
            self._require_files("fit")
        scan = require_grid_data(self.data, self.source)

        def compute(work: runs.Work, keep: runs.Keep) -> runs.DesignResult:
            return runs.design_scan(request, work, keep, runs.read_input(request, work, scan))

        made = Computation.of(request, compute, self._work(seed, jobs, watch))
        return interactive.ScanDesign(interactive.ScanImage(**made.parts), self.reconstruct)

    @naming_arguments
    def reconstruct(
        self,
        lines: Chosen | None = None,
        *,
        method: Method | None = None,
        reference: File | ArrayLike | None = None,
        companions: Sequence[File] = (),
        calibrated_on: File | None = None,
        draws: int | None = None,
        slices: int | str | Sequence[int] = 0,
        series: str | None = None,
        seed: int | None = None,
        recipe: RecipeLike | None = None,
        blocks: Blocks | None = None,
        jobs: int = 1,
        watch: Watch | None = None,
    ) -> interactive.ScanImage:
        """Reconstruct an image with error bars: ``mri-design recon``.

        Parameters
        ----------
        lines : sequence of int, or bool array, optional
            The lines to use (readouts along a trajectory), by number or as a mask; of a plane, a mask (ky, kz). All
            measured ones by default.
        method : str, optional
            "mean", "map", "least-squares", "zero-filled", "l1-wavelet" or "total-variation", see `reconstruct`.
            Posterior mean, which comes with error bars, MAP, least squares, or zero filling; the recipe's by default.
        reference : array, str or Path, optional
            Image (ky, kx), or one for each slice (slice, ky, kx), real or complex, or a file of such, that errors are
            measured against, its magnitude scaled to fit; by default what the scan knows of itself.
        companions : sequence of str or Path
            Files of other images of the object, which the prior uses where the measured lines agree: ``--with``.
            ``"slices"`` offers each slice the mean of those above and below it, ``"slices:2"`` two such;
            of a series ``"joint"`` lets all frames share the sites of their prior.
        calibrated_on : str or Path, optional
            Folder of complete scans of other subjects, which are reconstructed from the same lines.
            `ScanImage.coverage` says within how many standard deviations 50, 80 and 95 % of their pixels are.
        draws : int, optional
            Number of posterior draws of the image (`ScanImage.draws`), 64 at most, for errors of means of regions; by
            default the recipe's, none.
        slices : int, str or sequence of int
            The slice, by number from 0 (negative ones count from the end); several, or ``"all"``, give an image of all.
        series : {"contrast", "phase", "repetition", "set"}, optional
            All frames of the scan's file along this axis, as echoes, for `ScanImage.fit`.
        seed, recipe, blocks, jobs, watch
            As for `design`.

        Raises
        ------
        UsageError, InputError
            For an unknown method, lines without data, and a series of a scan that is not all in files.
        """
        settings = self._settings(recipe, blocks).replacing("reconstruction", method=method, draws=draws)
        if series is not None:
            counters: dict[Any, Any] = {**(settings.input.series or {}), series: "all"}
            settings = settings.replacing("input", series=counters)
        if settings.input.axis:
            self._require_files("series")
        measured_against: Path | runs.GivenReference | None = file_given(reference)
        if measured_against is None and reference is not None:
            measured_against = runs.GivenReference.of_array(reference)
        request = runs.ReconRequest(
            self.source,
            settings,
            lines,
            maps=self.maps,
            slices=self._choice(slices),
            reference=measured_against,
            companions=_files(companions),
            calibrated_on=file_given(calibrated_on),
        )

        def compute(work: Work, keep: Keep) -> ReconResult:
            if not settings.input.axis:
                return runs.reconstruct_scan(experiment.Slices.of(self.data), request, work, keep)
            with experiment.opened_slices(self.source, settings, self.seed, self.maps) as frames:
                return runs.reconstruct_scan(frames, request, work, keep)

        made = Computation.of(request, compute, self._work(seed, jobs, watch))
        return interactive.ScanImage(**made.parts)

    @naming_arguments
    def compare(
        self,
        strategies: Sequence[str | Strategy] | None = None,
        *,
        lines: int | Sequence[int],
        start: int | None = None,
        draws: int = 5,
        methods: Sequence[Method] = (),
        companions: Sequence[File] = (),
        slices: int | str | Sequence[int] = 0,
        seed: int | None = None,
        recipe: RecipeLike | None = None,
        jobs: int = 1,
        watch: Watch | None = None,
    ) -> interactive.StrategyComparison:
        """Compare strategies on the scan, which has to be fully sampled: ``mri-design compare``.

        Parameters
        ----------
        strategies : sequence of str or Strategy, optional
            Names of `strategy_names`, and objects, which are registered under their names; by default those of the
            command: designs, and the usual fixed masks.
        lines : int or sequence of int
            Numbers of lines, samples of a plane, or shots.
        start : int, optional
            Centre lines that every mask begins with; by default each its own, and with several coils masks that look at
            no data are tried with those of designs, too.
        draws : int
            Of every random strategy.
        methods : sequence of str
            Methods of `reconstruct` that reconstruct every mask, compared with the first of them
            (`StrategyComparison.methods`). Weights of penalties are chosen in hindsight.
        companions : sequence of str or Path
            As for `reconstruct`: the lines of every mask decide.
        slices, seed, recipe, jobs, watch
            As for `design`; errors are means over the slices.

        Raises
        ------
        UsageError, InputError
            For unknown strategies and methods, and a scan that is not fully sampled.
        """
        settings, work = self._settings(recipe, None).replacing("design", start=start), self._work(seed, jobs, watch)
        numbers = [lines] if isinstance(lines, int | np.integer) else lines
        require_counts(draws=draws, least=1)
        require_instance((list, tuple, range, np.ndarray), wanted="whole numbers", lines=numbers)
        for number in numbers:
            require_instance((int, np.integer), wanted="whole numbers", lines=number)
        encoding = settings.design.encoding
        named = usual_strategies(encoding) if strategies is None else strategies
        source = ScanSource(
            self.source,
            self._choice(slices),
            self.maps,
            require_grid_data(self.data, self.source),
            _files(companions),
        )
        request = runs.ComparisonRequest(
            sources=[source],
            recipe=settings,
            strategies=[name_of_strategy(one, encoding) for one in named],
            lines=list(numbers),
            seeds=draws,
            methods=list(methods),
        )
        made = Computation.of(request, partial(runs.compare_strategies, request), work)
        return interactive.StrategyComparison(**made.parts)

    def _require_files(self, field: str) -> None:
        if not self.in_files:
            cure = "Save the arrays, and load the files; a mask of the lines is an argument of reconstruct."
            raise InputError(field, "a scan of which arrays were given", "one that is all in files", cure)

    def _settings(self, recipe: RecipeLike | None, blocks: Blocks | None) -> Recipe:
        settings = self.recipe if recipe is None else recipe_from(recipe)
        return settings.replacing("prior", blocks=blocks)

    def _choice(self, slices: int | str | Sequence[int]) -> SliceChoice:
        if isinstance(slices, str):
            return SliceChoice(slices)
        numbers = [slices] if isinstance(slices, int | np.integer) else list(slices)
        if not numbers:
            raise UsageError("slices: give one slice or more")
        return SliceChoice(",".join(str(slice_number(number, self.data.n_slices)) for number in numbers))

    def _work(self, seed: int | None, jobs: int, watch: Watch | None) -> Work:
        seed = self.seed if seed is None else seed
        require_counts(seed=seed, least=0)
        require_counts(jobs=jobs, least=1)
        progress = runs.Progress(warn=say_once) if watch is None else runs.Progress(watch, warn=say_once)
        return runs.Work(seed=seed, jobs=jobs, progress=progress)

    @property
    def facts(self) -> dict[str, str]:
        """Main facts in words, by what they are about."""
        data = self.data
        place = data.geometry[0] if isinstance(data, KSpaceData) and data.geometry else None
        known = "given" if data.coil_maps is not None else "to be estimated"
        noise = (
            data.noise_variance is not None or data.noise_covariance is not None or self.recipe.input.noise is not None
        )
        return {
            "scan": phrase("sizes", data),
            "noise": "given" if noise else "to be estimated",
            "coil maps": "" if data.n_coils == 1 else known,
            "pixels": "" if place is None else " x ".join(f"{side:.3g}" for side in place.pixel) + " mm",
            "true image": "known" if data.reference is not None else "",
            "centre of k-space": centre_words(data),
        }

    @property
    def _title(self) -> str:
        return f"LoadedScan {self.data.name}"

    @property
    def _pictures(self) -> Sequence[tuple[str, bytes]]:
        shown = self.reconstruct(method="zero-filled")
        says = "slice 0 without a model" if self.data.n_slices > 1 else "without a model"
        return [(says, interactive.image_png(shown.array, shown.frame.layout))]


def _files(companions: Sequence[File]) -> tuple[str, ...]:
    require_instance((list, tuple), wanted="a list of files, or slices or frames", companions=companions)
    return tuple(map(named_file, companions))


def _listed(times: str | ArrayLike) -> str | list[float]:
    return times if isinstance(times, str) else number_array("times", times, shape=(None,), kind="real").tolist()


def _regions(
    region: File | ArrayLike | Sequence[File | NDArray[Any]] | None,
    difference: tuple[File | ArrayLike, File | ArrayLike] | None,
) -> WantedRegions:
    def given(one: Any) -> GivenRegion:
        return np.asarray(one) if (path := file_given(one)) is None else path

    means = [] if region is None else listed_regions(region)
    require_instance((list, tuple, NoneType), wanted="a pair of regions", difference=difference)
    if difference is not None and len(difference) != 2:
        raise InputError("difference", f"{len(difference)} regions", "a pair of regions")
    pairs = () if difference is None else ((given(difference[0]), given(difference[1])),)
    return WantedRegions(tuple(map(given, means)), pairs)
