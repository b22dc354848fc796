"""The groups of images of every section, at full size from the scans and at toy size from embedded phantoms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from study.groups import BESIDE, FAMILIES, INFORMED, TUNED, Entry, Group, Tuning
from study.scans import (
    COIL_TEST_HEADS,
    LARGE_TEST_HEADS,
    MIDDLE,
    OTHER_TEST_HEADS,
    TEST_HEADS,
    TEST_SUBJECTS,
    TRAINING_HEADS,
    TRAINING_SUBJECT,
    Scan,
    combined,
    denoised,
    raw,
    repeated,
    self_calibrated,
    simulated,
    simulating,
)
from study.tables import HOLE, ORACLE
from study.tuning import map_recipe, partial_fourier

from mri_design.experiment.recipe import Recipe, load_recipe

SHARES = ("1/8", "3/16", "1/4", "3/8", "1/2")
DEFAULT = Recipe().design.strategy
HEADS = ("real-phase", "3T heads")
NON_LOCAL = "default mean"
"""The default recipe, whose prior has a non-local block, under moduli and without factors of k-space bands, as a
reconstructor; `mean` is the recipe `local`."""
CHOSEN = "default mean, chosen"
"""The default recipe as it is; it reconstructs the masks of the default strategy only."""
PROTOCOL = "residual-greedy"
"""The rule that a protocol goes by."""
POSTERIOR = tuple(dict.fromkeys((DEFAULT, "information-gain", "expected-error", "calibrated")))
"""Posterior strategies by name; those that do not exist are skipped."""


@dataclass(frozen=True)
class Setting:
    """Where a run gets its scans and how large it is.

    Parameters
    ----------
    data : Path or None
        Folder of scans; None is the toy size.
    trained : Path
        Folder of trained orders.
    weight : float
        Of MAP, tuned.
    """

    data: Path | None
    trained: Path
    weight: float = 1.0

    @property
    def quick(self) -> bool:
        """Toy size."""
        return self.data is None

    @property
    def path(self) -> Path:
        """The folder, where there is one."""
        assert self.data is not None
        return self.data

    @property
    def shares(self) -> tuple[str, ...]:
        """Line counts."""
        return ("1/2",) if self.quick else SHARES

    @property
    def seeds(self) -> int:
        """Draws of random masks."""
        return 2 if self.quick else 5

    @property
    def design_seeds(self) -> int:
        """Draws of posterior strategies."""
        return 2 if self.quick else 3

    @property
    def mean(self) -> Recipe:
        """The recipe `local`: the default one of the time when the study was measured."""
        return self.cut_short(load_recipe("local"))

    def recipes(self) -> dict[str, Recipe]:
        """Those that every group has."""
        return {"mean": self.mean, "map": self.cut_short(map_recipe(self.weight))} | partial_fourier(self.mean)

    def cut_short(self, recipe: Recipe) -> Recipe:
        """The recipe as it is, or at toy size one whose inference and MAP stop far from where they should."""
        if not self.quick:
            return recipe
        return recipe.replacing("inference", samples=2, loops=1, variances="control-variate:0.5")

    @property
    def tuning(self) -> Tuning:
        """Powers and centres to try."""
        return Tuning((3.0, 8.0), (20.0,), (4,), 1, kept=(0.75,)) if self.quick else Tuning()


def toys(seed: int, names: Sequence[str], coils: int = 1) -> list[Scan]:
    """Embedded phantoms on a small grid."""
    recipe = simulating(24, 0.02, coils=coils)
    return [simulated(f"phantom:{name}", [0], recipe, seed)[0] for name in names]


def rivals(setting: Setting, some: int = 0, trained: bool = True) -> list[Entry]:
    """The strategies of the big comparisons; every family of densities on ``some`` of the images."""
    entries = designs(setting)
    if trained:
        for rule in ("residual-greedy", "stochastic-lbcs"):
            file = setting.trained / f"heads-{rule}.npz"
            entries.append(Entry(f"trained {rule}", f"trained:{file}"))
        learnt = setting.trained / "heads-residual-greedy.npz"
        entries.append(Entry("hybrid", f"hybrid:{learnt}"))
        entries.append(Entry(INFORMED, f"calibrated:{learnt}", draws=setting.design_seeds))
    entries += [Entry("low-pass"), *(Entry(name, draws=setting.seeds) for name in (TUNED, *BESIDE))]
    if some:
        others = (*FAMILIES, "fastmri-random", "fastmri-equispaced", "golden-ratio")
        entries += [Entry(name, draws=setting.seeds, images=some, only=("mean",)) for name in others]
    return [*entries, Entry(ORACLE), Entry(HOLE)]


def partly(entries: Sequence[Entry]) -> list[Entry]:
    """Entries of which the default recipe reconstructs some masks only: it takes three to eight times as long."""
    some = {label: ("mean", "map", NON_LOCAL) for label in (TUNED, "low-pass", HOLE)} | {DEFAULT: ()}
    return [e if e.only else replace(e, only=some.get(e.label, ("mean", "map"))) for e in entries]


def designs(setting: Setting) -> list[Entry]:
    """Posterior strategies, each from several seeds, since a single design is a matter of luck too."""
    return [Entry(name, draws=setting.design_seeds) for name in POSTERIOR]


def heads(setting: Setting, matrix: int = 128, tests: Sequence[int] = TEST_HEADS) -> tuple[list[Scan], list[Scan]]:
    """Test and training images with real phase, 3 T."""
    if setting.quick:
        return toys(1, ("t1w", "shepp-logan")), toys(2, ("t2w",))
    recipe = simulating(matrix)
    every = simulated(setting.path / "img_3T_complex.npz", [*tests, *TRAINING_HEADS], recipe, label="head")
    return every[: len(tests)], every[len(tests) :]


def real_phase(setting: Setting) -> list[Group]:
    """Truth with real phase."""
    tests, training = heads(setting)
    shares = ("3/8", "1/2") if setting.quick else SHARES
    plain = load_recipe(None).replacing("phase", model="modulus").replacing("reconstruction", band_factors=False)
    recipes = setting.recipes() | {NON_LOCAL: setting.cut_short(plain), CHOSEN: setting.cut_short(load_recipe(None))}
    common = (shares, partly(rivals(setting, 1 if setting.quick else 2)), recipes, ("mean", "map", NON_LOCAL, CHOSEN))
    groups = [Group(*HEADS, tests, training, *common, tuning=setting.tuning)]
    if setting.quick:
        return groups
    folder = setting.path
    kinds = ("gre", "fse")
    low = [denoised(folder / f"lf_{who}_{kind}.npy", MIDDLE, 128) for who in TEST_SUBJECTS for kind in kinds]
    learnt = [denoised(folder / f"lf_{TRAINING_SUBJECT}_{kind}.npy", MIDDLE, 128) for kind in kinds]
    few = (shares, partly(rivals(setting)), *common[2:])
    groups.append(Group(HEADS[0], "low field", low, learnt, *few, tuning=setting.tuning))
    brain = combined(folder / "mc_brain_cimax16.npy", 128)
    groups.append(Group(HEADS[0], "16-coil brain", [brain], [], *few, tuning=None, tuned_like=HEADS))
    repeats = [repeated(folder / f"lf_S3B_flair_{room}.npy", MIDDLE) for room in ("cage", "nocage")]
    few = (shares, partly(rivals(setting, trained=False)), *common[2:])
    groups.append(Group(HEADS[0], "repeats", repeats, [], *few, tuning=None, tuned_like=(HEADS[0], "low field")))
    return groups


def synthetic_phase(setting: Setting) -> list[Group]:
    """Magnitude images with a polynomial phase, and with local exceptions to it."""
    recipes = setting.recipes() | {CHOSEN: setting.cut_short(load_recipe(None))}
    common = (setting.shares, partly(rivals(setting)), recipes, ("mean", "map", CHOSEN))
    if setting.quick:
        tests, training = toys(3, ("t1w",)), toys(4, ("t2w",))
    else:
        tests = _magnitudes(setting, TEST_SUBJECTS, ("smooth", "rough"), 128, ("T2w",))
        tests += _magnitudes(setting, TEST_SUBJECTS, ("rough",), 128, ("T1w",))
        training = _magnitudes(setting, (TRAINING_SUBJECT,), ("rough",), 128)
    return [Group("synthetic-phase", "mag3T", tests, training, *common, tuning=setting.tuning)]


def full_size(setting: Setting) -> list[Group]:
    """256 x 256: two heads with real phase, two magnitude images with a rough one."""
    if setting.quick:
        tests = toys(5, ("t1w",))
    else:
        tests = heads(setting, 256, LARGE_TEST_HEADS)[0]
        tests += _magnitudes(setting, ("6B",), ("rough",), 256, ("T2w",))
        tests += _magnitudes(setting, ("7B",), ("rough",), 256, ("T1w",))
    entries = [
        *designs(setting),
        Entry("low-pass"),
        *(Entry(name, draws=setting.seeds) for name in (TUNED, "fastmri-equispaced")),
        Entry(ORACLE),
    ]
    shares = setting.shares if setting.quick else ("1/8", "1/4", "1/2")
    return [
        Group(
            *("full-size", "256", tests, [], shares, entries, setting.recipes()),
            tuning=None,
            tuned_like=HEADS,
        )
    ]


def thesis_figure(setting: Setting) -> list[Group]:
    """A quarter of the lines, half of them the centre: one mask from training slices, used on other images."""
    start = 8 if setting.quick else 32
    if setting.quick:
        tests, training = toys(6, ("t1w",)), toys(7, ("t2w",))
    else:
        tests, training = heads(setting, 256, OTHER_TEST_HEADS)
        tests += _magnitudes(setting, TEST_SUBJECTS, ("rough",), 256)
        training = training[:2] + _magnitudes(setting, (TRAINING_SUBJECT,), ("rough",), 256, ("T2w",))
    draws = setting.seeds if setting.quick else 10
    entries = [Entry(f"{name}, one mask", name, start=start, fixed=True) for name in (PROTOCOL, *POSTERIOR)]
    tries = 2 if setting.quick else 40
    entries += [
        Entry(f"{name}, one mask, {tries} exchanges", name, start=start, fixed=True, exchanges=tries)
        for name in (PROTOCOL, DEFAULT, "expected-error")
    ]
    of_map = {"strategy": PROTOCOL, "start": start, "design": "map", "fixed": True}
    entries += [Entry(f"{PROTOCOL} of MAP, one mask", **of_map)]
    entries += [Entry(f"{PROTOCOL} of MAP, one mask, {tries} exchanges", exchanges=tries, **of_map)]
    entries += [Entry("low-pass", start=start), Entry(TUNED, draws=draws, start=start)]
    entries += [Entry("equispaced", "fastmri-equispaced", draws=setting.seeds, start=start)]
    tuning = setting.tuning if setting.quick else Tuning((1.0, 2.0, 4.0, 8.0), (4.0,), (), 2)
    return [
        Group(
            *("thesis-figure", "256", tests, training, ("1/2" if setting.quick else "1/4",), entries),
            setting.recipes(),
            ("map", "mean"),
            tuning=replace(tuning, centres=(), centre=start),
        )
    ]


def multi_coil(setting: Setting) -> list[Group]:
    """Heads of all test subjects seen by simulated coils, and the raw 16-coil brain; maps are known."""
    if setting.quick:
        return [_with_coils(setting, 2, toys(8, ("t1w",), 2), toys(9, ("t2w",), 2))]
    groups = []
    for coils, numbers in COIL_TEST_HEADS.items():
        every = [*numbers, *TRAINING_HEADS[:2]]
        label = f"head, {coils} coils,"
        both = simulated(
            setting.path / "img_3T_complex.npz", every, simulating(128, coils=coils), seed=coils, label=label
        )
        tests, training = both[: len(numbers)], both[len(numbers) :]
        if coils == RAW_COILS:
            tests.append(raw(setting.path / "mc_brain_cimax16.npy"))
        groups.append(_with_coils(setting, coils, tests, training))
    return groups


RAW_COILS = 16
"""Number of coils of `mc_brain_cimax16`."""


def _with_coils(setting: Setting, coils: int, tests: list[Scan], training: list[Scan]) -> Group:
    """Scans with one number of coils, for which the densities are tuned with their centre."""
    seeds = setting.seeds
    entries = [*designs(setting), Entry(TUNED, draws=seeds), Entry("fastmri-equispaced", draws=seeds)]
    entries += [Entry("regular + 8 ACS", "regular", draws=seeds, start=8)]
    entries += [Entry("regular + 4 ACS", "regular", draws=seeds, start=4), Entry(ORACLE), Entry(HOLE)]
    shares = ("1/2",) if setting.quick else ("1/6", "1/4")
    tuning = setting.tuning if setting.quick else Tuning((0.0, 1.0, 2.0, 4.0), (4.0,), (4,), 2)
    name = f"{coils} coils"
    recipes = setting.recipes()
    return Group("multi-coil", name, tests, training, shares, entries, recipes, ("mean",), tuning=tuning)


def centre_maps(setting: Setting) -> list[Group]:
    """The heads seen by eight coils again, their maps estimated from central lines that every mask holds."""
    (known,) = [group for group in multi_coil(setting) if setting.quick or group.name == "8 coils"]
    lines = 12 if setting.quick else 16
    tests, training = ([self_calibrated(scan, lines) for scan in scans] for scans in (known.tests, known.training))
    entries = [Entry(DEFAULT, draws=setting.design_seeds, start=lines)]
    entries += [Entry(name, draws=setting.seeds, start=lines) for name in (TUNED, "fastmri-equispaced")]
    entries += [Entry("regular + ACS", "regular", draws=setting.seeds, start=lines)]
    shares = ("3/4",) if setting.quick else ("1/4", "3/8")
    tuning = setting.tuning if setting.quick else Tuning((0.0, 1.0, 2.0, 4.0), (4.0,), (), 2)
    return [
        Group(
            *("centre-maps", f"{known.name}, {lines} lines", tests, training, shares, entries, known.recipes),
            ("mean",),
            tuning=replace(tuning, centres=(), centre=lines),
        )
    ]


def stress(setting: Setting) -> list[Group]:
    """Scans unlike anything seen: phantoms, and one full of interference."""
    entries = [*designs(setting), Entry("low-pass"), Entry(TUNED, draws=setting.seeds)]
    if setting.quick:
        tests = toys(10, ("shepp-logan",))
        return [_stress("phantoms", tests, setting, entries)]
    phantoms = [simulated(f"phantom:{name}", [0], simulating(128))[0] for name in ("shepp-logan", "brain")]
    phantoms.append(combined(setting.path / "mc_phantom_cimax16.npy", 128))
    room = setting.path / "lf_S3A_flair_nocage.npy"
    noisy = [repeated(room, MIDDLE, setting.path / "lf_S3B_flair_nocage.npy")]
    return [_stress("phantoms", phantoms, setting, entries), _stress("interference", noisy, setting, entries)]


def _stress(name: str, tests: list[Scan], setting: Setting, entries: list[Entry]) -> Group:
    return Group(
        *("stress", name, tests, [], setting.shares, entries, setting.recipes()), tuning=None, tuned_like=HEADS
    )


def _magnitudes(
    setting: Setting,
    subjects: Sequence[str],
    phases: Sequence[str],
    matrix: int,
    weights: Sequence[str] = ("T1w", "T2w"),
) -> list[Scan]:
    """Middle slices with synthetic phase."""
    scans = []
    for subject in subjects:
        for weight in weights:
            for phase in phases:
                file = setting.path / f"mag3T_{subject}_{weight}.npz"
                label = f"{subject} {weight} {phase}"
                scans += simulated(file, [MIDDLE], simulating(matrix, phase=phase), label=label)
    return scans


GROUPS: dict[str, Callable[[Setting], list[Group]]] = {
    "real-phase": real_phase,
    "synthetic-phase": synthetic_phase,
    "full-size": full_size,
    "thesis-figure": thesis_figure,
    "multi-coil": multi_coil,
    "centre-maps": centre_maps,
    "stress": stress,
}
