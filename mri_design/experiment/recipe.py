"""Recipes: every setting of an experiment, validated, from TOML."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo

from mri_design.design.constraints import Constraints, LineConstraints
from mri_design.errors import InputError, UsageError, described, require_instance
from mri_design.experiment.line_lists import checked_line_list, line_numbers
from mri_design.experiment.recipe_errors import recipe_error

if TYPE_CHECKING:  # what settings become is imported where it is made: to read a recipe takes none of it
    from mri_design.estimation.map_estimate import MapEstimate
    from mri_design.estimation.penalised import InnerSolver
    from mri_design.inference.double_loop import DoubleLoop
    from mri_design.model.mr_image import MRSlice, SparsityBlock
    from mri_design.model.phase import PhasePrior
    from mri_design.operators.base import Array
    from mri_design.operators.encodings import Encoding
    from mri_design.variances.base import VarianceEstimator

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=0, le=65535)]


EncodingChoice = Literal["lines", "plane", "radial", "spiral"]
ENCODINGS: tuple[EncodingChoice, ...] = get_args(EncodingChoice)
_ORACLES_TOO = {"oracles": True}


def _strategy_name(name: str, info: ValidationInfo) -> str:
    from mri_design.experiment.strategy_names import TRAINING_RULES, check_strategy_name, strategy_names

    if name.startswith("oracle") and not (info.context or {}).get("oracles"):
        raise InputError(
            field="strategy",
            got=repr(name),
            wanted="a strategy that does without the truth; oracles are named with --strategy only",
        )
    if name in TRAINING_RULES and not (info.context or {}).get("oracles"):
        raise InputError(
            field="strategy",
            got=repr(name),
            wanted="a strategy for a scan that is measured now; mri-design protocol goes by this one anyway",
        )
    try:
        family = name.partition(":")[0]
        known = (encoding for encoding in ENCODINGS if family in strategy_names(encoding))
        check_strategy_name(name, next(known, "lines"))
    except UsageError as error:
        raise InputError(field="strategy", got=f"{name!r}: {error}", wanted="the name of a strategy") from error
    return name


StrategyName = Annotated[str, AfterValidator(_strategy_name)]
MAX_RECIPE_BYTES = 1 << 20
SAMPLE_BLOCKS = 200  # parts of a plane: one is chosen after each inference
COLUMN_LIMIT = 1 << 25  # several coils: exact by columns up to some 70 x 70, a fifth of a second each time


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)  # "12" is no number and true is not 1


class BlockRecipe(_Settings):
    """One sparsity block; rates are per unit of the image's 99.5th percentile."""

    kind: Literal["pixels", "differences", "wavelet", "non-local"]
    scale: Positive
    isotropic: bool = False
    wavelet: str = "db4"
    levels: Count = 3
    coarse_scale: Positive = 0.1
    tau_limit: Positive | None = None
    tau_limit_with_non_local: Positive | None = None
    neighbours: Annotated[int, Field(ge=1, le=32)] = 6


