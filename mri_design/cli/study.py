"""Verbs that judge masks on scans whose truth is known: compare, protocol and the demo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mri_design.cli import options, terminal
from mri_design.cli.options import LINES, SCAN, SCORING, Calibration, Computation, Destination, Known, Settings, whole
from mri_design.errors import UsageError, whole_number
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import usual_strategies

if TYPE_CHECKING:
    from mri_design.experiment.inputs import ScanSource

Inputs = Annotated[list[str], Parameter(name="INPUT", metavar="INPUT")]
Files = Annotated[list[str] | None, Parameter(metavar="INPUT")]
Companions = Annotated[list[str] | None, Parameter(name="--with", group=SCAN, metavar="INPUT=FILE")]
Start = Annotated[int | None, whole(1, group=LINES)]
Encoding = Annotated[str | None, Parameter(group=LINES, metavar="NAME")]


def compare(
    sources: Inputs,
    /,
    *,
    to: Computation,
    lines: Annotated[str | None, Parameter(name=("--lines", "--samples", "--shots"), metavar="N,N,...")] = None,
    acceleration: Annotated[str | None, Parameter(metavar="R,R,...")] = None,
    strategies: options.Names = None,
    train: Files = None,
    methods: options.Names = None,
    method: options.Method = None,
    slices: options.Slices = "middle",
    seeds: Annotated[int, whole(1, group=SCORING)] = 5,
    calibration: Calibration = Calibration(),
    companions: Companions = None,
    settings: Settings = Settings(),
    encoding: Encoding = None,
    start: Start = None,
) -> int:
    """Compare sampling strategies: same slices, same reconstruction, several line counts.

    Example: mri-design compare phantom:t2w --lines 32,48,64 --strategies calibrated,vd-polynomial,random --out study

    Parameters
    ----------
    sources : str
        Test scans: files or phantom:NAME, each with its slices as scan.h5#0,3-5 if wanted.
    lines : str
        Counts of lines, of samples, or of shots.
    acceleration : str
        Instead of counts, as 4,8,12.
    strategies : str
        Names as for design. [default: those that are usual for the encoding]
    train : list of str
        Training scan, may be repeated: densities are tuned on them, and posterior strategies also design one fixed mask
        on them.
    methods : str
        Reconstruct every mask by these, too, as mean,l1-wavelet,total-variation,least-squares, and compare them with
        the first. Weights of penalties are tuned on --train, or without it in hindsight.
    method : str
        Reconstruction of all masks, as for recon.
    slices : str
        Slices of inputs that do not name their own: 0,3-5, middle or all.
    seeds : int
        Draws of every random strategy.
    companions : list of str
        Another image of an input's object, that its images then know; of the only input FILE alone. Masks are the same
        without it.
    encoding : str
        What is chosen one by one: lines, plane (samples (ky, kz)), radial (spokes) or spiral (arms).
    start : int
        Centre lines to begin with, of all strategies. By default, with several coils, masks that look at no data are
        tried with as many as designs, with 24, and as published, and the best counts.

    Notes
    -----
    Finished pieces are kept in the run folder: --resume goes on with the others.

    With --with the lines of every mask decide for themselves whether the other image helps; companions.csv has what
    they decided.

    Strategies for lines: {lines}. For samples of a plane: {plane}. For spokes and arms: {shots}.
    """
    terminal.load_ahead(to.jobs, to.executor, sources)
    from mri_design.evaluation.run_folder import PROGRESS
    from mri_design.experiment.inputs import scan_sources
    from mri_design.runs.compare import ComparisonRequest, run_comparison_of

    wanted = "numbers of lines, samples or shots, as 32,48"
    counts = options.numbers_of("--lines", lines, wanted, (1, 1e9), parsed=whole_number) if lines else []
    wanted = "numbers of one or more, as 4 or 4,8,12"
    factors = options.numbers_of("--acceleration", acceleration, wanted, (1, 1e6)) if acceleration else []
    recipe = _recipe(settings, calibration, method, encoding=encoding, start=start)
    companion_files = options.check_with(companions, recipe)
    named = scan_sources(
        [*sources, *(train or [])], slices or "middle", **calibration.given, companions=companion_files
    )
    request = ComparisonRequest(
        sources=named[: len(sources)],
        recipe=recipe,
        strategies=options.names_of(strategies) if strategies else usual_strategies(recipe.design.encoding),
        lines=sorted(set(counts)),
        train=named[len(sources) :],
        seeds=seeds,
        accelerations=factors,
        methods=options.names_of(methods) if methods else [],
    )
    with to.opened(PROGRESS) as run:
        ended = run_comparison_of(request, run)
    return to.ended("", ended)


def _recipe(settings: Settings, calibration: Calibration, method: str | None, **design: object) -> Recipe:
    return settings.made(design=design, reconstruction={"method": method}, **calibration.settings)


def protocol(
    sources: Inputs,
    /,
    *,
    to: Computation,
    lines: options.Lines = None,
    acceleration: options.Acceleration = None,
    known: Known = Known(),
    test: Files = None,
    against: options.Names = None,
    strategy: options.Name = None,
    rule: options.Name = None,
    swaps: Annotated[int | None, whole(0, group=LINES)] = None,
    slices: options.Slices = "middle",
    seeds: Annotated[int | None, whole(1, group=SCORING)] = None,
    method: options.Method = None,
    calibration: Calibration = Calibration(),
    companions: Companions = None,
    settings: Settings = Settings(),
    encoding: Encoding = None,
    start: Start = None,
    block: Annotated[int | None, whole(1, group=LINES, metavar="K")] = None,
) -> int:
    """Design one mask for all slices of all INPUTS together, and judge it on other subjects.

    INPUTS are fully sampled, so the lines come next on and around which their reconstructions are most wrong. With
    --rule an order of lines is learned instead, for --strategy trained:FILE and calibrated:FILE of design; OUT is its
    file (.npz). For a mask that follows one scan, see mri-design design.

    Example: mri-design protocol heads.h5#all --test other.h5#all --lines 64 --swaps 8 --out protocol

    Parameters
    ----------
    sources : str
        Fully sampled scans to design on: files or phantom:NAME, each with its slices as scan.h5#0,3-5 if wanted.
    lines : int
        Lines or samples to measure, those at the start included.
    acceleration : float
        Instead of a number: measure one in R.
    test : list of str
        Scan of another subject to judge the mask on; may be repeated.
    against : str
        Competitors on the test scans; densities are tuned on INPUTS. [default: low-pass,vd-polynomial]
    strategy : str
        residual-greedy, which looks at the truth of INPUTS, or one that adds a line's score over the slices, as if
        INPUTS were measured now. [default: residual-greedy, or the recipe's]
    rule : str
        Learn an order by residual-greedy, one reconstruction per image and line; lbcs, which tries every line on every
        image; or stochastic-lbcs, some of both: stochastic-lbcs:16:3 tries 16 lines on 3 images.
    swaps : int
        Exchanges of lines to try at the end, each kept where the mean error over INPUTS falls. [default: 0]
    slices : str
        Slices of inputs that do not name their own: 0,3-5, middle or all.
    seeds : int
        Draws of every random competitor. [default: 5]
    method : str
        Reconstruction, as for recon.
    companions : list of str
        Another image of an input's object, that its images then know; of the only input FILE alone.
    encoding : str
        lines, or plane: samples (ky, kz), for readout positions of volumes.
    start : int
        Lines at the centre to begin with.
    block : int
        Choose K lines after each inference; of a plane K samples.

    Notes
    -----
    An order, and a design that uses it: mri-design protocol heads.h5#all --rule residual-greedy --lines 64 --out
    order.npz; mri-design design scan.h5 --strategy calibrated:order.npz --lines 48 --out run

    With --until-interval the mask has enough lines as soon as the regions are known in every slice of INPUTS that has
    them, or --lines. A mask on the grid of the image lies on every slice.

    trained:FILE measures in the order that was learned; calibrated:FILE lets the training scans vote next to the scan's
    own posterior for as long as they predict its lines well. --resume continues an interrupted run.

    Strategies: residual-greedy, {lines}; of a plane {plane}.
    """
    terminal.load_ahead(to.jobs, to.executor, [*sources, *(test or [])])
    from mri_design.experiment.inputs import scan_sources

    recipe = _recipe(settings, calibration, method, encoding=encoding, start=start, block=block, **known.settings)
    companion_files = options.check_with(companions, recipe)
    named = scan_sources([*sources, *(test or [])], slices or "middle", **calibration.given, companions=companion_files)
    if rule is not None:
        given: dict[str, object] = {"test": test, "against": against, "strategy": strategy, "swaps": swaps}
        given |= {"seeds": seeds, "region": known.region, "difference": known.difference}
        if spare := [name for name, value in {**given, "with": companions}.items() if value is not None]:
            raise UsageError(f"--{spare[0]} is for a mask, and --rule learns an order: leave one of them out")
        return _order(rule, named, recipe, to, lines, acceleration)
    from mri_design.evaluation.run_folder import CHECKPOINT
    from mri_design.kinds import KINDS, count_text
    from mri_design.runs.protocol import ProtocolRequest, run_protocol_of

    request = ProtocolRequest(
        sources=named[: len(sources)],
        recipe=recipe,
        lines=lines,
        acceleration=acceleration,
        test=named[len(sources) :],
        against=options.names_of(against or "low-pass,vd-polynomial"),
        swaps=swaps or 0,
        seeds=seeds or 5,
        strategy=strategy or "",
        regions=known.regions,
    )
    with to.opened(CHECKPOINT) as run:
        ended = run_protocol_of(request, run)
    return to.ended(count_text(len(ended.chosen), KINDS[recipe.design.encoding].unit), ended)


def _order(
    rule: str, sources: list[ScanSource], recipe: Recipe, to: Computation, lines: int | None, acceleration: float | None
) -> int:
    """Learn an order of lines, and write its file."""
    from mri_design.kinds import KINDS, count_text
    from mri_design.runs.protocol import ProtocolRequest, beginning_of, run_training_of, training_rule
    from mri_design.runs.work import Work

    name, *tried = rule.split(":")
    numbers = [whole_number(number) or 0 for number in tried]
    if len(numbers) > 2 or not all(number > 0 for number in numbers):
        raise UsageError(f"--rule: got {rule!r}; wanted a rule, with numbers of lines and images as {name}:16:3")
    learnt = training_rule(name, *numbers)
    request = ProtocolRequest(sources=sources, recipe=recipe, rule=learnt, lines=lines, acceleration=acceleration)
    terminal.check_resume(to.resume, to.overwrite)
    with terminal.kept_on_interruption(beginning_of(to.out)), terminal.telling(to.quiet) as progress:
        work = Work(seed=to.seed, jobs=to.jobs, executor=to.executor, progress=progress)
        ended = run_training_of(request, to.out, work, overwrite=to.overwrite, command=sys.argv[1:], resume=to.resume)
    number = count_text(len(ended.lines), KINDS[recipe.design.encoding].unit)
    terminal.say(f"{number} by {name}, {ended.status}: {to.out}", to.quiet)
    return terminal.exit_code(ended.status)


def demo(
    *,
    out: Path = Path("demo-run"),
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
    png: Annotated[bool, Parameter(group=options.RUN)] = False,
    quiet: options.Quiet = False,
) -> int:
    """Measure a real scan with 16 coils until its own error bars say 10 %; then try other masks of as many lines on it.

    It uses the embedded scans only, and ends with the report to open.

    Example: mri-design demo --out demo-run

    Parameters
    ----------
    out : Path
        Folder for the results.
    seed : int
        Seed of everything random.
    overwrite : bool
        Begin anew in a folder that is not empty.
    png : bool
        Write every figure as PNG too, for slides.
    quiet : bool
        No progress and no result lines.
    """
    from mri_design.evaluation.page import worded
    from mri_design.runs.demo import STUDY, run_demo

    to = Destination(out=out, seed=seed, overwrite=overwrite, png=png, quiet=quiet)
    with to.opened(STUDY, resumed=False) as run:
        endings = run_demo(run)
    terminal.say(f"Open {to.page}", quiet)
    error = worded("images", "errors_in_words", endings[0].error)
    terminal.say(f"the real scan: {error}", quiet)
    return terminal.exit_code(*(ending.status for ending in endings))
