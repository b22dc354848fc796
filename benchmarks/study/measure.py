"""One group measured: densities tuned, masks designed, every mask reconstructed by every reconstructor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from study.groups import TUNED, Entry, Group
from study.ledger import Ledger, collect
from study.pieces import MaskError, NewMask, Prediction, StudyMaterial, compute
from study.tuning import Density, Show, best_density, tune_densities

from mri_design.evaluation.tables import Row
from mri_design.experiment.extent import DesignPlan
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import ORACLES, is_random, make_strategy
from mri_design.readouts import LineReadouts
from mri_design.runs.study import Lines, MaskJob
from mri_design.runs.workers import Workers


@dataclass(frozen=True)
class Cell:
    """A mask on an image with a reconstructor."""

    reconstructor: str
    entry: Entry
    lines: int
    draw: int
    image: int


def measure(group: Group, ledger: Ledger, jobs: int, seed: int, show: Show) -> None:
    """Everything of a group that the ledger does not hold yet."""
    material = StudyMaterial(group.tests, group.training, group.recipes, seed)
    with Workers(material, jobs) as workers:
        tune_densities(group, ledger, workers, show)
        _make_masks(group, ledger, workers, show)
        _reconstruct(group, ledger, workers, show)


def tune(group: Group, ledger: Ledger, jobs: int, seed: int, show: Show) -> None:
    """Only the densities."""
    with Workers(StudyMaterial(group.tests, group.training, group.recipes, seed), jobs) as workers:
        tune_densities(group, ledger, workers, show)


def predict(
    group: Group,
    masks: dict[str, Entry],
    strategies: dict[str, tuple[str, str]],
    ledger: Ledger,
    jobs: int,
    seed: int,
    show: Show,
) -> None:
    """Predictions of strategies ({label: (name, recipe)}) along masks of a measured group, and of their own."""
    named, pieces = [], []
    for image, scan in enumerate(group.tests):
        for label, (strategy, recipe) in strategies.items():
            own = Entry(label, strategy, design=recipe)
            for mask, entry in ({"its own": own} | masks).items():
                name = {"section": "prediction", "group": group.name, "strategy": label, "mask": mask}
                cell = Cell("mean", entry, max(group.lines), 0, image)
                row = mask_row(group, ledger, cell)
                if row is None:
                    continue
                order = lines_of(row)
                start = int(str(row["start"]))
                counts = tuple(n for n in group.lines if n >= start)
                rows = [{**name, "image": scan.name, "lines": n} for n in counts]
                if not all(ledger.has("predictions", r) for r in rows):
                    extra = next(line for line in range(group.n_lines) if line not in order)
                    pieces.append(Prediction(recipe, strategy, image, (*order, extra), start, counts))
                    named.append(name)
    material = StudyMaterial(group.tests, group.training, group.recipes, seed)
    with Workers(material, jobs) as workers:
        for done, (name, found) in enumerate(zip(named, workers.map(compute, pieces), strict=True), 1):
            for row in found if isinstance(found, list) else [found]:
                ledger.keep("predictions", {**row, **name})
            ledger.write(now=False)
            show(f"{group.name}: predictions", done, len(pieces))
    ledger.write()


def cells_of(group: Group) -> Iterator[Cell]:
    """All cells of a group."""
    for reconstructor in group.reconstructors:
        for entry in group.entries_of(reconstructor):
            random = entry.tuned or is_random(entry.name)
            seeds = entry.draws if random or (entry.draws > 1 and make_strategy(entry.name).needs_posterior) else 1
            for count in group.lines:
                for draw in range(seeds):
                    for image in group.images_of(entry):
                        yield Cell(reconstructor, entry, count, draw, image)


def chosen_mask(group: Group, ledger: Ledger, cell: Cell) -> tuple[str, int, str]:
    """Strategy by name, centre lines, and recipe behind a cell's mask."""
    entry = cell.entry
    if entry.tuned:
        family = TUNED if entry.name == TUNED else entry.name
        found: Density = best_density(group, ledger, cell.reconstructor, cell.lines, family)
        start = found.start if entry.start is None else entry.start
        return found.strategy, min(start, cell.lines), found.design
    if entry.start is not None:
        return entry.name, min(entry.start, cell.lines), entry.design
    recipe: Recipe = group.recipes[entry.design]
    n_coils = group.tests[0].prepared.n_coils
    start = DesignPlan.of(make_strategy(entry.name), recipe, LineReadouts((group.n_lines, group.n_lines))).start_count(
        cell.lines, n_coils=n_coils
    )
    return entry.name, start, entry.design


