"""Recipes: the settings of an experiment, checked, from TOML files, text or Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from msgspec import Meta

from mri_design.brief import briefly
from mri_design.design.trace import Within
from mri_design.errors import (
    InputError,
    UnknownNameError,
    UsageError,
    described,
    did_you_mean,
    line_numbers,
    probability,
    share_of,
)
from mri_design.experiment.settings import HUGE, Settings, setting
from mri_design.experiment.strategies import (
    ORACLES,
    TRAINING_RULES,
    check_strategy_name,
    strategy_named,
    strategy_names,
)
from mri_design.kinds import KINDS, designed_kinds
from mri_design.registry import BLOCKS, SITES, Shipped, split_name

if TYPE_CHECKING:  # numerics are imported when a setting becomes an object: reading a recipe needs none of them
    from mri_design.calibration.coils import MapMethod
    from mri_design.estimation.penalised import InnerSolver
    from mri_design.inference.double_loop import DoubleLoop
    from mri_design.model.generalized_linear import SiteBlock
    from mri_design.model.sparsity import PhasePrior, SparsityBlock
    from mri_design.readouts import Constraints, Readouts

SHIPPED = Path(__file__).parents[1] / "recipes"
MAX_RECIPE_BYTES = 1 << 20
COLUMN_LIMIT = 1 << 25  # several coils: exact by columns up to some 70 x 70, a fifth of a second each time
USUAL_MATRIX = 256
"""Lines and samples of k-space that is simulated from an image, unless a setting says how many."""
USUAL_CALIBRATION = 24
"""Centre lines that coil maps are estimated from, unless a setting says how many."""

ORDERS = ("as-chosen", "ascending", "centre-out", "interleaved")
"""Orders in which the chosen lines can be measured."""
CORNERS = "corners"
"""Stands for the samples of a plane outside of the ellipse that touches its edges."""
EVERY = "all"
"""Stands for all numbers of a counter."""

Count = Annotated[int, Meta(ge=1)]
Positive = Annotated[float, Meta(gt=0, le=HUGE)]
Fraction = Annotated[float, Meta(gt=0, lt=1)]
Side = Annotated[int, Meta(ge=4, le=4096)]
Sides = Annotated[
    tuple[Side, ...], Meta(min_length=2, max_length=2)
]  # msgspec 0.22 crashes for Side | tuple[Side, Side]
Place = Annotated[int, Meta(ge=0)]
_TOLERANCE = r"(?=[^e]*[1-9])\d*\.?\d+(e-?\d{1,2})?"
"""A positive number behind a name."""
Counter = Literal["contrast", "phase", "repetition", "set", "encoding"]


def within_of(wanted: float | str) -> Within:
    """A wanted interval: ``0.02`` or ``"2%"`` of a region's brightness, or ``"3.5 units"``, as the image has them.

    Of a map the length may have its unit (`unit_of_interval`).

    Raises
    ------
    InputError
        For any other text, and a length that cannot be.
    """
    text, unit = str(wanted).strip(), unit_of_interval(wanted)
    try:
        number = float(text.removesuffix(unit)) if unit else share_of(text)
    except ValueError:
        number = float("nan")
    if not number > 0:
        got, cure = repr(wanted), "Two per cent on either side are 2%, or 0.02."
        raise InputError("until_interval", got, "a fraction, per cent, or a length as '3.5 units'", cure)
    return Within(number, not unit)


def unit_of_interval(wanted: float | str) -> str:
    """The unit behind a length, as "units" or "ms"; empty where there is none."""
    found = re.fullmatch(r"[-+.\de]*\d\.?\s*([a-zA-Z][\w/]*)", str(wanted).strip())
    return "" if found is None or re.fullmatch(r"e\d+", found[1]) else found[1]


def _check_strategy(name: str) -> None:
    try:
        check_strategy_name(name, _encoding_of(name), but=TRAINING_RULES)
    except UnknownNameError as error:
        raise InputError("strategy", error.got, error.wanted, error.cure) from error
    except UsageError as error:
        raise InputError("strategy", f"{name!r}: {error}", "the name of a strategy") from error


def _encoding_of(strategy: str) -> str:
    """The first encoding that has this strategy; lines if none has."""
    names = ((each, split_name(strategy_named(strategy, each))[0]) for each in designed_kinds())
    return next((each for each, family in names if family in strategy_names(each)), "lines")


def _written(pattern: str, example: str) -> Callable[[str], None]:
    """A check of texts that have more after a name and a colon."""

    def check(text: str) -> None:
        if not re.fullmatch(pattern, text):
            wanted = "a name, followed by a colon and a value only if it takes one"
            raise InputError("", repr(text), wanted, f"As {example}.")

    return check


def _check_forbidden(lines: str) -> None:
    if lines != CORNERS:
        line_numbers(lines)


def _check_noise(noise: float | str) -> None:
    if isinstance(noise, float) and not 0 < noise * noise < float("inf"):
        raise InputError("noise", f"{noise:g}", "a standard deviation in the units of the samples")


@dataclass(frozen=True, kw_only=True)
class BlockRecipe(Settings):
    """One sparsity block; rates are per unit of the image's 99.5th percentile, so that one recipe fits all scans.

    Parameters
    ----------
    kind : str
        Which coefficients are sparse: pixels; differences of neighbouring pixels; wavelet, orthonormal, as
        wavelet:db4:3 with a name of PyWavelets and a number of levels; non-local, differences to the centre pixels
        of the most similar patches (in images, not in designs); companion, differences to pixels whose surroundings
        are similar in another image of the object (if one is given); or repeat, differences of neighbouring pixels
        that a repeat of the scan does not have.
    rate : float
        Of the sites, one over their width: larger is sparser. For a non-local or companion block per unit of the
        difference that the similarity of the patches predicts.
    site : str
        Distribution of a coefficient: laplace; student-t, with three degrees of freedom; or sech2.
    isotropic : bool
        One site for all differences of a pixel together, in both directions or to its neighbours.
    tau_limit : float, optional
        Largest rate, per standard deviation of the noise.
    """

    kind: str = setting(names=BLOCKS, check=_written(r"wavelet(:[^:]+(:[1-9]\d*)?)?|[^:]+", "wavelet:db4:3"))
    rate: Positive = setting()
    site: str = setting("laplace", names=SITES, expert=True)
    isotropic: bool = setting(False, expert=True)
    tau_limit: Positive | None = setting(None, unset="no limit", expert=True)

    def block(self) -> SparsityBlock:
        """The block of the model, with the `usual_limits`."""
        from mri_design.model.sparsity import SparsityBlock, usual_limits

        kind, *more = self.kind.split(":")
        wavelet: dict[str, Any] = dict(zip(("wavelet", "levels"), (*more[:1], *map(int, more[1:])), strict=False))
        limits: dict[str, Any] = usual_limits(kind, self.tau_limit)
        return SparsityBlock(kind, self.rate, site=self.site, isotropic=self.isotropic, **wavelet, **limits)


@dataclass(frozen=True, kw_only=True)
class PhaseRecipe(Settings):
    """Model of the image's phase.

    Parameters
    ----------
    model : {"modulus", "aware", "held-back", "held-back-anywhere"}
        modulus: sites on moduli. aware: sites on exp(-i phi) u, whose imaginary part is expected to be smaller;
        phi is estimated from the image at low resolution, so this does harm if phi is not smooth or coil maps are
        missing. held-back: designs use moduli, and an image uses aware if that predicts lines which are held back
        clearly better, or if one side of k-space is missing; held-back-anywhere: the same for images of planes and
        along trajectories.
    """

    model: Literal["modulus", "aware", "held-back", "held-back-anywhere"] = "held-back"

    def chosen_by_what_is_held_back(self, encoding: str) -> bool:
        """Whether the measured lines (samples, readouts) themselves choose the model of their image."""
        return self.model == "held-back-anywhere" or (self.model == "held-back" and KINDS[encoding].held_back_phase)

    def prior(self) -> PhasePrior | None:
        """The phase prior that a slice starts with, its phase to be estimated; None until one has been chosen."""
        from mri_design.model.sparsity import IMAGINARY_RATIO, PhasePrior

        return PhasePrior(None, IMAGINARY_RATIO) if self.model == "aware" else None


@dataclass(frozen=True, kw_only=True)
class InputRecipe(Settings):
    """How the input is read.

    Parameters
    ----------
    series : table, optional
        Which series of raw data is read, by the file's own numbers: contrast, phase, repetition, set, or encoding
        (an encoding space of MRD). One of them may be "all": recon then makes an image of each.
    noise : float or str, optional
        Noise of k-space: its standard deviation per real component, in the units of the input; or a file of
        samples that the scan's coils measured without excitation, at the scan's bandwidth: an array (coil, sample)
        (.npy, .npz, .cfl), or raw data with noise readouts.
    matrix : int or (int, int), optional
        Lines and samples (ky, kx) of k-space that is simulated from an image; pixels of the image of samples along
        a trajectory, if their file states none. k-space on a grid keeps its own.
    duplicates : {"refuse", "average", "first", "last"}
        What happens to a line or shot that raw data hold several times.
    dims : tuple of str, optional
        Names of the axes of an array (NumPy, BART, HDF5; MATLAB's in its own order): coil, slice, ky, kx, of
        volumes kz; repetition, frame, contrast, echo; real/imag of pairs of real numbers, coil*real/imag of
        pairs of coils.
    centre : (int, int), optional
        Line and sample of the centre of k-space in the file, counted from 0; of a plane the two phase encodes.
    """

    series: dict[Counter, Annotated[int, Meta(ge=0, le=65535)] | Literal["all"]] | None = setting(
        None, unset="the first of each", cure="As series = {contrast = 0}; or phase, repetition, set or encoding."
    )
    noise: Positive | str | None = setting(None, unset="that of the input, or estimated", check=_check_noise)
    matrix: Side | Sides | None = setting(
        None, unset="that of the file or of the trajectory; 256 for simulated k-space"
    )
    duplicates: Literal["refuse", "average", "first", "last"] = setting("refuse", expert=True)
    dims: Annotated[tuple[str, ...], Meta(min_length=2, max_length=8)] | None = setting(
        None, unset="those of the file", expert=True
    )
    centre: tuple[Place, Place] | None = setting(None, unset="that of the file or its samples", expert=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(number == EVERY for number in (self.series or {}).values()) > 1:
            cure = "Give one of them a number."
            raise InputError("input.series", "all of several counters", "one further axis of the images", cure)

    @property
    def reading(self) -> dict[str, Any]:
        """How a file is to be read, as arguments of `mri_design.scan.io.formats.read` and of `ReadOptions`."""
        read = {name: getattr(self, name) for name in ("duplicates", "counters", "dims", "centre")}
        return read | {"matrix": self.shape, "noise": self.noise is None}

    @property
    def shape(self) -> tuple[int, int] | None:
        """The matrix (ky, kx)."""
        if self.matrix is None:
            return None
        rows, columns = (self.matrix, self.matrix) if isinstance(self.matrix, int) else self.matrix
        return rows, columns

    @property
    def simulated(self) -> tuple[int, int]:
        """The matrix (ky, kx) of k-space that is simulated from an image."""
        return self.shape or (USUAL_MATRIX, USUAL_MATRIX)

    @property
    def noise_variance(self) -> float | None:
        """Noise variance per real component, if the recipe has a number."""
        return self.noise**2 if isinstance(self.noise, float) else None

    @property
    def noise_samples(self) -> str | None:
        """File of noise samples, if the recipe names one."""
        return self.noise if isinstance(self.noise, str) else None

    @property
    def counters(self) -> dict[str, int]:
        """Which contrast, phase, repetition, set or encoding to read: its number by the counter's name.

        Raises
        ------
        InputError
            If all numbers of a counter are requested, which only a reconstruction of a file can do.
        """
        if self.axis:
            cure = f"Give {self.axis} a number, or leave it out for the first."
            raise InputError("input.series", f"all of {self.axis}", "one number, except in recon of a file", cure)
        return {name: int(number) for name, number in (self.series or {}).items()}

    @property
    def axis(self) -> str:
        """The counter whose numbers are all requested (`EVERY`); empty if none."""
        return next((name for name, number in (self.series or {}).items() if number == EVERY), "")


@dataclass(frozen=True, kw_only=True)
class CoilRecipe(Settings):
    """Coil sensitivity maps, if none are given.

    Parameters
    ----------
    maps : str
        espirit: from gapless centre lines (ACS), 8 at least; nlinv: together with the image, from all lines
        measured near the centre, with or without gaps; auto: espirit from 24 gapless lines on, nlinv from fewer.
        espirit uses 24 centre lines at most; auto:16 or espirit:16 at most 16, and a design begins with these.
    coil_compression : {"auto", "none"} or int
        Virtual coils into which the scan's are combined, slice by slice; reports say what is left out. auto: of
        more than 12 coils as few as leave out less than a quarter of the noise; none: all coils stay as they are.
    """

    maps: str = setting(
        "auto",
        names=lambda: ("auto", "espirit", "nlinv"),
        check=_written(r"[^:]+(:([89]|[1-9]\d+))?", "espirit:16, with 8 lines or more"),
        expert=True,
    )
    coil_compression: Count | Literal["auto", "none"] = setting("auto", expert=True)

    @property
    def method(self) -> MapMethod:
        """How maps are estimated."""
        return cast("MapMethod", self.maps.partition(":")[0])

    @property
    def calibration_lines(self) -> int | None:
        """Centre lines (ACS) for an estimate of the maps, if the recipe states a number."""
        stated = self.maps.partition(":")[2]
        return int(stated) if stated else None

    @property
    def most_lines(self) -> int:
        """Centre lines that an estimate of coil maps uses at most."""
        return self.calibration_lines or USUAL_CALIBRATION


@dataclass(frozen=True, kw_only=True)
class CompanionRecipe(Settings):
    """Other images of the same object in the prior, if some are given.

    Parameters
    ----------
    strength : {"careful", "moderate", "strong"}
        careful: lesions that the other images do not show keep nearly all of their contrast; moderate, strong:
        less error, but such lesions lose some of it, the more the fewer readouts are measured; both recognise
        repeats of a scan.
    trust : bool
        Use the other images even if the readouts that are held back argue against them.
    """

    strength: Literal["careful", "moderate", "strong"] = "careful"
    trust: bool = False


VARIANCES = {
    "control-variate": Shipped("variances.control_variate", "ControlVariate"),
    "perturb-and-solve": Shipped("variances.control_variate", "MonteCarlo"),
    "lanczos": Shipped("variances.base", "Lanczos"),
    "exact-columns": Shipped("variances.columns", "ExactByColumns"),
    "exact": Shipped("variances.base", "Exact"),
}
ROUGH_SAMPLES = 4
"""Posterior samples of rough inference."""
ROUGH_TOLERANCE = 0.1
"""Tolerance of each of its samples."""
ROUGH_INNER_TOLERANCE = 3e-4
"""Tolerance of its inner problem."""
MOST_ITERATIONS = 1000
"""Largest number of iterations of each inner problem and stage of MAP."""
SOLVERS = {
    "automatic": Shipped("estimation.map_estimate", "Automatic"),
    "irls": Shipped("estimation.penalised", "IRLS"),
    "lbfgs": Shipped("estimation.penalised", "LBFGS"),
    "admm": Shipped("estimation.admm", "ADMM"),
}


@dataclass(frozen=True, kw_only=True)
class InferenceRecipe(Settings):
    """The double loop.

    Parameters
    ----------
    samples : int
        Posterior samples of control-variate and perturb-and-solve.
    variances : str
        control-variate: posterior samples, most of whose scatter a circulant problem explains (with several
        coils: exact up to some 70 x 70; designs plain beyond); perturb-and-solve: plain samples; lanczos: as in
        TR-175, lanczos:50 with 50 steps, each an image in memory, 100 without a number; exact-columns: exact, for
        priors on pixels and differences, any coils; exact: for tiny grids.
        control-variate:0.07 is the residual at which each sample's linear solve stops, 0.03 without a number,
        relative to the residual of the circulant problem (squared without one); with perturb-and-solve relative to
        the whole.
    solver : str
        Solver of the inner problem and of MAP; irls is the papers'. automatic:0.001 is the excess of the objective
        per real unknown at which it stops, 0.0001 without a number.
    loops : int
        Largest number of outer loops of a reconstruction.
    tolerance : float
        Outer loops end when the variances changed by less than this in the last one (mean relative change), or would
        change by less in all further ones, if changes go on to fall as in the last two.
    """

    samples: Annotated[int, Meta(ge=2)] = 8
    variances: str = setting(
        "control-variate",
        names=VARIANCES,
        check=_written(
            rf"(control-variate|perturb-and-solve)(:{_TOLERANCE})?|lanczos(:[1-9]\d*)?|[^:]+",
            "control-variate:0.07, or lanczos:50",
        ),
        expert=True,
    )
    solver: str = setting(
        "automatic", names=SOLVERS, check=_written(rf"[^:]+(:{_TOLERANCE})?", "irls:0.001"), expert=True
    )
    loops: Count = setting(12, expert=True)
    tolerance: Positive = setting(0.03, expert=True)

    def engine(self, *, extrapolated: bool = True, rough: bool = False) -> DoubleLoop:
        """The double loop with these settings, without `Variances.bias`, which costs products and is shown nowhere.

        Samples of a control variate are extrapolated from where the solver stopped in images, but not in designs, which
        judge lines by them and share their noise between steps (`ControlVariate`). A ``rough`` one has `ROUGH_SAMPLES`
        and solves to `ROUGH_TOLERANCE` and `ROUGH_INNER_TOLERANCE`, unless the settings are rougher still: enough for a
        strategy that corrects posteriors.
        """
        from mri_design.inference.double_loop import DoubleLoop

        name, _, stated = self.variances.partition(":")
        arguments: dict[str, Any] = {}
        if name == "lanczos" and stated:
            arguments = {"steps": int(stated)}
        elif name in ("control-variate", "perturb-and-solve"):
            samples, tolerance = self.samples, float(stated or 0.03)
            if rough:
                samples, tolerance = min(ROUGH_SAMPLES, samples), max(ROUGH_TOLERANCE, tolerance)
            arguments = {"samples": samples, "tolerance": tolerance, "with_bias": False}
        if name == "control-variate":
            arguments |= {"column_limit": COLUMN_LIMIT, "extrapolated": extrapolated, "shared_noise": not extrapolated}
        solver = self.inner_solver(ROUGH_INNER_TOLERANCE if rough else 0.0)
        return DoubleLoop(VARIANCES[name](**arguments), solver, self.loops, self.tolerance)

    def inner_solver(self, least: float = 0.0) -> InnerSolver:
        """The chosen solver of the inner problem, which stops at ``least`` or earlier."""
        name, _, stated = self.solver.partition(":")
        solver: InnerSolver = SOLVERS[name](tolerance=max(least, float(stated or 1e-4)), max_iterations=MOST_ITERATIONS)
        return solver


@dataclass(frozen=True, kw_only=True)
class DesignRecipe(Settings):
    """The sequential design: strategy, lines per inference, order of measurement, and when to stop.

    Parameters
    ----------
    strategy : str
        What decides; `mri-design design --help-all` names them.
    start : int, optional
        Centre lines to begin with; of a plane the side of the square at the centre that is always measured.
    block : int, optional
        Choose K lines after each inference: echo trains of K; or K samples of a plane.
    order : str
        Order in which the chosen lines are measured: as-chosen, ascending, centre-out (each train), or interleaved
        (each train covers k-space, an echo measures one band), as interleaved:4 with the echo that measures DC.
    until_error : float, optional
        Stop when the predicted relative L2 error of the image is E (0.05 is 5 %) or less; --lines is the
        most. The design makes the image now and then, and goes by its error bars.
    until_gain : float, optional
        Stop when no remaining line is expected to give G nats of information about the image (sum over
        slices); --lines is the most.
    until_interval : float or str, optional
        Stop when the mean of every region, or their difference, is known to within E on either side: 0.02 or 2% of the
        region's mean (of a difference, of the brighter region), or "3.5 units", as the image has them; --lines is the
        most.
    level : float
        Probability with which the interval of a region holds the truth: 90 % are 0.9.
    encoding : str
        What is chosen one by one: lines; plane, single samples (ky, kz), the image's rows and columns; radial,
        spokes; or spiral, arms.
    """

    strategy: str = setting("calibrated", check=_check_strategy)
    start: Count | None = setting(None, unset="the strategy's")
    block: Count | None = setting(None, unset="1; of a plane a 200th of it")
    order: str = setting(
        "as-chosen",
        names=lambda: ORDERS,
        check=_written(r"interleaved:[1-9]\d*|[^:]+", "interleaved:4"),
    )
    until_error: Fraction | None = setting(None, cure="Five per cent are 0.05.")
    until_gain: Positive | None = None
    until_interval: Fraction | str | None = setting(None, check=within_of, cure="Two per cent are 2%, or 0.02.")
    level: Annotated[float, Meta(ge=0.5, le=0.99)] = setting(0.9, read=partial(probability, least=0.5, most=0.99))
    encoding: str = setting("lines", names=designed_kinds)

    def __post_init__(self) -> None:
        if isinstance(self.strategy, str):
            object.__setattr__(self, "strategy", strategy_named(self.strategy, _encoding_of(self.strategy)))
        super().__post_init__()

    @property
    def within(self) -> Within | None:
        """How near to the truth intervals of regions have to be; None where none is wanted."""
        return None if self.until_interval is None else within_of(self.until_interval)

    def block_of(self, encoding: Readouts) -> int:
        """Candidates that are chosen after each inference: lines, or samples of a plane; shots one by one."""
        return self.block or encoding.usual_block

    @property
    def trains(self) -> tuple[str, int, int | None]:
        """Order, echoes of a train, and the echo that measures DC, if there is one.

        A block is a train; in a plane, where blocks also save time, only if there is an order.
        """
        name, *echo = self.order.split(":")
        echoes = self.block if KINDS[self.encoding].blocks_are_trains or name != "as-chosen" else None
        return name, echoes or 1, int(echo[0]) if echo else None


@dataclass(frozen=True, kw_only=True)
class ConstraintRecipe(Settings):
    """Constraints of a sequence on the lines, or on the samples of a plane.

    Parameters
    ----------
    forbid : str, optional
        Lines that must not be measured, numbered from 0; of a plane "corners", the samples outside of the ellipse
        that touches its edges.
    require : str, optional
        Lines that must be measured; the design begins with them.
    partial_fourier : float, optional
        Keep this fraction of the grid, 0.5 to 1, with all lines of positive ky.
    max_jump : int, optional
        Largest distance between consecutive lines. The target always stays within reach.
    """

    forbid: str | None = setting(None, check=_check_forbidden, cure='As "0-9,250-255"; of a plane "corners".')
    require: str | None = setting(None, check=line_numbers, cure='As "0-9,250-255".')
    partial_fourier: Annotated[float, Meta(ge=0.5, le=1)] | None = None
    max_jump: Count | None = None


@dataclass(frozen=True, kw_only=True)
class ReconstructionRecipe(Settings):
    """Point estimates and error bars.

    Parameters
    ----------
    method : {"mean", "map", "least-squares", "zero-filled", "l1-wavelet", "total-variation"}
        How the image is reconstructed.
    weight : float, optional
        Regularisation weight: for l1-wavelet and total-variation of the penalty, relative to the brightest pixel of
        the zero-filled image; for least-squares Tikhonov's, in units of X^H X.
    wavelet_shifts : bool
        l1-wavelet: the image is shifted before every shrinkage of its wavelets, and back (cycle spinning, as in BART);
        without, it is that of SigPy.
    band_factors : bool
        Mean of one coil: bands of k-space that are too small or too large are corrected by factors learnt from
        random heads, as far as lines held back agree.
    noise_map : bool
        Mean and least squares: a map of the noise of every pixel, and the g-factor of the coils.
    draws : int
        Mean: number of posterior draws that are kept, for errors of means of regions (mri-design measure).
    """

    method: Literal["mean", "map", "least-squares", "zero-filled", "l1-wavelet", "total-variation"] = "mean"
    weight: Positive | None = setting(None, unset="0.003 for total-variation, 0.001 for the others", expert=True)
    wavelet_shifts: bool = setting(True, expert=True)
    band_factors: bool = setting(True, expert=True)
    noise_map: bool = False
    draws: Annotated[int, Meta(ge=0, le=64)] = 0


@dataclass(frozen=True, kw_only=True)
class SimulationRecipe(Settings):
    """Simulation of k-space from images.

    Parameters
    ----------
    noise : float
        Standard deviation per real component, relative to the 99.5th percentile of the image.
    phase : {"own", "smooth", "rough", "none"}, optional
        Phase of the image.
    coils : int
        Simulated receive coils.
    """

    noise: Fraction = setting(0.007, expert=True)
    phase: Literal["own", "smooth", "rough", "none"] | None = setting(
        None, unset="the image's own, else smooth", expert=True
    )
    coils: Annotated[int, Meta(ge=1, le=64)] = setting(1, expert=True)

    def of_scene(self, seed: int) -> dict[str, Any]:
        """Arguments of the simulation of a scene, whose phase is smooth unless the recipe states another."""
        from numpy.random import default_rng

        phase = "smooth" if self.phase in (None, "own") else self.phase
        return {"noise": self.noise, "phase": phase, "n_coils": self.coils, "rng": default_rng([seed, 1])}


@briefly
@dataclass(frozen=True, kw_only=True)
class Recipe(Settings):
    """The settings of an experiment; every field has a default.

    `Recipe.of` makes one from plain values, as a TOML file has them; `replacing` changes settings of a section.
    """

    prior: tuple[BlockRecipe, ...] = (  # or blocks of a script, which no recipe file can hold
        BlockRecipe(kind="pixels", rate=100.0, tau_limit=0.4),
        BlockRecipe(kind="differences", rate=10.0),
        BlockRecipe(kind="non-local", rate=0.8, isotropic=True, tau_limit=1.0),
    )
    phase: PhaseRecipe = PhaseRecipe()
    input: InputRecipe = InputRecipe()
    coils: CoilRecipe = CoilRecipe()
    companion: CompanionRecipe = CompanionRecipe()
    inference: InferenceRecipe = InferenceRecipe()
    design: DesignRecipe = DesignRecipe()
    constraints: ConstraintRecipe = ConstraintRecipe()
    reconstruction: ReconstructionRecipe = ReconstructionRecipe()
    simulation: SimulationRecipe = SimulationRecipe()

    @classmethod
    def checked(cls, name: str, value: Any, prefix: str = "") -> Any:
        """A section; blocks of the prior may also be objects of a script."""
        if name != "prior":
            return super().checked(name, value, prefix)
        if not isinstance(value, list | tuple):
            raise InputError(f"{prefix}prior", described(value), "a list of [[prior]] tables, or of blocks")
        return tuple(_block(one, f"{prefix}prior.{place}") for place, one in enumerate(value))

    def blocks(self) -> tuple[SparsityBlock | SiteBlock, ...]:
        """The prior as the model takes it.

        Raises
        ------
        InputError
            For a prior without blocks.
        """
        if not self.prior:
            raise InputError("recipe: prior", "no block", "at least one [[prior]] table")
        return tuple(one.block() if isinstance(one, BlockRecipe) else one for one in self.prior)

    def rules(self, readouts: Readouts | None = None) -> Constraints:
        """The constraints of the readouts, by default of lines, as a design takes them.

        Raises
        ------
        InputError
            For lists that are not understood, lines that are both forbidden and required, and constraints that these
            readouts do not have.
        """
        from mri_design.readouts import LineReadouts

        readouts = LineReadouts((1, 1)) if readouts is None else readouts
        kind, lists = readouts.kind, {"forbid": "forbidden", "require": "required"}
        limits = {name: value for name, value in vars(self.constraints).items() if value is not None}
        for name in (name for name in limits if name not in kind.limits):
            cure = f"{kind.several.capitalize()} have {', '.join(kind.limits)}." if kind.limits else "Leave it out."
            got, wanted = str(limits[name]), f"none where {kind.several} are chosen"
            raise InputError(f"recipe: constraints.{name}", got, wanted, cure)
        if "forbid" in limits and (limits["forbid"] == CORNERS) != kind.square:
            wanted = f'"{CORNERS}" of a plane' if kind.square else "numbers of lines"
            raise InputError("recipe: constraints.forbid", repr(limits["forbid"]), wanted)
        if kind.square and limits.pop("forbid", None):
            limits["shutter"] = True
        numbers = {to: line_numbers(limits.pop(name), f"{to} lines") for name, to in lists.items() if name in limits}
        if kind.square and self.design.start is not None:
            limits["calibration"] = self.design.start
        return readouts.constraints(**numbers, **limits)

    @property
    def slice_settings(self) -> dict[str, Any]:
        """Encoding, prior and phase prior, as `Scan.slice_model` takes them."""
        return {"encoding": self.design.encoding, "prior": self.blocks(), "phase": self.phase.prior()}

    @property
    def calibration_lines(self) -> int | None:
        """Centre lines, or side of a square, that the design begins with, if the recipe says so: for the coil maps."""
        return self.design.start if KINDS[self.design.encoding].on_grid else None

    def of_another_file(self) -> Recipe:
        """The recipe without what belongs to the samples of one file: axes, centre, noise, and a number of coils."""
        compressed = "none" if self.coils.coil_compression == "none" else "auto"
        recipe = self.replacing("coils", coil_compression=compressed)
        return replace(recipe, input=replace(self.input, dims=None, centre=None, noise=None))

    def with_strategy(self, name: str | None) -> Recipe:
        """The recipe with this strategy; without a name with its own, or, of shots, with one that can choose them."""
        if name is None and KINDS[self.design.encoding].shots and self.design.strategy == "calibrated":
            name = "information-gain"
        return self.replacing("design", strategy=name)

    def replacing(self, section: str, **settings: object) -> Recipe:
        """A copy of the recipe with some settings of a section replaced; None keeps the recipe's.

        The section ``prior`` has the one setting ``blocks``: `SparsityBlock` and `SiteBlock` objects, or mappings as
        ``[[prior]]`` tables have them, instead of the recipe's.

        Raises
        ------
        InputError
            For a section or setting that does not exist, and for values that a recipe file could not have either; an
            oracle may be named, as with ``--strategy``.
        """
        if section == "prior" and set(settings) != {"blocks"}:
            cure = "Blocks are replaced as a whole: replacing('prior', blocks=[...])."
            raise InputError("recipe: prior", f"{', '.join(settings)}", "blocks", cure)
        present = getattr(self, section) if section in self.declared() else None
        given = {name: value for name, value in settings.items() if value is not None}
        if present is not None and not given:
            return self
        whole: Any = given.get("blocks", settings)
        if isinstance(present, Settings):
            known = present.plain()
            whole = known | {
                name: known[name] | value if isinstance(known.get(name), dict) and isinstance(value, Mapping) else value
                for name, value in given.items()
            }
        changed = _read({section: whole}, "recipe")  # which refuses what is no section
        return replace(self, **{section: getattr(changed, section)})

    def with_settings(self, texts: Iterable[str]) -> Recipe:
        """A copy of the recipe with settings that are written as text, ``design.block=4``, each checked as in a file.

        The value is TOML (``4``, ``true``, ``[64, 96]``, ``{contrast = 2}``). Anything else is text, or values between
        commas for a setting that takes a list; a setting that takes text alone takes it as typed.

        Raises
        ------
        InputError
            For text that is not SECTION.NAME=VALUE, and as `Recipe.of`; the field is the setting's path.
        """
        sections: dict[str, dict[str, Any]] = {}
        for text in texts:
            path, equals, value = text.partition("=")
            section, *inner = (part.strip() for part in path.split("."))
            if not (equals and inner and section and all(inner)):
                cure = "As --setting inference.samples=16."
                raise InputError("recipe: setting", repr(text), "SECTION.NAME=VALUE", cure)
            if section == "prior":
                raise InputError(f"recipe: {path}", repr(value), "a recipe file", "Write its [[prior]] tables there.")
            table = sections.setdefault(section, {})
            for name in inner[:-1]:
                table = table.setdefault(name, {})
                if not isinstance(table, dict):
                    got, wanted = f"{path.strip()} after {table!r}", "a setting once, as a value or by its parts"
                    raise InputError(f"recipe: {section}.{inner[0]}", got, wanted)
            known = self.sections[section].declared() if section in self.sections else {}
            kinds = known[inner[0]].kinds if inner[0] in known and len(inner) == 1 else set()
            table[inner[-1]] = _value_of(value.strip(), kinds)
        recipe = self
        for section, settings in sections.items():  # at once: some fit only together
            recipe = recipe.replacing(section, **settings)
        return recipe

    def as_settings(self) -> dict[str, Any]:
        """Plain values for a manifest; of noise samples the file's name and checksum, without its folder."""
        settings = self.plain()
        if self.input.noise_samples is not None:
            from mri_design.scan.io.bart import is_bart, pair_of
            from mri_design.scan.io.safe import check_file

            path = Path(self.input.noise_samples)
            path = pair_of(path)[1] if is_bart(path) else path
            check_file(path)
            settings["input"]["noise"] = f"{path.name} {sha256(path.read_bytes()).hexdigest()[:16]}"
        return settings


def _block(value: object, place: str) -> Any:
    """A block of plain values, as a ``[[prior]]`` table has them; a block of a script stays the same."""
    if isinstance(value, Mapping | BlockRecipe):
        return value if isinstance(value, BlockRecipe) else BlockRecipe.of(value, place)
    from mri_design.model.generalized_linear import SiteBlock
    from mri_design.model.sparsity import SparsityBlock

    if not isinstance(value, SparsityBlock | SiteBlock):
        raise InputError(place, described(value), "a [[prior]] table, a SparsityBlock or a SiteBlock")
    return value


Settings.sections = {name: type(value) for name, value in vars(Recipe()).items() if isinstance(value, Settings)}


def _value_of(text: str, kinds: Collection[str] = ()) -> Any:
    """Parse the text of a setting into a TOML value; ``kinds`` are the JSON types it may have (`Setting.kinds`)."""
    import tomllib

    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        if "number" in kinds:
            with suppress(ValueError):
                return share_of(text)
        return [_value_of(part.strip()) for part in text.split(",")] if "array" in kinds and "," in text else text
    return text if set(kinds) == {"string"} and not isinstance(value, str) else value


def recipe_schema() -> dict[str, Any]:
    """JSON Schema of recipes, by which editors complete and check a TOML file."""
    sections = {name: section.json_schema() for name, section in Settings.sections.items()}
    blocks = {"type": "array", "minItems": 1, "items": BlockRecipe.json_schema()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A recipe of mri-design",
        "type": "object",
        "properties": {"prior": blocks, **sections},
        "additionalProperties": False,
    }


def load_recipe(source: str | Path | None = None) -> Recipe:
    """A recipe from a TOML file, or a shipped one by name; None is the default recipe.

    Raises
    ------
    InputError
        Where the file cannot be read or a setting is unknown or out of range; the message names the setting.
    """
    if source is None:
        return Recipe()
    if not isinstance(source, str | Path):
        raise InputError("recipe", described(source), "a TOML file, or the name of a shipped recipe")
    import tomllib

    shipped, path = shipped_recipes(), Path(source)
    named, path = f"recipe {path.name}", SHIPPED / f"{source}.toml" if str(source) in shipped else path
    try:
        if path.stat().st_size > MAX_RECIPE_BYTES:
            raise InputError(str(path), f"{path.stat().st_size} bytes", f"at most {MAX_RECIPE_BYTES}")
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(named, str(error), "valid TOML") from error
    except (OSError, UnicodeDecodeError) as error:
        got = getattr(error, "strerror", None) or str(error)
        wanted = f"a readable TOML file or one of: {', '.join(shipped)}"
        raise InputError(named, got, wanted, did_you_mean(path.name, shipped)) from error
    recipe = _read(settings, named)
    strategy, wanted = recipe.design.strategy, ""
    if split_name(strategy)[0] in ORACLES:
        wanted = "a strategy that does without the truth; oracles are named with --strategy only"
    if strategy in TRAINING_RULES:
        wanted = "a strategy for a scan that is measured now; mri-design protocol goes by this one anyway"
    if wanted:
        raise InputError(f"{named}: design.strategy", repr(strategy), wanted)
    return recipe


def recipe_from(recipe: Recipe | str | Path | Mapping[str, object] | None) -> Recipe:
    """A recipe of what people call one: an object, a file, the name of a shipped one, a mapping as a file has it.

    Raises
    ------
    InputError
        As `load_recipe` and `Recipe.of`.
    """
    if isinstance(recipe, Mapping):
        return _read(recipe, "recipe")
    return recipe if isinstance(recipe, Recipe) else load_recipe(recipe)


def _read(settings: object, recipe: str) -> Recipe:
    """A recipe from plain values; errors say which recipe it is."""
    try:
        return Recipe.of(settings)
    except InputError as error:
        raise error.about(f"{recipe}: {error.field}") from error


def shipped_recipes() -> tuple[str, ...]:
    """Names of the recipes that come with the package."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.toml")))
