"""Verbs that judge masks on scans whose truth is known: compare, protocol, train and the demo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from mri_design.cli import flags, terminal
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import usual_strategies

_SLICES = "files or phantom:NAME, each with its slices as scan.h5#0,3-5 if wanted."
_SETTINGS = f"reconstruction.method design.encoding design.block {flags.PLANE} {flags.SERIES} {flags.NOISE}"
RULES = ("residual-greedy", "lbcs", "stochastic-lbcs")
flags.NAMES["rules"] = ", ".join(RULES)


def compare(
    sources: list[str],
    to: terminal.Resumed,
    lines: str | None = None,
    accelerations: str | None = None,
    strategies: str | None = None,
    train: list[str] | None = None,
    methods: str | None = None,
    slices: str = "middle",
    seeds: Annotated[int, flags.Within(1)] = 5,
    companions: list[str] | None = None,
    *,
    maps: flags.Maps,
    recipe: Annotated[
        Recipe,
        flags.Override(
            f"design.start {_SETTINGS} {flags.COMPANION}",
            {
                "start": "With several coils, masks that look at no data are tried with as many as designs and with "
                "24, or as published, and the better counts; this sets one number for all.",
                "encoding": f"Strategies for a plane: {flags.names_in_help('plane')}; {flags.SHOT_STRATEGIES}",
            },
        ),
    ],
) -> int:
    """Compare sampling strategies: same slices, same reconstruction, several line counts.

    With --with the images know another image of the object (compare t2.h5 --with t1.nii.gz --lines 32): the lines of
    every mask decide for themselves, as in recon, and companions.csv says what they decided. Masks are the same
    without it.

    Finished pieces are kept in the run folder: --resume goes on with the others.

    Example: mri-design compare phantom:t2w --lines 32,48,64 --strategies calibrated,vd-polynomial,random --out
    study

    Parameters
    ----------
    sources : argument INPUT
        Test scans: files or phantom:NAME, each with its slices as scan.h5#0,3-5 if wanted.
    lines : --lines --samples --shots N,N,...
        Counts of lines, of samples, or of shots.
    accelerations : --acceleration R,R,...
        Instead of counts, as 4,8,12.
    strategies : A,B,...
        Names as for design. [default: <usual of lines>; in a plane: <usual of a plane>; of shots: all]
    train : INPUT
        Training scan, may be repeated: densities are tuned on them, and posterior strategies also design one fixed mask
        on them.
    methods : A,B,...
        Reconstruct every mask by these, too, as mean,l1-wavelet,total-variation,least-squares, and hold them against
        the first. Weights of penalties are tuned on --train, or without it in hindsight.
    seeds : N
        Draws of every random strategy.
    companions : --with INPUT=FILE
        <another image> Of the only input: --with t1w.nii.gz.
    """
    terminal.load_ahead(to.jobs, to.executor, sources)
    from mri_design.evaluation.run_folder import PROGRESS
    from mri_design.experiment.inputs import scan_sources
    from mri_design.runs.compare import ComparisonRequest, run_comparison_of

    wanted = "numbers of lines, samples or shots, as 32,48"
    counts = [] if lines is None else flags.numbers_of("--lines", lines, wanted, (1, 1e9), whole=True)
    more = "numbers of one or more, as 4 or 4,8,12"
    factors = [] if accelerations is None else flags.numbers_of("--acceleration", accelerations, more, (1, 1e6))
    encoding = recipe.design.encoding
    names = usual_strategies(encoding) if strategies is None else flags.names_of(strategies)
    recipe = maps.method(recipe)
    beside = flags.check_with(companions, recipe)
    named = scan_sources([*sources, *(train or [])], slices, **maps.given, companions=beside)
    request = ComparisonRequest(
        sources=named[: len(sources)],
        recipe=recipe,
        strategies=names,
        lines=sorted(set(counts)),
        train=named[len(sources) :],
        seeds=seeds,
        accelerations=factors,
        methods=flags.names_of(methods) if methods else [],
    )
    with to.opened(PROGRESS) as run:
        ended = run_comparison_of(request, run)
    return to.ended("", ended)


def protocol(
    sources: list[str],
    to: terminal.Resumed,
    lines: flags.LineCount = None,
    acceleration: float | None = None,
    test: list[str] | None = None,
    against: str = "low-pass,vd-polynomial",
    swaps: Annotated[int, flags.Within(0)] = 0,
    strategy: str | None = None,
    slices: str = "middle",
    seeds: Annotated[int, flags.Within(1)] = 5,
    companions: list[str] | None = None,
    *,
    maps: flags.Maps,
    recipe: Annotated[
        Recipe,
        flags.Override(
            f"design.start {_SETTINGS} {flags.COMPANION}",
            {"encoding": f"protocol takes lines and plane. Strategies for a plane: {flags.names_in_help('plane')}."},
        ),
    ],
) -> int:
    """Design one mask for all slices of all INPUTS together, and judge it on other subjects.

    INPUTS are fully sampled, so the lines come next on and around which their reconstructions are most wrong
    (residual-greedy). Other strategies add a line's score over the slices, as if INPUTS were measured now. --swaps then
    tries to exchange lines, and keeps an exchange only where the mean error over INPUTS falls. With --encoding plane
    the mask is of samples of the plane (ky, kz), for readout positions of volumes. For a mask that follows one scan,
    see `mri-design design`.

    With --with INPUT=FILE, once for each scan that has one, the images know another image of the object, as in recon:
    those behind exchanges, those of the test scans, and what --method map makes of INPUTS on the way.

    Example: mri-design protocol heads.h5#all --test other.h5#all --lines 64 --swaps 8 --out protocol

    Parameters
    ----------
    sources : argument INPUT
        Fully sampled scans to design on: files or phantom:NAME, each with its slices as scan.h5#0,3-5 if wanted.
    test : INPUT
        Scan of another subject to judge the mask on; may be repeated.
    against : A,B,...
        Competitors on the test scans; densities are tuned on INPUTS.
    swaps : N
        Exchanges of lines to try at the end, against the truth of INPUTS.
    strategy : NAME
        One of: residual-greedy, <strategies of protocols>; trained:FILE or calibrated:FILE with a file of mri-design
        train. [default: residual-greedy, or the recipe's where it names another than calibrated]
    seeds : N
        Draws of every random competitor.
    companions : --with INPUT=FILE
        <another image> Of the only input: --with t1w.nii.gz.
    """
    terminal.load_ahead(to.jobs, to.executor, [*sources, *(test or [])])
    from mri_design.evaluation.run_folder import CHECKPOINT
    from mri_design.experiment.inputs import scan_sources
    from mri_design.kinds import KINDS, count_text
    from mri_design.runs.protocol import ProtocolRequest, protocol_strategy, run_protocol_of

    recipe = maps.method(recipe)
    beside = flags.check_with(companions, recipe)
    named = scan_sources([*sources, *(test or [])], slices, **maps.given, companions=beside)
    request = ProtocolRequest(
        sources=named[: len(sources)],
        recipe=recipe,
        lines=lines,
        acceleration=acceleration,
        test=named[len(sources) :],
        against=flags.names_of(against),
        swaps=swaps,
        seeds=seeds,
        strategy=strategy or protocol_strategy(recipe),
    )
    with to.opened(CHECKPOINT) as run:
        ended = run_protocol_of(request, run)
    return to.ended(count_text(len(ended.chosen), KINDS[recipe.design.encoding].unit), ended)


def train(
    sources: list[str],
    out: Path,
    lines: flags.LineCount = None,
    acceleration: float | None = None,
    rule: str = RULES[0],
    start: Annotated[int | None, flags.Within(1)] = None,
    candidates: Annotated[int | None, flags.Within(1)] = None,
    scans: Annotated[int | None, flags.Within(1)] = None,
    slices: str = "middle",
    seed: flags.Seed = 0,
    jobs: flags.Jobs = flags.JOBS,
    executor: str = "local",
    overwrite: bool = False,
    resume: bool = False,
    quiet: bool = False,
    *,
    maps: flags.Maps,
    recipe: Annotated[
        Recipe,
        flags.Override(
            _SETTINGS,
            {"encoding": "Of these, train takes lines and plane."},
        ),
    ],
) -> int:
    """Learn from INPUTs in which order to measure lines, for scans like them.

    residual-greedy adds the line on which the reconstructions are most wrong, one reconstruction per image and line;
    lbcs tries every line on every image; stochastic-lbcs some of both. With --encoding plane, residual-greedy adds
    samples of the plane (ky, kz), --block of them at once. Use the file as `--strategy trained:FILE`, which
    measures in this order; or as `calibrated:FILE`, which lets the training scans have a say beside the scan's own
    posterior for as long as they predict its lines well. --resume goes on where it was interrupted.

    Example: mri-design train heads.h5#all --rule residual-greedy --lines 64 --out order.npz; then mri-design design
    scan.h5 --strategy trained:order.npz --lines 48 --out run

    Parameters
    ----------
    sources : argument INPUT
        Fully sampled training scans: files or phantom:NAME, each with its slices as scan.h5#0,3-5 if wanted.
    out : FILE
        File of the order (.npz).
    rule : NAME
        One of: <rules>.
    start : N
        Centre lines to begin with. [default: 4; of a plane, a 128th of its samples]
    candidates : N
        stochastic-lbcs: lines to try at each step. [default: 16]
    scans : N
        stochastic-lbcs: images to try them on. [default: 3]
    """
    terminal.load_ahead(jobs, executor, sources)
    from mri_design.experiment.inputs import scan_sources
    from mri_design.kinds import KINDS, count_text
    from mri_design.runs.protocol import TrainingRequest, beginning_of, run_training_of, training_rule
    from mri_design.runs.work import Work

    recipe = maps.method(recipe)
    request = TrainingRequest(
        sources=scan_sources(sources, slices, **maps.given),
        recipe=recipe,
        rule=training_rule(rule, candidates, scans),
        lines=lines,
        acceleration=acceleration,
        start=start,
    )
    terminal.check_resume(resume, overwrite)
    with terminal.kept_on_interruption(beginning_of(out)), terminal.telling(quiet) as progress:
        work = Work(seed=seed, jobs=jobs, executor=executor, progress=progress)
        ended = run_training_of(request, out, work, overwrite=overwrite, command=sys.argv[1:], resume=resume)
    terminal.say(
        f"{count_text(len(ended.lines), KINDS[recipe.design.encoding].unit)} by {rule}, {ended.status}: {out}", quiet
    )
    return terminal.exit_code(ended.status)


def demo(
    out: Path = Path("demo-run"),
    seed: flags.Seed = 0,
    tune: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
    png: bool = False,
) -> int:
    """Choose lines for a head whose truth is known, against a tuned density; then for a real low-field scan.

    Uses the embedded scans only. Ends with the report to open.

    Example: mri-design demo --out demo-run

    Parameters
    ----------
    out : Path
        Folder for the results.
    tune : bool
        Tune the random density anew, in place of the powers that are shipped.
    """
    from mri_design.evaluation.page import worded
    from mri_design.runs.demo import STUDY, run_demo

    with terminal.Destination(out=out, seed=seed, overwrite=overwrite, png=png, quiet=quiet).opened(
        STUDY, resumed=False
    ) as run:
        endings = run_demo(run, tune=tune)
    terminal.say(f"Open {out / 'report.html'}", quiet)
    error = worded("images", "errors_in_words", endings[-1].error)
    terminal.say(f"the image of the real scan: {error}", quiet)
    return terminal.exit_code(*(ending.status for ending in endings))
