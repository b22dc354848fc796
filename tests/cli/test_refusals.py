"""Commands that are refused: 2 for wrong words, 3 for bad input, before anything is computed or left."""

import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.cli.folders import Designed, Run


@pytest.fixture(scope="module", autouse=True)
def inputs(work: Path, designed: Designed) -> None:
    """Masks, noise and others that the refusals speak of, beside the scans of the work folder."""
    masks = {
        "short": np.ones(23, bool),
        "wide": np.ones((24, 2), bool),
        "density": np.full(24, 0.5),
        "no-line": np.zeros(24, bool),
    }
    for name, mask in masks.items():
        np.save(work / f"{name}.npy", mask)
    (work / "cut.npz").write_bytes((work / "scan.npz").read_bytes()[:-100])
    (work / "empty.npy").touch()
    (work / "folder").mkdir()


UNKNOWN = """
    design scan.npz --lines 8 --strategy calibratd => calibrated
    design scan.npz --lines 8 --encoding plane --strategy regular =>
    protocol scan.npz --lines 8 --strategy residal-greedy => residual-greedy
    compare scan.npz --lines 8 --methods mena => mean
    recon scan.npz --method mena => mean
    recon phantom:t2 => phantom:t2w
    recon scan.npz --recipe defalt => default
    recon scan.npz --maps ESPIRiT => espirit
    protocol scan.npz --lines 8 --rule lbsc => lbcs
    export designed a.seq --scanner siemens-skira => siemens-skyra
    design 64 --strategy poison-disc --lines 8 => poisson-disc
    design scan.npz --lines 8 -s design.blok=4 => design.block
    design scan.npz --lines 8 --executor locl => local
    design scan.npz --lines 8 --max-jump 4 => -s constraints.max_jump
"""
"""Names that are unknown, and the nearest that the verb takes."""
WRONG_WORDS = """
    dsign scan.npz
    design scan.npz --lines 8 --shiny
    design scan.npz --lines many
    recon scan.npz --png --no-report
    recon scan.npz --draws 4 --method map
    recon scan.npz --maps m.npy --maps-from a.npz
    design scan.npz --lines 8 --resume --overwrite
    design scan.npz --lines 8 --strategy residual-greedy
    compare scan.npz --lines 8 --strategies residual-greedy
    compare scan.npz --lines 8 --train head.npz --strategies low-pass,vd-polynomial:3
    protocol scan.npz head.npz --lines 10 --strategy oracle-residual
    protocol scan.npz --lines 9 --rule lbcs:3
    protocol scan.npz --lines 9 --rule stochastic-lbcs:x => --rule
    protocol scan.npz --lines 9 --rule lbcs --swaps 3 => --swaps
    design scan.npz --lines 8 -s design.block=x => -s design.block
    design scan.npz --lines 8 -s design => -s
    design scan.npz --lines 8 -s image.matrix=48 => -s image
    design scan.npz
    design scan.npz --lines 25 => --lines
    design scan.npz --lines 8 --start 9 => --start
    protocol scan.npz --lines 8 --rule lbcs --start 9 => --start
    compare scan.npz --lines 8,x
    design scan.npz --lines 8 --slice 3 => --slice
    compare scan.npz#4 --lines 8 => INPUT
    info scan.npz#2
    compare scan.npz scan.npz --lines 8
    compare scan.npz --lines 8 --maps other.npz=maps.npy => --maps
    protocol scan.npz --rule lbcs --lines 8 --maps-from a.npz --maps m.npy
    recon scan.npz --noise -1
    recon scan.npz --maps grappa => --maps
    protocol scan.npz --lines 8 --maps scan.npz=nlinv
    recon scan.npz --maps espirit:7 => --maps
    design scan.npz --until-error 5 => --until-error
    design scan.npz --until-error 100% => --until-error
    design scan.npz --until-error ten
    design scan.npz --lines 8 --order spiral => --order
    design scan.npz --lines 8 --partial-fourier 0.3 => --partial-fourier
    design scan.npz --lines 20 --partial-fourier 0.6 => --lines
    design scan.npz --lines 8 -s constraints.forbid=x => -s constraints.forbid
    design scan.npz --lines 8 -s constraints.forbid=3-3 -s constraints.require=3-3
    design scan.npz --lines 8 --start 6 -s constraints.forbid=13-13 => --start
    design scan.npz --lines 8 -s constraints.forbid=corners => -s constraints.forbid
    design scan.npz --lines 8 --strategy poisson-disc
    PLANE --samples 60 -s constraints.forbid=3-3 => -s constraints.forbid
    PLANE --samples 60 --acceleration 4 => --samples
    PLANE --samples 360 -s constraints.forbid=corners --start 18 => --start
    SPOKES --shots 6 --strategy calibrated
    SPOKES
    compare scan.npz --lines 8,12 --acceleration 4 => --lines
    design scan.npz --acceleration 4,8
    protocol scan.npz --rule lbcs --acceleration 0.5 => --acceleration
    PLANE --samples 481 => --samples
    compare scan.npz --encoding spiral --shots 5 --strategies golden,half-turn --train head.npz
    design 32 --strategy vd
    design 3x3 --strategy vd --acceleration 2 => INPUT
    design 32 --strategy vd --acceleration 8 --start 5 => --start
    design 32 --strategy information-gain --acceleration 4
    design 32 --strategy vd --acceleration 4 --with scan.npz => --with
    export designed a.csv --te 0.01 => --te
    export designed a.txt
    export designed a.csv --slices 0 => --slices
    adapt --lines 8
    adapt - --lines 8 --strategy oracle-hole
    adapt - --lines 8 --repeated both
    adapt - --lines 8 --timeout 0 => --timeout
    export scan.npz a.h5 --fov 240 => --fov
    info scan.npz -s input.matrix=[3,3] => -s input.matrix
"""
"""Commands that end with 2, and the option that the error is about, where it is about one alone."""
BAD_INPUT = """
    info absent.npy
    design absent.npy --lines 8
    info phantom:nobody
    recon folder
    info scan.npz --maps empty.npy
    recon cut.npz
    export quick.toml a.npy
    design scan.npz --lines 8 --recipe absent.toml
    recon scan.npz --mask short.npy
    recon scan.npz --mask wide.npy
    recon scan.npz --mask density.npy
    recon scan.npz --mask no-line.npy
    compare scan.npz phantom:t2w --lines 8 --recipe quick.toml --jobs 1
    protocol scan.npz phantom:brain --lines 10 --recipe quick.toml
"""
"""Commands that end with 3."""
RECIPES = [
    ("design", "[inference]\nloops = -1", 3, "recipe mine.toml: inference.loops"),
    ("design --strategy low-pass", "[design]\nstrategy = 'magic'", 3, "recipe mine.toml: design.strategy"),
    ("design --strategy low-pass", "[design]\nstratgy = 'random'", 3, "recipe mine.toml: design.stratgy"),
    ("compare", "[design]\nuntil_error = 0.1", 2, ""),
    ("protocol", "[design]\nuntil_error = 0.1", 2, ""),
    ("compare", "[constraints]\nforbid = 'corners'", 3, "recipe: constraints.forbid"),
    ("compare -s constraints.forbid=corners", "[design]\nstart = 4", 2, "-s"),
    ("protocol --swaps 4", "[constraints]\nmax_jump = 5", 2, ""),
    ("protocol", "[design]\nencoding = 'radial'", 2, ""),
    ("protocol --rule lbcs", "[design]\nencoding = 'spiral'", 2, ""),
]
"""Verb and options, what stands in the recipe, exit code, and what the error is about."""
BEGINNINGS = {"PLANE": "design scan.npz --encoding plane", "SPOKES": "design scan.npz --encoding radial"}