def _mask_name(group: Group, ledger: Ledger, cell: Cell) -> dict[str, object]:
    """Name of a mask: designs that grow from one start serve every number of lines up to theirs."""
    strategy, start, design = chosen_mask(group, ledger, cell)
    looks = strategy in ORACLES or make_strategy(strategy).needs_posterior
    grows = looks or strategy.startswith("trained:")
    most = (
        max(n for n in group.lines if not grows or chosen_mask(group, ledger, _with(cell, n))[1] == start)
        if grows
        else cell.lines
    )
    image = group.tests[cell.image].name if looks and not cell.entry.fixed else ""
    label = f"{cell.entry.label} for {cell.reconstructor}" if cell.entry.tuned else cell.entry.label
    return {
        "section": group.section,
        "group": group.name,
        "strategy": label,
        "design": design,
        "lines": most,
        "draw": cell.draw,
        "image": image,
    }


def mask_row(group: Group, ledger: Ledger, cell: Cell) -> Row | None:
    """The mask behind a cell, where it has been designed."""
    name = _mask_name(group, ledger, cell)
    return ledger.find("masks", *name.values())


def lines_of(row: Row) -> Lines:
    """In acquisition order."""
    return tuple(int(line) for line in str(row["mask"]).split())


def _with(cell: Cell, lines: int) -> Cell:
    return Cell(cell.reconstructor, cell.entry, lines, cell.draw, cell.image)


def _make_masks(group: Group, ledger: Ledger, workers: Workers[StudyMaterial], show: Show) -> None:
    named: dict[tuple[object, ...], Row] = {}
    pieces: list[NewMask] = []
    for cell in cells_of(group):
        name = _mask_name(group, ledger, cell)
        if ledger.has("masks", name) or tuple(name.values()) in named:
            continue
        strategy, start, design = chosen_mask(group, ledger, cell)
        training = tuple(range(len(group.training))) if cell.entry.fixed else ()
        named[tuple(name.values())] = {**name, "start": start, "by": _without_folder(strategy)}
        job = MaskJob(strategy, int(str(name["lines"])), start, cell.draw, cell.image, training)
        pieces.append(NewMask(design, job, cell.entry.exchanges, group.reconstructors[0]))
    found = workers.map(compute, pieces)
    collect(ledger, "masks", list(named.values()), found, lambda *at: show(f"{group.name}: designing masks", *at))


def _reconstruct(group: Group, ledger: Ledger, workers: Workers[StudyMaterial], show: Show) -> None:
    """Equal lines are reconstructed once, whoever chose them."""
    wanted: dict[tuple[str, int, frozenset[int]], list[Row]] = {}
    known: dict[tuple[str, int, frozenset[int]], Row] = {}
    for cell in cells_of(group):
        mask = mask_row(group, ledger, cell)
        assert mask is not None
        lines = frozenset(lines_of(mask)[: cell.lines])
        name = {
            "section": group.section,
            "group": group.name,
            "reconstructor": cell.reconstructor,
            "strategy": cell.entry.label,
            "grid": group.n_lines,
            "share": group.share_of(cell.lines),
            "lines": cell.lines,
            "draw": cell.draw,
            "image": group.tests[cell.image].name,
            "mask_converged": cell.lines <= int(str(mask["converged_lines"])),
        }
        same = (cell.reconstructor, cell.image, lines)
        if ledger.has("cells", name):
            key = ("section", "group", "reconstructor", "strategy", "lines", "draw", "image")
            found = ledger.find("cells", *(name[part] for part in key))
            assert found is not None
            known[same] = {part: found[part] for part in RESULTS}
        else:
            wanted.setdefault(same, []).append(name)
    for same in [same for same in wanted if same in known]:
        for name in wanted.pop(same):
            ledger.keep("cells", {**name, **known[same]})
    pieces = [MaskError(name, image, tuple(sorted(lines))) for name, image, lines in wanted]
    results = workers.map(compute, pieces)
    for done, (names, found) in enumerate(zip(wanted.values(), results, strict=True), 1):
        for name in names:
            ledger.keep("cells", {**name, **{part: found[part] for part in RESULTS}})  # type: ignore[call-overload]
        ledger.write(now=False)
        show(f"{group.name}: reconstructing", done, len(pieces))
    ledger.write()


RESULTS = ("relative_l2", "psnr", "ssim", "reconstruction_converged", "seconds")


def _without_folder(strategy: str) -> str:
    family, colon, setting = strategy.partition(":")
    return f"{family}{colon}{setting.rpartition('/')[2]}"