class PhaseRecipe(_Settings):
    """Whether sites know the image's phase.

    ``held-back`` and ``automatic`` let the scan's own lines decide: of images by lines held back; with ``automatic``
    of designs too, by each line before it is measured.
    """

    model: Literal["modulus", "aware", "held-back", "automatic"] = "held-back"
    imaginary_ratios: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1, max_length=8)] = (1.5,)
    sites: Literal["shared", "apart"] = "shared"
    rivals_every: Count = 4

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models a design may use, in the order of `variants`."""
        aware = tuple(f"phase-aware {ratio:g}" for ratio in self.imaginary_ratios)
        if self.model == "aware":
            return aware[:1]
        return ("modulus", *aware) if self.model == "automatic" else ("modulus",)

    def chosen_by_what_is_held_back(self, encoding: str) -> bool:
        """Whether the lines of a mask that is there already choose the model of its image.

        Samples of a plane and readouts of other encodings do so where it is ``automatic`` only.
        """
        return self.model == "automatic" or (self.model == "held-back" and encoding == "lines")

    def prior(self) -> PhasePrior | None:
        """What a slice starts with: a phase to be seen in the centre, or none (until one has been chosen)."""
        from mri_design.model.phase import PhasePrior

        return PhasePrior(None, self.imaginary_ratios[0], self.sites) if self.model == "aware" else None

    def variants(self, slice_model: MRSlice, image: Array) -> list[MRSlice]:
        """The candidate models of a slice whose image so far is ``image``, the modulus model first."""
        from mri_design.model.mr_image import phase_variants

        return phase_variants(slice_model, image, imaginary_ratios=self.imaginary_ratios, sites=self.sites)


class InputRecipe(_Settings):
    """Reading raw data: what becomes of a phase-encode line that comes twice, and which series is read.

    Numbers of contrast, phase, repetition and set are those of the file; None reads the first. The matrix, pixels
    (ky, kx) of the image, is for samples along a trajectory whose file does not say it.
    """

    duplicates: Literal["error", "average", "last"] = "error"
    contrast: Number | None = None
    phase: Number | None = None
    repetition: Number | None = None
    set: Number | None = None
    matrix: Annotated[list[Annotated[int, Field(ge=4)]], Field(min_length=2, max_length=2)] | None = None

    @property
    def pixels(self) -> tuple[int, int] | None:
        """The matrix (ky, kx), where it is given."""
        return None if self.matrix is None else (self.matrix[0], self.matrix[1])

    @property
    def counters(self) -> dict[str, int]:
        """The numbers that are given, by name."""
        numbers = {name: getattr(self, name) for name in ("contrast", "phase", "repetition", "set")}
        return {name: number for name, number in numbers.items() if number is not None}


class NoiseRecipe(_Settings):
    """Noise variance per real component; None estimates it from the data."""

    variance: Positive | None = None


class CoilRecipe(_Settings):
    """ESPIRiT calibration: how many fully sampled centre lines it may use."""

    calibration_lines: Annotated[int, Field(ge=8)] = 24


class InferenceRecipe(_Settings):
    """The double loop."""

    variances: Literal["control-variate", "perturb-and-solve", "lanczos", "exact-columns", "exact"] = "control-variate"
    samples: Annotated[int, Field(ge=2)] = 8
    solver_tolerance: Positive = 0.03
    lanczos_steps: Count = 100
    loops: Count = 12
    tolerance: Positive = 0.03
    inner_tolerance: Positive = 1e-4
    inner_iterations: Count = 1000
    solver: Literal["automatic", "irls", "lbfgs", "admm"] = "automatic"
    algorithm: Literal["second", "first", "hybrid"] = "second"
    learn: Literal["nothing", "scales", "scales and noise"] = "nothing"
    memory: Positive = 1024.0

    def estimator(self, *, extrapolated: bool = True) -> VarianceEstimator:
        """The chosen variance estimator; it leaves `Variances.bias` out, which costs products and is shown nowhere.

        Draws beside a control are moved on from where the solver stopped, for images, or left there, for designs, which
        judge lines by them (`ControlVariate`).
        """
        from mri_design.variances.columns import ExactByColumns
        from mri_design.variances.control_variate import ControlVariate
        from mri_design.variances.exact import Exact
        from mri_design.variances.lanczos import Lanczos
        from mri_design.variances.monte_carlo import MonteCarlo

        if self.variances == "exact":
            return Exact()
        if self.variances == "exact-columns":
            return ExactByColumns()
        if self.variances == "lanczos":
            return Lanczos(self.lanczos_steps)
        if self.variances == "perturb-and-solve":
            return MonteCarlo(self.samples, self.solver_tolerance, memory=self.memory, with_bias=False)
        return ControlVariate(
            self.samples,
            self.solver_tolerance,
            column_limit=COLUMN_LIMIT,
            memory=self.memory,
            with_bias=False,
            extrapolated=extrapolated,
        )

    def engine(self, *, extrapolated: bool = True) -> DoubleLoop:
        """The double loop with these settings; ``extrapolated`` as in `estimator`."""
        from mri_design.inference.double_loop import DoubleLoop

        return DoubleLoop(
            self.estimator(extrapolated=extrapolated),
            self.inner_solver(),
            self.loops,
            self.tolerance,
            algorithm=self.algorithm,
        )

    def inner_solver(self) -> InnerSolver:
        """The chosen solver of the inner problem, with these limits."""
        from mri_design.estimation.admm import ADMM
        from mri_design.estimation.automatic import Automatic
        from mri_design.estimation.irls import IRLS
        from mri_design.estimation.lbfgs import LBFGS

        kinds: dict[str, type[Automatic] | type[IRLS] | type[LBFGS] | type[ADMM]] = {
            "automatic": Automatic,
            "irls": IRLS,
            "lbfgs": LBFGS,
            "admm": ADMM,
        }
        return kinds[self.solver](tolerance=self.inner_tolerance, max_iterations=self.inner_iterations)


class DesignRecipe(_Settings):
    """The sequential design: who decides, lines per inference, acquisition order, and when it is enough."""

    strategy: StrategyName = "calibrated"
    start: Count | None = None
    first_loops: Count = 3
    step_loops: Count = 1
    samples: Annotated[int, Field(ge=2)] = 4
    solver_tolerance: Positive = 0.1
    inner_tolerance: Positive = 3e-4
    block: Count = 1
    order: Literal["as-chosen", "ascending", "centre-out", "interleaved"] = "as-chosen"
    train: Count | None = None
    effective_echo: Count | None = None
    until_error: Annotated[float, Field(gt=0, lt=1, description="Five per cent are 0.05.")] | None = None
    until_gain: Positive | None = None
    encoding: EncodingChoice = "lines"
    plane_block: Count | None = None

    def block_of(self, encoding: Encoding) -> int:
        """Candidates that are chosen after each inference: lines, or samples of a plane; shots one by one."""
        if encoding.name != "plane":
            return self.block
        return self.plane_block or max(1, encoding.size // SAMPLE_BLOCKS)

    @property
    def echoes(self) -> int:
        """Echoes of a train in the acquisition: without a setting of their own as many as lines are chosen at once.

        In a plane, whose blocks are chosen for the cost of inference, and of shots it is one.
        """
        return self.train or (self.block if self.encoding == "lines" else 1)


class ShotRecipe(_Settings):
    """Spokes and arms of spirals to choose from: how many angles, their samples, and what gradients can do.

    Spirals are played as fast as amplitude (T/m), slew rate (T/m/s) and raster (s) allow over a field of view in
    metres; ``rim_acceleration`` times the shots, half the matrix at most, would leave no gap at the rim of k-space.
    """

    angles: Count | None = None
    oversampling: Annotated[int, Field(ge=1, le=16)] = 1
    density: Positive = 1.0
    rim_acceleration: Annotated[float, Field(ge=1, le=1000)] = 4.0
    field_of_view: Annotated[float, Field(gt=0, le=1)] = 0.24
    amplitude: Positive = 0.04
    slew: Positive = 150.0
    raster: Positive = 10e-6


LineList = Annotated[str, AfterValidator(checked_line_list)]


class ConstraintRecipe(_Settings):
    """What a sequence asks of the lines (numbers from 0, as ``0-9,250``), or of the samples of a plane."""

    forbid: LineList | None = None
    require: LineList | None = None
    centre: Count | None = None
    partial_fourier: Annotated[float, Field(ge=0.5, le=1)] | None = None
    whole_half: Literal["positive", "negative"] = "positive"
    max_jump: Count | None = None
    shutter: bool = False
    calibration: Count | None = None

    def rules_of(self, encoding: Encoding) -> Constraints:
        """The constraints of a grid of lines, of a plane, or of shots, as the design takes them.

        Raises
        ------
        InputError
            As `rules`; in a plane, for what only lines can be asked; of shots, for anything.
        """
        from mri_design.design.plane.constraints import PlaneConstraints
        from mri_design.design.shots.constraints import AngleConstraints
        from mri_design.operators.encodings import PlaneEncoding, ShotEncoding

        if isinstance(encoding, ShotEncoding):
            usual = ConstraintRecipe().model_dump()
            for name, value in self.model_dump().items():
                if value != usual[name]:
                    raise InputError(
                        field=f"recipe: constraints.{name}",
                        got="a shutter" if name == "shutter" else str(value),
                        wanted="none where shots are chosen",
                        cure="Leave it out.",
                    )
            return AngleConstraints(
                encoding.size, encoding.size if encoding.name == "radial" else -(-encoding.size // 2)
            )
        if not isinstance(encoding, PlaneEncoding):
            return self.rules()
        for name in ("forbid", "require", "max_jump"):
            if getattr(self, name) is not None:
                raise InputError(
                    field=f"recipe: constraints.{name}",
                    got=str(getattr(self, name)),
                    wanted="nothing in a plane, whose samples are no lines",
                    cure="A plane has shutter, partial_fourier, calibration and centre.",
                )
        return PlaneConstraints(
            encoding,
            shutter=self.shutter,
            partial_fourier=self.partial_fourier,
            whole_half=self.whole_half,
            calibration=self.calibration or 0,
            centre=self.centre or 0,
        )

    def rules(self) -> LineConstraints:
        """The constraints of lines as the design takes them.

        Raises
        ------
        InputError
            For lists that are not understood, lines that are both forbidden and required, and what only a plane can be
            asked.
        """
        for name, got in (("shutter", "a shutter"), ("calibration", "a calibration region")):
            if getattr(self, name):
                raise InputError(
                    field=f"recipe: constraints.{name}",
                    got=got,
                    wanted="none where lines are chosen",
                    cure="Choose samples of a plane (encoding = 'plane' under [design]); lines have centre.",
                )
        return LineConstraints(
            line_numbers(self.forbid or "", "forbidden lines"),
            line_numbers(self.require or "", "required lines"),
            self.centre or 0,
            self.partial_fourier,
            self.whole_half,
            self.max_jump,
        )


class ReconstructionRecipe(_Settings):
    """Point estimates and error bars."""

    method: Literal["mean", "map", "least-squares", "zero-filled"] = "mean"
    map_smoothing: Annotated[float, Field(ge=0)] = 1e-3
    map_stages: Count = 2
    damping: Annotated[float, Field(ge=0, lt=1)] = 1e-3
    std_samples: Annotated[int, Field(ge=2)] = 48
    band_factors: bool = True

    def map_estimate(self, inference: InferenceRecipe) -> MapEstimate:
        """MAP with these settings."""
        from mri_design.estimation.map_estimate import MapEstimate

        return MapEstimate(self.map_smoothing, self.map_stages, inference.inner_solver())


class SimulationRecipe(_Settings):
    """How k-space is made from images: matrix size, noise sd relative to the 99.5th percentile, phase, coils."""

    matrix: Annotated[int, Field(ge=16, le=2048)] | None = 256
    noise: Annotated[float, Field(gt=0, lt=1)] = 0.007
    phase: Literal["own", "smooth", "rough", "none"] | None = None
    coils: Annotated[int, Field(ge=1, le=64)] = 1


class Recipe(_Settings):
    """All settings of an experiment; every field has a default."""

    prior: Annotated[tuple[BlockRecipe, ...], Field(strict=False)] = (  # TOML has lists, no tuples
        BlockRecipe(kind="pixels", scale=100.0, tau_limit=0.4),
        BlockRecipe(kind="differences", scale=10.0, tau_limit_with_non_local=0.1),
        BlockRecipe(kind="non-local", scale=0.8, isotropic=True, tau_limit=1.0),
    )
    phase: PhaseRecipe = PhaseRecipe()
    input: InputRecipe = InputRecipe()
    noise: NoiseRecipe = NoiseRecipe()
    coils: CoilRecipe = CoilRecipe()
    inference: InferenceRecipe = InferenceRecipe()
    design: DesignRecipe = DesignRecipe()
    shots: ShotRecipe = ShotRecipe()
    constraints: ConstraintRecipe = ConstraintRecipe()
    reconstruction: ReconstructionRecipe = ReconstructionRecipe()
    simulation: SimulationRecipe = SimulationRecipe()
    fft: Literal["scipy", "pyfftw"] = "scipy"

    def blocks(self) -> tuple[SparsityBlock, ...]:
        """The prior as the model takes it.

        Raises
        ------
        InputError
            For a prior without blocks.
        """
        from mri_design.model.mr_image import SparsityBlock

        if not self.prior:
            raise InputError(field="recipe: prior", got="no block", wanted="at least one [[prior]] table")
        return tuple(SparsityBlock(**block.model_dump()) for block in self.prior)

    @property
    def calibration_lines(self) -> int | None:
        """Centre lines, or side of a square, for coil maps that the design's own settings ask for; None is the usual.

        Coil maps come from what a design begins with.
        """
        return self.design.start if self.design.encoding == "lines" else self.constraints.calibration

    def replacing(self, section: str, **settings: object) -> Recipe:
        """The same with some settings of a section replaced; None keeps the recipe's.

        Raises
        ------
        InputError
            For a section or setting that does not exist, and for values that a recipe file could not have either; an
            oracle may be named, as with ``--strategy``.
        """
        plain = self.model_dump()
        given = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}
        present = plain.get(section, {})
        if not isinstance(present, dict):
            raise InputError(
                field=f"recipe: {section}",
                got=f"{section!r}, which is no section",
                wanted=f"one of: {', '.join(name for name, value in plain.items() if isinstance(value, dict))}",
                cure=f"Recipe.model_validate takes a whole recipe, {section} included.",
            )
        plain[section] = {**present, **{name: value for name, value in given.items() if value is not None}}
        return _validated(plain, "recipe", oracles=True)

    def as_settings(self) -> dict[str, Any]:
        """Plain values for a manifest."""
        return self.model_dump(mode="json")


def load_recipe(source: str | Path | None) -> Recipe:
    """A recipe from a TOML file, or a shipped one by name; None is the default recipe.

    Raises
    ------
    InputError
        Where the file cannot be read or a setting is unknown or out of range; the message names the setting.
    """
    if source is None:
        return Recipe()
    if not isinstance(source, str | Path):
        raise InputError(field="recipe", got=described(source), wanted="a TOML file, or the name of a shipped recipe")
    name = str(source)
    text = _shipped(name) if name in shipped_recipes() else _read(Path(source))
    named = f"recipe {Path(name).name}"
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(field=named, got=str(error), wanted="valid TOML") from error
    return _validated(settings, named)


def require_recipe(recipe: object) -> None:
    """Refuse anything but a `Recipe` where one is wanted: a name, a dictionary, None.

    Raises
    ------
    InputError
        Saying how a recipe is read.
    """
    cure = "load_recipe(None) is the default one, load_recipe(NAME) reads a file or a shipped one."
    require_instance(Recipe, wanted="a Recipe", cure=cure, recipe=recipe)


def _validated(settings: object, recipe: str, *, oracles: bool = False) -> Recipe:
    """A recipe from plain values, whoever they come from."""
    try:
        return Recipe.model_validate(settings, context=_ORACLES_TOO if oracles else None)
    except ValidationError as error:
        raise recipe_error(error, Recipe.model_json_schema(), recipe) from error


def shipped_recipes() -> tuple[str, ...]:
    """Names of the recipes that come with the package."""
    folder = resources.files("mri_design") / "recipes"
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def _shipped(name: str) -> str:
    return (resources.files("mri_design") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_RECIPE_BYTES:
            raise InputError(field=str(path), got=f"{path.stat().st_size} bytes", wanted=f"at most {MAX_RECIPE_BYTES}")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(shipped_recipes())
        raise InputError(
            field=f"recipe {path.name}",
            got=getattr(error, "strerror", None) or str(error),
            wanted=f"a readable TOML file or one of: {known}",
        ) from error