def table(text: str) -> list[tuple[str, str]]:
    rows = [line.strip().partition(" =>") for line in text.strip().splitlines()]
    return [(command, field.strip()) for command, _, field in rows]


def refused(run: Run, folder: Path, command: str, code: int | tuple[int, ...], field: str) -> str:
    words = shlex.split(command)
    words = [*BEGINNINGS.get(words[0], words[0]).split(), *words[1:]]
    if words[0] == "export":
        words[2] = str(folder / words[2])
    elif words[0] not in ("info", "recipe"):
        words += ["--out", str(folder / "out.npy")]
    result = run(*words, code=code)
    said = result.stderr.splitlines()[-1]
    assert not field or said.startswith(f"mri-design: {field}"), said
    assert {path.name for path in folder.rglob("[!.]*")} <= {"mine.toml"}
    return said


@pytest.mark.parametrize(("command", "near"), table(UNKNOWN))
def test_unknown_names_are_answered_with_the_nearest(run: Run, tmp_path: Path, command: str, near: str) -> None:
    said = refused(run, tmp_path, command, (2, 3), "")
    assert said.count("?") == bool(near) and near in said
    assert "unknown" not in said or said.startswith("mri-design: -")


@pytest.mark.parametrize(("command", "option"), table(WRONG_WORDS))
def test_wrong_words_end_with_2(run: Run, tmp_path: Path, command: str, option: str) -> None:
    refused(run, tmp_path, command, 2, option)


@pytest.mark.parametrize(("command", "name"), [("export designed", "OUT"), ("recon scan.npz", "--out")])
def test_a_missing_argument_is_named_as_the_help_has_it(run: Run, command: str, name: str) -> None:
    assert run(*command.split(), code=2).stderr.startswith(f"mri-design: {name} ")


@pytest.mark.parametrize("command", [command for command, _ in table(BAD_INPUT)])
def test_bad_input_ends_with_3(run: Run, tmp_path: Path, command: str) -> None:
    refused(run, tmp_path, command, 3, "")


@pytest.mark.parametrize(("command", "recipe", "code", "field"), RECIPES)
def test_what_is_wrong_in_a_recipe_is_named_by_its_setting(
    run: Run, tmp_path: Path, command: str, recipe: str, code: int, field: str
) -> None:
    (tmp_path / "mine.toml").write_text(f"{recipe}\n")
    verb, *options = command.split()
    words = ("scan.npz", "--lines", "8", "--recipe", str(tmp_path / "mine.toml"), *options)
    refused(run, tmp_path, " ".join([verb, *words]), code, field)


def test_wrong_words_come_before_whose_folder_it_is(run: Run, designed: Designed) -> None:
    for words in (("--lines", 25), ("--lines", 8, "--slice", 3), ("--until-error", "nan")):
        result = run("design", "scan.npz", *words, "--out", designed[0], code=2)
        assert words[-2] in result.stderr
