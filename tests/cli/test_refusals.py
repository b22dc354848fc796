"""Commands that are refused: 2 for wrong words, 3 for bad input, in a sentence, before anything is computed or left."""

import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.cli.folders import Designed, Run


@pytest.fixture(scope="module", autouse=True)
def inputs(work: Path) -> None:
    """Masks, noise and others that the refusals speak of, beside the scans of the work folder."""
    masks = {
        "short": np.ones(23, bool),
        "wide": np.ones((24, 2), bool),
        "density": np.full(24, 0.5),
        "no-line": np.zeros(24, bool),
    }
    for name, mask in masks.items():
        np.save(work / f"{name}.npy", mask)
    snow = np.random.default_rng(0).standard_normal((2, 1, 1, 24, 20))
    np.savez(work / "snow.npz", kspace=(snow[0] + 1j * snow[1]).astype(np.complex64), noise_variance=np.float64(1))
    (work / "cut.npz").write_bytes((work / "scan.npz").read_bytes()[:-100])
    (work / "empty.npy").touch()
    (work / "folder").mkdir()


@pytest.mark.parametrize(
    ("words", "name", "near", "not_taken"),
    [
        ("design scan.npz --lines 8 --strategy calibratd", "calibratd", "calibrated", "residual-greedy"),
        ("design scan.npz --lines 8 --encoding plane --strategy regular", "regular", "", "residual-greedy"),
        ("protocol scan.npz --lines 8 --strategy residal-greedy", "residal-greedy", "residual-greedy", "oracle"),
        ("compare scan.npz --lines 8 --strategies residal-greedy", "residal-greedy", "residual-greedy", "spokes"),
        ("compare scan.npz --lines 8 --methods mena", "mena", "mean", "calibrated"),
        ("recon scan.npz --method mena", "mena", "mean", "calibrated"),
        ("recon scan.npz --duplicates averag", "averag", "average", "calibrated"),
        ("recon phantom:t2", "phantom:t2", "phantom:t2w", "calibrated"),
        ("recon scan.npz --recipe defalt", "defalt", "default", "calibrated"),
        ("train scan.npz --lines 8 --rule lbsc", "lbsc", "lbcs", "calibrated"),
        ("export designed --to niftii", "niftii", "nifti", "calibrated"),
        ("export designed --to seq --scanner siemens-skira", "siemens-skira", "siemens-skyra", "calibrated"),
        ("mask --kind poison-disc --shape 64 --lines 8", "poison-disc", "poisson-disc", "oracle"),
        ("mask --kind vd --encoding palne --shape 64 --lines 8", "palne", "plane", "oracle"),
        ("design scan.npz --lines 8 --executor locl", "locl", "local", "calibrated"),
    ],
)
def test_unknown_names_are_answered_once_with_what_the_verb_takes(
    run: Run, tmp_path: Path, words: str, name: str, near: str, not_taken: str
) -> None:
    said = run(*words.split(), "--out", tmp_path / "x.npy", code=(2, 3)).stderr
    assert name in said and said.count("mean " + near) == bool(near)
    assert said.count("id you mean") == bool(near) and not_taken not in said
    assert not list(tmp_path.iterdir())


