"""Recipes: every setting of an experiment, validated, from TOML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mri_design.brief import briefly
from mri_design.errors import (
    InputError,
    UnknownNameError,
    UsageError,
    described,
    did_you_mean,
    line_numbers,
    option,
)
from mri_design.experiment.settings import Settings, setting
from mri_design.experiment.strategies import (
    ORACLES,
    TRAINING_RULES,
    check_strategy_name,
    strategy_named,
    strategy_names,
)
from mri_design.kinds import KINDS, designed_kinds
from mri_design.registry import BLOCKS, SITES, Shipped, split_name

if TYPE_CHECKING:  # what settings become is imported where it is made: to read a recipe takes none of it
    from mri_design.estimation.penalised import InnerSolver
    from mri_design.inference.double_loop import DoubleLoop
    from mri_design.model.generalized_linear import SiteBlock
    from mri_design.model.sparsity import PhasePrior, SparsityBlock
    from mri_design.readouts import Constraints, Readouts

S = TypeVar("S", bound=Settings)

SHIPPED = Path(__file__).parents[1] / "recipes"
MAX_RECIPE_BYTES = 1 << 20
COLUMN_LIMIT = 1 << 25  # several coils: exact by columns up to some 70 x 70, a fifth of a second each time

_SERIES, _PLANE, _SHOTS = "Which series of raw data", "Samples of a plane (3-D scans)", "Spokes and spirals"
_ENOUGH, _CONSTRAINTS, _ORDER = "When it is enough", "What the sequence asks", "Echo trains and order"


def _check_strategy(name: str) -> None:
    try:
        check_strategy_name(name, _encoding_of(name), but=TRAINING_RULES)
    except UnknownNameError as error:
        raise InputError("strategy", error.got, error.wanted, error.cure) from error
    except UsageError as error:
        raise InputError("strategy", f"{name!r}: {error}", "the name of a strategy") from error


def _encoding_of(strategy: str) -> str:
    """The first encoding whose strategies include this one; lines where none do."""
    names = ((each, split_name(strategy_named(strategy, each))[0]) for each in designed_kinds())
    return next((each for each, family in names if family in strategy_names(each)), "lines")


EVERY = "all"
"""Stands for all numbers of a counter."""


_OF_SEVERAL = {"unset": "the first there is", "metavar": "N", "panel": _SERIES, "expert": True}


@dataclass(frozen=True, kw_only=True)
class BlockRecipe(Settings):
    """One sparsity block; rates are per unit of the image's 99.5th percentile, so that one recipe fits all scans.

    Parameters
    ----------
    kind : str
        Coefficients that are sparse: pixels; differences of neighbouring pixels; wavelet, orthonormal;
        non-local, differences to the pixels in the middle of the most similar patches (images only, not
        designs); companion, differences to those whose surroundings are alike in another image of the object
        (only where one is given); or repeat, differences of neighbouring pixels beyond those of a repeat of the
        scan.
    scale : float
        Rate of the sites: larger is sparser. Of a non-local or companion block per unit of the difference that
        the similarity of the patches makes expect.
    site : str
        Distribution of a coefficient: laplace; student-t, with three degrees of freedom; or sech2.
    isotropic : bool
        One site for all differences of a pixel together, in both directions or to its neighbours.
    wavelet : str
        Wavelets: a name of PyWavelets.
    levels : int
        Wavelets: levels of the decomposition.
    tau_limit : float, optional
        Largest rate, per standard deviation of the noise.
    tau_limit_with_non_local : float, optional
        The limit in models with a non-local block, which removes noise too.
    tau_limit_bright : float, optional
        Pixels: the limit of bright ones, which it pulls towards zero, in posterior means with a non-local block
        where several coils determine the image.
    reweighted : bool
        Pixels: bright ones have the limit `tau_limit_bright` whatever determines the image, of one coil too.
    """

    kind: str = setting(names=BLOCKS)
    scale: float = setting(above=0)
    site: str = setting("laplace", names=SITES, expert=True)
    isotropic: bool = setting(False, expert=True)
    wavelet: str = setting("db4", expert=True)
    levels: int = setting(3, least=1, expert=True)
    tau_limit: float | None = setting(None, above=0, unset="no limit", expert=True)
    tau_limit_with_non_local: float | None = setting(None, above=0, unset="`tau_limit`", expert=True)
    tau_limit_bright: float | None = setting(None, above=0, unset="`tau_limit`", expert=True)
    reweighted: bool = setting(False, expert=True)

    def made(self) -> SparsityBlock | SiteBlock:
        """The block as models take it."""
        from mri_design.model.sparsity import SparsityBlock

        return SparsityBlock(**self.plain())

    @classmethod
    def of(cls, values: object, place: str = "") -> Any:
        """A block of plain values, as a ``[[prior]]`` table has them; an object of a script stays what it is."""
        if isinstance(values, Mapping):
            return super().of(values, place)
        from mri_design.model.generalized_linear import SiteBlock
        from mri_design.model.sparsity import SparsityBlock

        return values if isinstance(values, BlockRecipe | SparsityBlock | SiteBlock) else super().of(values, place)


@dataclass(frozen=True, kw_only=True)
class PhaseRecipe(Settings):
    """Model of the image's phase.

    Parameters
    ----------
    model : {"modulus", "aware", "held-back", "held-back-anywhere"}
        modulus: sites on moduli. aware: sites on exp(-i phi) u, whose imaginary part is expected to be smaller;
        phi is estimated from the image at low resolution, so this does harm where phi is not smooth or coil
        maps are missing. held-back: lines are designed under moduli, and an image takes aware where that
        predicts lines which are held back clearly better, or where one side of k-space is missing;
        held-back-anywhere: images of planes and along trajectories do so, too.
    imaginary_ratios : tuple of float
        How much smaller the imaginary part is; each entry is a candidate of held-back, aware takes the first.
    """

    model: Literal["modulus", "aware", "held-back", "held-back-anywhere"] = setting("held-back")
    imaginary_ratios: tuple[float, ...] = setting((1.5,), above=0, members=(1, 8), expert=True)

    def chosen_by_what_is_held_back(self, encoding: str) -> bool:
        """True where the measured lines (samples, readouts) themselves choose the model of their image."""
        return self.model == "held-back-anywhere" or (self.model == "held-back" and KINDS[encoding].held_back_phase)

    def prior(self) -> PhasePrior | None:
        """The phase prior a slice starts with: a phase to be seen in the centre, or None until one has been chosen."""
        from mri_design.model.sparsity import PhasePrior

        return PhasePrior(None, self.imaginary_ratios[0]) if self.model == "aware" else None


@dataclass(frozen=True, kw_only=True)
class InputRecipe(Settings):
    """Reading raw data.

    Parameters
    ----------
    duplicates : {"refuse", "average", "first", "last"}
        What becomes of a line or shot that raw data hold several times.
    encoding : int, optional
        Number of the encoding space to read, of MRD files with several.
    contrast : int or "all", optional
        Number of the contrast to read, by the file's own numbers; with 'all' recon makes images of every one.
    phase : int or "all", optional
        Number of the phase to read, by the file's own numbers; with 'all' recon makes images of every one.
    repetition : int or "all", optional
        Number of the repetition to read, by the file's own numbers; with 'all' recon makes images of every one.
    set : int or "all", optional
        Number of the set to read, by the file's own numbers; with 'all' recon makes images of every one.
    matrix : (int, int), optional
        Pixels (ky, kx) of the image of samples along a trajectory, instead of what a NumPy or BART file says.
    dims : tuple of str, optional
        Names of the axes of an array (NumPy, BART, HDF5; MATLAB's in its own order): coil, slice, ky, kx, of
        volumes kz; repetition, frame, contrast, echo; real/imag of pairs of real numbers, coil*real/imag of
        pairs of coils.
    centre : (int, int), optional
        Line and sample of the centre of k-space in the file, counted from 0; of a plane the two phase encodes.
    """

    duplicates: Literal["refuse", "average", "first", "last"] = setting("refuse", panel=_SERIES, expert=True)
    encoding: int | None = setting(None, least=0, most=65535, **_OF_SEVERAL)
    contrast: int | Literal["all"] | None = setting(None, least=0, most=65535, **_OF_SEVERAL)
    phase: int | Literal["all"] | None = setting(None, least=0, most=65535, **_OF_SEVERAL)
    repetition: int | Literal["all"] | None = setting(None, least=0, most=65535, **_OF_SEVERAL)
    set: int | Literal["all"] | None = setting(None, least=0, most=65535, **_OF_SEVERAL)
    matrix: tuple[int, int] | None = setting(None, least=4, members=(2, 2), metavar="N[,N]", expert=True)
    dims: tuple[str, ...] | None = setting(
        None, unset="what the file says or shows", members=(2, 8), metavar="coil,ky,kx", panel=_SERIES, expert=True
    )

    centre: tuple[int, int] | None = setting(
        None,
        unset="what the file says or the samples show",
        least=0,
        members=(2, 2),
        metavar="LINE,SAMPLE",
        panel=_SERIES,
        expert=True,
    )

    @property
    def reading(self) -> dict[str, Any]:
        """How a file is to be read, as arguments of `mri_design.scan.io.formats.read` and of `ReadOptions`."""
        return {name: getattr(self, name) for name in ("duplicates", "counters", "matrix", "dims", "centre")}

    def __post_init__(self) -> None:
        super().__post_init__()
        every = [name for name, number in self._given.items() if number == EVERY]
        if len(every) > 1:
            cure = f"Name one {every[1]} a run, by its number."
            raise InputError(f"input.{every[1]}", f"all, and all of {every[0]}", "one further axis of the images", cure)

    @property
    def _given(self) -> dict[str, int | str]:
        numbers = {name: getattr(self, name) for name in ("contrast", "phase", "repetition", "set", "encoding")}
        return {name: number for name, number in numbers.items() if number is not None}

    @property
    def counters(self) -> dict[str, int]:
        """The numbers that are given, by name.

        Raises
        ------
        InputError
            Where all numbers of a kind are asked for, which is for reconstructions from files alone.
        """
        if self.axis:
            cure = f"Give one, as --{self.axis} 0, or none for the first."
            raise InputError(f"input.{self.axis}", "all", "one number, as everywhere but in recon of a file", cure)
        return {name: int(number) for name, number in self._given.items()}

    @property
    def axis(self) -> str:
        """Of which counter all numbers are asked for; empty where of none."""
        return next((name for name, number in self._given.items() if number == EVERY), "")


@dataclass(frozen=True, kw_only=True)
class NoiseRecipe(Settings):
    """Noise of k-space.

    Parameters
    ----------
    variance : float, optional
        Variance per real component, in units of k-space squared.
    samples : str, optional
        File of samples that the scan's coils measured without excitation: an array (coil, sample) in units of
        the scan and at its bandwidth (.npy, .npz, .cfl), or raw data with noise readouts.
    """

    variance: float | None = setting(None, above=0, unset="estimated from the data")
    samples: str | None = setting(None, metavar="FILE", expert=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variance is not None and self.samples is not None:
            cure = f"Leave out {option('noise-sd')}."
            raise InputError("noise.samples", "samples and a variance", "one of the two", cure, ("noise_samples",))

    @property
    def given(self) -> bool:
        """Whether the noise is that of the recipe, whatever the scan says of it."""
        return self.variance is not None or self.samples is not None


USUAL_CALIBRATION = 24
"""Centre lines that coil maps are estimated from, unless a setting says how many."""


@dataclass(frozen=True, kw_only=True)
class CoilRecipe(Settings):
    """Coil maps that are estimated, where none are given.

    Parameters
    ----------
    maps : {"auto", "espirit", "nlinv"}
        espirit: from gapless centre lines (ACS), 8 at least; nlinv: together with the image, from all lines
        measured near the centre, with or without gaps; auto: espirit from 24 gapless lines on, nlinv from
        fewer.
    calibration_lines : int, optional
        Fully sampled lines at the centre (ACS) that the calibration may use; a design begins with them.
    compress_coils : int, optional
        Virtual coils into which the scan's are combined, slice by slice; reports say what is lost.
    """

    maps: Literal["auto", "espirit", "nlinv"] = setting("auto", expert=True)
    calibration_lines: int | None = setting(None, least=8, unset="24; a design begins with 4", expert=True)

    compress_coils: int | None = setting(None, least=1, unset="all coils as they are", expert=True)

    @property
    def most_lines(self) -> int:
        """Centre lines that an estimate of coil maps uses at most."""
        return USUAL_CALIBRATION if self.calibration_lines is None else self.calibration_lines


@dataclass(frozen=True, kw_only=True)
class CompanionRecipe(Settings):
    """Other images of the same object in the prior, where they are given.

    Parameters
    ----------
    companion_strength : {"careful", "moderate", "strong"}
        careful: lesions that the other images do not show keep nearly all of their contrast; moderate, strong:
        less error, but such lesions lose some of it, the more the fewer readouts are measured; both know
        repeats of a scan.
    trust_companion : bool
        The other images are taken, whatever the readouts that are held back say of them.
    register_companion : bool
        The other images are turned and shifted to fit the scan.
    """

    companion_strength: Literal["careful", "moderate", "strong"] = setting("careful")
    trust_companion: bool = setting(False)
    register_companion: bool = setting(True, expert=True)


VARIANCES = {
    "control-variate": Shipped("variances.control_variate", "ControlVariate"),
    "perturb-and-solve": Shipped("variances.control_variate", "MonteCarlo"),
    "lanczos": Shipped("variances.base", "Lanczos"),
    "exact-columns": Shipped("variances.columns", "ExactByColumns"),
    "exact": Shipped("variances.base", "Exact"),
}
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
    variances : {"control-variate", "perturb-and-solve", "lanczos", "exact-columns", "exact"}
        control-variate: posterior samples, most of whose scatter a circulant problem explains (with several
        coils: exact up to some 70 x 70; designs plain beyond); perturb-and-solve: plain samples; lanczos: as in
        TR-175; exact-columns: exact, for priors on pixels and differences, any coils; exact: for tiny grids.
    samples : int
        Posterior samples of control-variate and perturb-and-solve.
    solver_tolerance : float
        Of each sample's linear solve: residual relative to what the circulant problem leaves over (its square
        without one); with perturb-and-solve relative to the whole.
    lanczos_steps : int
        Of lanczos, which keeps as many images in memory.
    loops : int
        Outer loops at most, for a reconstruction.
    tolerance : float
        Mean relative change of the variances in the last outer loop.
    inner_tolerance : float
        Excess of the objective per real unknown at which the inner problem and MAP stop.
    inner_iterations : int
        Iterations at most, in each inner problem and stage of MAP.
    solver : {"automatic", "irls", "lbfgs", "admm"}
        Of the inner problem and MAP; irls is the papers'.
    memory : float
        MiB of a process: posterior samples are made some at a time where all of them would take more; results
        are the same to rounding, large images take longer.
    """

    variances: str = setting("control-variate", names=VARIANCES, expert=True)
    samples: int = setting(8, least=2)
    solver_tolerance: float = setting(0.03, above=0, expert=True)
    lanczos_steps: int = setting(100, least=1, expert=True)
    loops: int = setting(12, least=1, expert=True)
    tolerance: float = setting(0.03, above=0, expert=True)
    inner_tolerance: float = setting(1e-4, above=0, expert=True)
    inner_iterations: int = setting(1000, least=1, expert=True)
    solver: str = setting("automatic", names=SOLVERS, expert=True)
    memory: float = setting(1024.0, above=0, expert=True)

    def engine(self, *, extrapolated: bool = True) -> DoubleLoop:
        """The double loop with these settings, without `Variances.bias`, which costs products and is shown nowhere.

        Draws beside a control are moved on from where the solver stopped, for images, or left there, for designs, which
        judge lines by them (`ControlVariate`).
        """
        from mri_design.inference.double_loop import DoubleLoop

        drawn = {"samples": self.samples, "tolerance": self.solver_tolerance, "memory": self.memory, "with_bias": False}
        arguments: dict[str, dict[str, Any]] = {
            "lanczos": {"steps": self.lanczos_steps},
            "perturb-and-solve": drawn,
            "control-variate": {**drawn, "column_limit": COLUMN_LIMIT, "extrapolated": extrapolated},
        }
        estimator = VARIANCES[self.variances](**arguments.get(self.variances, {}))
        return DoubleLoop(estimator, self.inner_solver(), self.loops, self.tolerance)

    def inner_solver(self) -> InnerSolver:
        """The chosen solver of the inner problem, with these limits."""
        made: InnerSolver = SOLVERS[self.solver](tolerance=self.inner_tolerance, max_iterations=self.inner_iterations)
        return made


@dataclass(frozen=True, kw_only=True)
class DesignRecipe(Settings):
    """The sequential design: who decides, lines per inference, order of measurement, and when it is enough.

    Parameters
    ----------
    strategy : str
        What decides; `mri-design design --help` names them.
    start : int, optional
        Centre lines to begin with.
    block : int, optional
        Choose K lines after each inference: echo trains of K; or K samples of a plane.
    order : {"as-chosen", "ascending", "centre-out", "interleaved"}
        In which the chosen lines are measured: as-chosen, ascending, centre-out (each train), or interleaved
        (each train covers k-space, an echo measures one band).
    train : int, optional
        Echoes of a train.
    effective_echo : int, optional
        Order interleaved: the echo that measures DC.
    until_error : float, optional
        End as soon as the predicted relative L2 error of the image is E (0.05 is 5 %) or less; --lines is the
        most. The design makes the image now and then on its way, and goes by its error bars.
    until_gain : float, optional
        End as soon as no remaining line is expected to give G nats of information about the image (sum over
        slices); --lines is the most.
    encoding : str
        What is chosen one by one: lines; plane, single samples (ky, kz), the image's rows and columns; radial,
        spokes; or spiral, arms.
    """

    strategy: str = setting("calibrated", check=_check_strategy, metavar="NAME")
    start: int | None = setting(None, least=1, unset="the strategy's")
    block: int | None = setting(None, least=1, unset="1; of a plane a 200th of it", metavar="K", panel=_ORDER)
    order: Literal["as-chosen", "ascending", "centre-out", "interleaved"] = setting(
        "as-chosen", metavar="NAME", panel=_ORDER
    )
    train: int | None = setting(None, least=1, unset="as many as `block`", expert=True)
    effective_echo: int | None = setting(None, least=1, expert=True)
    until_error: float | None = setting(
        None, above=0, below=1, metavar="E", panel=_ENOUGH, cure="Five per cent are 0.05."
    )
    until_gain: float | None = setting(None, above=0, metavar="G", panel=_ENOUGH)
    encoding: str = setting("lines", names=designed_kinds, metavar="NAME", panel=_PLANE)

    def __post_init__(self) -> None:
        if isinstance(self.strategy, str):
            object.__setattr__(self, "strategy", strategy_named(self.strategy, _encoding_of(self.strategy)))
        super().__post_init__()

    def block_of(self, encoding: Readouts) -> int:
        """Candidates that are chosen after each inference: lines, or samples of a plane; shots one by one."""
        return self.block or encoding.usual_block

    @property
    def echoes(self) -> int:
        """Echoes of a train in the acquisition: without a setting of their own as many as lines are chosen at once.

        In a plane, whose blocks are chosen for the cost of inference, and of shots it is one.
        """
        return self.train or (self.block if KINDS[self.encoding].blocks_are_trains else None) or 1


@dataclass(frozen=True, kw_only=True)
class ShotRecipe(Settings):
    """Spokes and arms of spirals to choose from, and what gradients can do.

    Spirals are played as fast as amplitude, slew rate and raster allow over the field of view.

    Parameters
    ----------
    angles : int, optional
        Equispaced angles to choose from, over half a turn (radial) or a full one (spiral). Chosen ones lose to
        as many spread evenly over half a turn (--strategy half-turn): measured on heads, by 7 to 24 %.
    density : float
        Spirals: exponent of the radius; above 1 turns are closer at the centre.
    field_of_view : float
        Spirals: metres.
    amplitude : float
        Spirals: largest gradient, T/m.
    slew : float
        Spirals: largest slew rate, T/m/s.
    raster : float
        Spirals: time between two values of a waveform, s.
    """

    angles: int | None = setting(None, least=1, unset="four per shot", metavar="N", panel=_SHOTS, expert=True)
    density: float = setting(1.0, above=0, expert=True)
    field_of_view: float = setting(0.24, above=0, most=1, expert=True)
    amplitude: float = setting(0.04, above=0, expert=True)
    slew: float = setting(150.0, above=0, expert=True)
    raster: float = setting(10e-6, above=0, expert=True)


@dataclass(frozen=True, kw_only=True)
class ConstraintRecipe(Settings):
    """Constraints that a sequence puts on the lines, or on the samples of a plane.

    Parameters
    ----------
    forbid : str, optional
        Lines that must not be measured, numbered from 0.
    require : str, optional
        Lines that must be; they are measured at the start.
    centre : int, optional
        So many lines nearest to DC must be measured, too.
    partial_fourier : float, optional
        Keep this fraction of the grid, 0.5 to 1, with all lines of positive ky.
    max_jump : int, optional
        Largest distance between consecutive lines. The target always stays within reach.
    shutter : bool
        Leave out the corners of the plane, outside of the ellipse that touches its edges.
    calibration : int, optional
        Side of the square around the centre of the plane that is always measured.
    """

    forbid: str | None = setting(None, check=line_numbers, metavar="0-9,250", panel=_CONSTRAINTS)
    require: str | None = setting(None, check=line_numbers, metavar="16,48", panel=_CONSTRAINTS)
    centre: int | None = setting(None, least=1, expert=True)
    partial_fourier: float | None = setting(None, least=0.5, most=1, metavar="P", panel=_CONSTRAINTS)
    max_jump: int | None = setting(None, least=1, metavar="J", panel=_CONSTRAINTS)
    shutter: bool = setting(False, panel=_PLANE)
    calibration: int | None = setting(None, least=1, unset="none", metavar="N", panel=_PLANE)

    def rules(self, readouts: Readouts | None = None) -> Constraints:
        """The constraints of the readouts, by default of lines, as a design takes them.

        Raises
        ------
        InputError
            For lists that are not understood, lines that are both forbidden and required, and settings that these
            readouts do not know.
        """
        from mri_design.readouts import LineReadouts

        readouts = LineReadouts((1, 1)) if readouts is None else readouts
        kind, lists = readouts.kind, {"forbid": "forbidden", "require": "required"}
        limits = {name: value for name, value in vars(self).items() if value not in (None, False)}
        for name in (name for name in limits if name not in kind.limits):
            got = "a shutter" if name == "shutter" else str(limits[name])
            cure = f"{kind.several.capitalize()} have {', '.join(kind.limits)}." if kind.limits else "Leave it out."
            raise InputError(f"recipe: constraints.{name}", got, f"none where {kind.several} are chosen", cure)
        numbers = {to: line_numbers(limits.pop(name), f"{to} lines") for name, to in lists.items() if name in limits}
        return readouts.constraints(**numbers, **limits)


@dataclass(frozen=True, kw_only=True)
class ReconstructionRecipe(Settings):
    """Point estimates and error bars.

    Parameters
    ----------
    method : {"mean", "map", "least-squares", "zero-filled", "l1-wavelet", "total-variation"}
        How the image is made.
    weight : float
        Of l1-wavelet and total-variation: the penalty, relative to the brightest pixel of the zero-filled
        image.
    damping : float
        Of least-squares: Tikhonov's weight, in units of X^H X; keeps images stable where coils determine
        little.
    std_samples : int
        Posterior samples for the error bars, where no control variate gives them.
    band_factors : bool
        Mean of one coil: bands of k-space that are too small or too large are corrected by what random heads
        taught, as far as lines held back agree.
    noise_map : bool
        Mean and least squares: what the noise of the samples does to every pixel, and the g-factor of the
        coils.
    draws : int
        Mean: so many draws of the image beside it, for errors of means of regions (mri-design measure).
    """

    method: Literal["mean", "map", "least-squares", "zero-filled", "l1-wavelet", "total-variation"] = setting(
        "mean", metavar="NAME"
    )
    weight: float = setting(0.003, above=0, expert=True)
    damping: float = setting(0.001, above=0, expert=True)
    std_samples: int = setting(48, least=2, expert=True)
    band_factors: bool = setting(True, expert=True)

    noise_map: bool = setting(False)
    draws: int = setting(0, least=0, most=64)


@dataclass(frozen=True, kw_only=True)
class SimulationRecipe(Settings):
    """Simulation of k-space from images that come without.

    Parameters
    ----------
    matrix : int, optional
        Lines and readout samples.
    noise : float
        Standard deviation per real component, relative to the 99.5th percentile of the image.
    phase : {"own", "smooth", "rough", "none"}, optional
        Phase.
    coils : int
        Simulated receive coils.
    """

    matrix: int | None = setting(256, least=16, most=2048, unset="the image's")
    noise: float = setting(0.007, above=0, below=1, expert=True)
    phase: Literal["own", "smooth", "rough", "none"] | None = setting(
        None, unset="the image's own, else smooth", expert=True
    )
    coils: int = setting(1, least=1, most=64, expert=True)


@briefly
@dataclass(frozen=True, kw_only=True)
class Recipe(Settings):
    """All settings of an experiment; every field has a default.

    `Recipe.of` makes one of plain values, as a TOML file has them; `replacing` changes settings of a section.

    Parameters
    ----------
    fft : {"scipy", "pyfftw"}
        pyfftw is faster for some sizes, but its last bits vary between processes.
    """

    prior: tuple[BlockRecipe, ...] = (  # or blocks that a script made, and no recipe file can hold
        BlockRecipe(kind="pixels", scale=100.0, tau_limit=0.4, tau_limit_bright=0.02),
        BlockRecipe(kind="differences", scale=10.0, tau_limit_with_non_local=0.1),
        BlockRecipe(kind="non-local", scale=0.8, isotropic=True, tau_limit=1.0),
    )
    phase: PhaseRecipe = PhaseRecipe()
    input: InputRecipe = InputRecipe()
    noise: NoiseRecipe = NoiseRecipe()
    coils: CoilRecipe = CoilRecipe()
    companion: CompanionRecipe = CompanionRecipe()
    inference: InferenceRecipe = InferenceRecipe()
    design: DesignRecipe = DesignRecipe()
    shots: ShotRecipe = ShotRecipe()
    constraints: ConstraintRecipe = ConstraintRecipe()
    reconstruction: ReconstructionRecipe = ReconstructionRecipe()
    simulation: SimulationRecipe = SimulationRecipe()
    fft: Literal["scipy", "pyfftw"] = setting("scipy", expert=True)

    def blocks(self) -> tuple[SparsityBlock | SiteBlock, ...]:
        """The prior as the model takes it.

        Raises
        ------
        InputError
            For a prior without blocks.
        """
        if not self.prior:
            raise InputError("recipe: prior", "no block", "at least one [[prior]] table")
        return tuple(block.made() if isinstance(block, BlockRecipe) else block for block in self.prior)

    @property
    def slice_settings(self) -> dict[str, Any]:
        """What is measured one by one, prior, FFT and what is known of the phase, as `Scan.slice_model` takes them."""
        known = {"library": self.fft, "phase": self.phase.prior()}
        return {"encoding": self.design.encoding, "prior": self.blocks(), **known}

    @property
    def calibration_lines(self) -> int | None:
        """Centre lines, or side of a square, for coil maps that the design's own settings ask for; None is the usual.

        Coil maps come from what a design begins with.
        """
        return self.design.start if KINDS[self.design.encoding].centre_first else self.constraints.calibration

    def of_another_file(self) -> Recipe:
        """The recipe without what is true of the samples of one file alone: axes, centre and noise."""
        return replace(self, input=replace(self.input, dims=None, centre=None), noise=NoiseRecipe())

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
        if section == "prior":
            if set(settings) != {"blocks"}:
                cure = "Blocks are replaced as a whole: replacing('prior', blocks=[...])."
                raise InputError("recipe: prior", f"{', '.join(settings)}", "blocks", cure)
            if (blocks := settings["blocks"]) is None:
                return self
            if not isinstance(blocks, list | tuple) or not blocks:
                wanted = "a list of SparsityBlocks, SiteBlocks or mappings"
                raise InputError("recipe: blocks", described(blocks), wanted)
            read = (_read(BlockRecipe, block, "recipe", f"blocks.{place}") for place, block in enumerate(blocks))
            return replace(self, prior=tuple(read))
        present = getattr(self, section) if section in self.declared() else None
        given = {name: value for name, value in settings.items() if value is not None}
        if isinstance(present, Settings) and not given:
            return self
        whole = present.plain() | given if isinstance(present, Settings) else settings
        changed = _read(Recipe, {section: whole}, "recipe")  # which refuses what is no section
        return replace(self, **{section: getattr(changed, section)})

    def with_settings(self, texts: Iterable[str]) -> Recipe:
        """A copy of the recipe with settings that are written as text, ``design.block=4``, each checked as in a file.

        The value is TOML (``4``, ``0.5``, ``true``, ``[128, 96]``, ``{contrast = 2}``); anything else is a text.

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
            table = sections.setdefault(section, {})
            for name in inner[:-1]:
                table = table.setdefault(name, {})
            table[inner[-1]] = _toml_value(value.strip())
        recipe = self
        for section, settings in sections.items():  # at once: some fit only together
            recipe = recipe.replacing(section, **settings)
        return recipe

    def as_settings(self) -> dict[str, Any]:
        """Plain values for a manifest; of noise samples the file's name and checksum, without its folder."""
        settings = self.plain()
        if self.noise.samples is not None:
            from mri_design.scan.io.bart import is_bart, pair_of
            from mri_design.scan.io.safe import check_file

            path = Path(self.noise.samples)
            path = pair_of(path)[1] if is_bart(path) else path
            check_file(path)
            settings["noise"]["samples"] = f"{path.name} {sha256(path.read_bytes()).hexdigest()[:16]}"
        return settings


Settings.sections = {name: type(value) for name, value in vars(Recipe()).items() if isinstance(value, Settings)}


def _toml_value(text: str) -> Any:
    """The value of a TOML text; a text that is no TOML, as a bare word or a file's name, is itself the value."""
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


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
    recipe = _read(Recipe, settings, named)
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
        return _read(Recipe, recipe, "recipe")
    return recipe if isinstance(recipe, Recipe) else load_recipe(recipe)


def _read(kind: type[S], settings: object, recipe: str, place: str = "") -> S:
    """A section or a whole recipe from plain values; errors say which recipe it is."""
    try:
        return kind.of(settings, place)
    except InputError as error:
        raise error.about(f"{recipe}: {error.field}") from error


def shipped_recipes() -> tuple[str, ...]:
    """Names of the recipes that come with the package."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.toml")))