WORDS = [
    ("dsign scan.npz", "No such command"),
    ("design scan.npz --lines 8 --shiny", "No such option"),
    ("design scan.npz --lines many", "'many' is no whole number"),
    ("design scan.npz --lines 0", "Invalid value for '--lines'"),
    ("design scan.npz --lines 8 --jobs 1 --executor slurm", "unknown executor 'slurm'"),
    ("recon scan.npz --method magic", "unknown method 'magic'"),
    ("recon scan.npz --png --no-report", "give one of them"),
    ("recon scan.npz --resume --overwrite", "give one of them"),
    ("design scan.npz --lines 8 --resume --overwrite", "give one of them"),
    # Strategies
    ("design scan.npz --lines 8 --strategy randm", "--strategy: got unknown strategy 'randm'"),
    ("design scan.npz --lines 8 --strategy residual-greedy", "mri-design protocol"),
    ("compare scan.npz --lines 8 --strategies residual-greedy", "--train"),
    ("compare scan.npz --lines 8 --train head.npz --strategies low-pass,vd-polynomial:3", "Leave out --train"),
    ("protocol scan.npz head.npz --lines 10 --strategy oracle-residual", "is no protocol"),
    ("train scan.npz --lines 9 --rule best", "unknown rule 'best'"),
    ("train scan.npz --lines 9 --candidates 3", "belong to stochastic-lbcs"),
    ("design scan.npz --lines 8 --seen scan.npz --strategy random", "an earlier scan informs the strategy"),
    # Numbers of lines, the centre, slices
    ("design scan.npz", "when does the design end?"),
    ("design scan.npz --lines 25", "--lines: number of lines: got 25; wanted at most 24"),
    ("compare scan.npz --lines 25 --strategies low-pass --jobs 1", "--lines: number of lines: got 25"),
    ("design scan.npz --lines 8 --start 9", "--start: start lines: got 9"),
    ("train scan.npz --lines 9 --start 12", "at most the number of lines, 9"),
    ("compare scan.npz --lines 8,x", "give positive whole numbers"),
    ("design scan.npz --lines 8 --slice 3", "--slice: got 3; wanted 0 to 0"),
    ("compare scan.npz --slices 4 --lines 8", "--slices: got 4"),
    ("compare scan.npz#4 --lines 8", "INPUT: slices: got 4; wanted 0 to 0"),
    ("design scan.npz#2 --lines 8", "scan.npz --slices 2"),
    ("info scan.npz#2", "info tells about all slices"),
    # Scans that cannot be held against each other
    ("compare scan.npz scan.npz --lines 8", "two inputs have the same name and slice"),
    ("compare scan.npz --train scan.npz --lines 8", "scan[0] is both a test and a training image"),
    ("compare scan.npz --lines 8 --maps other.npz=maps.npy", "--maps other.npz=maps.npy: give INPUT=FILE"),
    ("compare scan.npz head.npz --lines 8 --maps-from a.npz", "--maps-from a.npz: give INPUT=SCAN"),
    ("train scan.npz --lines 8 --maps-from a.npz --maps m.npy", "scan.npz has maps already"),
    ("compare scan.npz --lines 8 --noise-sd -1", "--noise-sd -1: wanted a positive number"),
    ("recon scan.npz --maps nlinvv", "--maps nlinvv: got 'nlinvv', which is no file; wanted a file of coil maps, or a"),
    ("recon scan.npz --maps grappa", "--maps grappa: got 'grappa', which is no file; wanted a file of coil maps, or a"),
    ("recon scan.npz --maps ESPIRiT", "one of auto, espirit, nlinv. Did you mean espirit?"),
    ("protocol scan.npz --lines 8 --maps scan.npz=nlinv", "a method for all inputs, one of auto, espirit, nlinv. Did"),
    # When a design ends
    ("design scan.npz --lines 8 --until-error 0.1 --strategy random", "'random' predicts no error"),
    ("design scan.npz --lines 8 --until-gain 1 --strategy low-pass", "'low-pass' knows no information gain"),
    ("design scan.npz --until-error 5", "--until-error: got 5.0; wanted a finite number, above 0 and below 1."),
    ("design scan.npz --lines 8 --until-gain inf", "--until-gain: got inf"),
    # Constraints and echo trains
    ("design scan.npz --lines 8 --order spiral", "--order: got unknown order 'spiral'"),
    ("design scan.npz --lines 8 --order interleaved", "interleaved without echo trains"),
    ("design scan.npz --lines 8 --max-jump 3 --block 2 --order interleaved", "with jumps of 3 at most"),
    ("design scan.npz --lines 8 --partial-fourier 0.3", "--partial-fourier: got 0.3; wanted a finite number, 0.5 to 1"),
    ("design scan.npz --lines 20 --partial-fourier 0.6", "--lines: number of lines: got 20; wanted at most 15"),
    ("design scan.npz --lines 8 --forbid x", "--forbid: got 'x'; wanted numbers and ranges from 0"),
    ("design scan.npz --lines 8 --forbid 3 --require 3", "line 3 forbidden and required"),
    ("design scan.npz --lines 8 --forbid 0-23", "no line of 24 left"),
    ("design scan.npz --lines 8 --forbid 24", "forbidden lines: got line 24; wanted lines from 0 to 23"),
    ("design scan.npz --lines 8 --start 6 --forbid 13", "forced centre: got 6 lines, of which line 13"),
    ("design scan.npz --lines 8 --forbid 12", "line 12, the centre of k-space"),
    ("design scan.npz --lines 20 --start 6 --max-jump 3", "lines within jumps of 3"),
    # What belongs to another encoding
    ("design scan.npz --lines 8 --shutter", "--shutter: got a shutter; wanted none where lines are chosen"),
    ("design scan.npz --lines 8 --slices 0-3 --positions all", "with --slices alone"),
    ("design scan.npz --lines 8 --strategy poisson-disc", "chooses samples of a plane"),
    ("design scan.npz --lines 8 --angles 8", "--angles are those of spokes and arms to choose from, and lines are"),
    ("compare scan.npz --encoding plane --lines 8 --angles 8", "samples are chosen here"),
    ("PLANE --strategy residual-greedy --samples 60", "learns from fully sampled training scans"),
    ("PLANE --shots 60", "--shots counts spokes and arms (--encoding radial, spiral): give --samples 60"),
    ("PLANE --samples 60 --forbid 3", "whose samples are no lines"),
    ("PLANE --samples 60 --acceleration 4", "--samples 60 and --acceleration 4 both say how much is measured"),
    ("PLANE --samples 60 --calibration 12", "--calibration: required samples: got 144; wanted at most"),
    ("PLANE --samples 60 --start 70", "--start: start samples: got 70 (of which 0 are required); wanted at"),
    ("PLANE --samples 360 --shutter --calibration 18", "--calibration: calibration region: got 324"),
    ("SPOKES --shots 6 --strategy calibrated", "for spokes and arms of spirals there are: inf"),
    ("SPOKES --lines 6", "count other candidates than spokes: give --shots 6"),
    ("SPOKES --shots 6 --acceleration 4", "--shots 6 and --acceleration 4 both say how much is measured"),
    ("SPOKES", "Give their number with --shots, or --acceleration"),
    ("compare phantom:brain --encoding spiral", "Give their numbers with --shots, or --acceleration"),
    (
        "compare scan.npz --lines 8,12 --acceleration 4",
        "--lines 8,12 and --acceleration 4 both say how much",
    ),
    ("compare scan.npz --acceleration 4,x", "give numbers of one or more, as 4 or, for compare, 4,8,12"),
    ("design scan.npz --accelerations 4,8", "are several. Give one here; mri-design compare takes several"),
    ("design scan.npz --acceleration four", "is no number"),
    ("protocol scan.npz head.npz", "Give --lines, or --acceleration"),
    ("protocol scan.npz --lines 9 --accelerations 4", "--lines 9 and --acceleration 4 both say how much is measured"),
    ("train scan.npz --acceleration 0.5", "--acceleration: got 0.5"),
    ("PLANE --samples 481", "--samples: number of samples: got 481; wanted at most 480"),
    ("SPOKES --shots 6 --angles 5", "at least 6"),
    ("SPOKES --shots 6 --angles 1000000", "which memory can hold"),
    (
        "SPOKES --shots 6 --angles 12 --strategy half-turn",
        "half-turn has its own angles: leave it out, or take the strategy information-gain",
    ),
    (
        "compare scan.npz --encoding spiral --shots 5 --strategies golden,half-turn --train head.npz",
        "none of these strategies learns: golden, half-turn. Leave out --train",
    ),
    ("SPOKES --shots 6 --start 8", "at most the number of spokes, 6"),
    ("SPOKES --shots 6 --forbid 3", "--forbid: got 3; wanted none where shots are chosen"),
    ("SPOKES --shots 6 --calibration 4", "--calibration: got 4; wanted none where shots are chosen"),
    ("SPOKES --shots 6 --block 2", "one by one"),
    ("SPOKES --shots 6 --order centre-out", "of lines and samples"),
    ("SPOKES --shots 6 --seen head.npz", "designs of lines and of samples of a plane, not of spokes and arms"),
    ("SPOKES --shots 6 --positions all", "those of one slice"),
    # At the scanner
    ("adapt --lines 8", "Give a file or -, or --listen"),
    ("adapt - --lines 8 --strategy oracle-hole", "knows the image"),
    ("adapt - --lines 8 --repeated both", "--repeated"),
    ("adapt - --lines 8 --contrast 1", "leave out --contrast"),
    ("adapt - --lines 8 --timeout 0", "--timeout"),
    # Files that are written
    ("convert scan.npz a.h5 --fov 240", "--fov 240: wanted one or two lengths in metres"),
]
"""Ended with 2."""
INPUTS = [
    ("info absent.npy", "absent.npy: got No such file or directory"),
    ("design absent.npy --lines 8", "Look at the spelling and the folder."),
    ("info phantom:nobody", "phantom:nobody"),
    ("recon folder", "got a folder"),
    ("info scan.npz --maps empty.npy", "Copy or download it again"),
    ("recon cut.npz", "cut.npz"),
    ("convert quick.toml a.npy", "wanted NumPy .npy or .npz"),
    ("design scan.npz --lines 8 --recipe absent.toml", "recipe absent.toml: got No such file"),
    ("recon scan.npz --mask short.npy", "wanted bool (24,)"),
    ("recon scan.npz --mask wide.npy", "wanted bool (24,)"),
    ("recon scan.npz --mask density.npy", "density.npy: got float64 (24,)"),
    ("recon scan.npz --mask no-line.npy", "got no line"),
    ("compare scan.npz phantom:t2w --lines 8 --recipe quick.toml --jobs 1", "one comparison per matrix size"),
    ("protocol scan.npz phantom:brain --lines 10 --recipe quick.toml", "one grid"),
    ("design scan.npz --lines 8 --recipe quick.toml --seen phantom:t2w", "wanted that of the scan, 24 x 20"),
    ("design scan.npz --lines 8 --seen scan.npz#0,1", "earlier scan scan.npz#0,1: slices"),
    ("design scan.npz --lines 8 --seen snow.npz", "earlier scan snow.npz#0: k-space centre: got noise only"),
]
"""Ended with 3."""
RECIPES = [
    ("design", "[inference]\nloops = -1", 3, "recipe mine.toml: inference.loops: got -1"),
    (
        "design --strategy low-pass",
        "[design]\nstrategy = 'magic'",
        3,
        "recipe mine.toml: design.strategy: got unknown strategy 'magic'",
    ),
    ("design --strategy low-pass", "[design]\nstratgy = 'random'", 3, "Did you mean design.strategy?"),
    ("design", "[design]\nstrategy = 'oracle-greedy'", 3, "recipe mine.toml: design.strategy"),
    ("compare", "[design]\nuntil_error = 0.1", 2, "equal numbers of lines; take until_error and until_gain"),
    ("protocol", "[design]\nuntil_error = 0.1", 2, "as many lines as are asked for; take until_error and until_gain"),
    ("compare", "[constraints]\ncalibration = 4", 3, "none where lines are chosen"),
    ("compare --shutter", "[constraints]\ncalibration = 4", 2, "--shutter: got a shutter; wanted none where lines are"),
    (
        "compare --encoding radial --strategies golden",
        "[constraints]\ncalibration = 4",
        3,
        "constraints.calibration: got",
    ),
    ("protocol --swaps 4", "[constraints]\nmax_jump = 5", 2, "maximum jump"),
    (
        "protocol",
        "[design]\nencoding = 'radial'",
        2,
        "or samples of a plane, not spokes (--encoding radial, or encoding = ",
    ),
    ("adapt", "[coils]\ncompress_coils = 4", 2, "leave compress_coils out of the recipe"),
    ("train", "[design]\nencoding = 'spiral'", 2, "design and compare choose arms of spirals"),
]
"""Verb and options, what stands in the recipe, exit code."""
BEGINNINGS = {"PLANE": "design scan.npz --encoding plane", "SPOKES": "design scan.npz --encoding radial"}


def refused(run: Run, folder: Path, command: str, code: int, said: str) -> None:
    words = shlex.split(command)
    words = [*BEGINNINGS.get(words[0], words[0]).split(), *words[1:]]
    if words[0] == "convert":
        words[2] = str(folder / words[2])
    elif words[0] != "info":
        words += ["--out", str(folder / "out")]
    result = run(*words)
    told = " ".join(result.stderr.replace("│", " ").split())
    assert (result.exit_code, said in told) == (code, True), result.output
    assert isinstance(result.exception, SystemExit)
    assert {path.name for path in folder.rglob("[!.]*")} <= {"mine.toml"}


@pytest.mark.parametrize(("command", "said"), WORDS)
def test_wrong_words_end_with_2(run: Run, tmp_path: Path, command: str, said: str) -> None:
    refused(run, tmp_path, command, 2, said)


@pytest.mark.parametrize(("command", "said"), INPUTS)
def test_bad_input_ends_with_3(run: Run, tmp_path: Path, command: str, said: str) -> None:
    refused(run, tmp_path, command, 3, said)


@pytest.mark.parametrize(("command", "recipe", "code", "said"), RECIPES)
def test_what_is_wrong_in_a_recipe_is_told_by_its_setting(
    run: Run, tmp_path: Path, command: str, recipe: str, code: int, said: str
) -> None:
    (tmp_path / "mine.toml").write_text(f"{recipe}\n")
    verb, *options = command.split()
    words = ("scan.npz", "--lines", "8", "--recipe", str(tmp_path / "mine.toml"), *options)
    refused(run, tmp_path, " ".join([verb, *words]), code, said)


@pytest.mark.parametrize("option", ["--contrast", "--phase", "--repetition", "--set"])
def test_a_series_that_is_not_there_is_refused_by_its_option(run: Run, tmp_path: Path, option: str) -> None:
    refused(run, tmp_path, f"recon scan.npz {option} 3", 2, f"{option}: ")


def test_wrong_words_are_told_before_whose_folder_it_is(run: Run, designed: Designed) -> None:
    for words in (("--lines", 25), ("--lines", 8, "--slice", 3), ("--until-error", "nan")):
        result = run("design", "scan.npz", *words, "--out", designed[0], code=2)
        assert words[-2] in result.stderr and "finished run" not in result.stderr
