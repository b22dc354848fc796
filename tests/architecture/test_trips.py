"""How many files a newcomer reads between a verb and the conjugate gradients, and that CONTRIBUTING names them.

The trips are those of real calls: small runs stop at every solve and look up the stack, and a reconstruction of a file
notes every file of the package whose functions it enters.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from typer.testing import CliRunner

from mri_design import load_phantom
from mri_design.cli.main import app
from mri_design.krylov.conjugate_gradients import ConjugateGradients
from tests.undrawn import undrawn

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "mri_design"
RECIPE = """
[simulation]
matrix = 16
[reconstruction]
std_samples = 4
"""
WORDS = {"design": "design phantom:brain --lines 8", "recon": "recon phantom:brain"}
THROUGH = {"design": "experiment/designing", "recon": "experiment/reconstruction"}
"""Module that the trip of the verb passes: a design also reconstructs in the end, which is a shorter trip."""
MOST = {"design": 9, "recon": 8}
"""The first file is the verb's, the last the conjugate gradients'."""


def trip(verb: str) -> tuple[str, ...]:
    """Files of the package on the stack from the verb down, each once, in the order in which they call."""
    found: list[str] = []
    for frame in reversed(inspect.stack(context=0)):
        path = Path(frame.filename)
        if path.is_relative_to(PACKAGE):
            found.append(path.relative_to(PACKAGE).with_suffix("").as_posix())
    return tuple(dict.fromkeys(found[found.index(f"cli/{verb}") :]))


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[tuple[str, ...]]]:
    """Every trip that the small runs make, by verb."""
    folder = tmp_path_factory.mktemp("trips")
    (folder / "recipe.toml").write_text(RECIPE)
    seen: dict[str, set[tuple[str, ...]]] = {}
    iterate = ConjugateGradients._until
    for verb, words in WORDS.items():

        def noting(self: ConjugateGradients, *arguments: object, to: str = verb) -> object:
            seen.setdefault(to, set()).add(trip(to))
            return iterate(self, *arguments)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch, undrawn():
            patch.setattr(ConjugateGradients, "_until", noting)
            out = ["--recipe", str(folder / "recipe.toml"), "--out", str(folder / verb)]
            result = CliRunner().invoke(app, [*words.split(), *out])
        assert result.exit_code in (0, 3), result.output
    return seen


def shortest(verb: str, trips: dict[str, set[tuple[str, ...]]]) -> tuple[str, ...]:
    """The trip with the fewest files among those that do what the verb is for."""
    return min((one for one in trips[verb] if THROUGH[verb] in one), key=lambda one: (len(one), one))


@pytest.mark.parametrize("verb", WORDS)
def test_a_verb_is_few_files_from_the_conjugate_gradients(verb, trips):
    files = shortest(verb, trips)
    assert files[0] == f"cli/{verb}" and files[-1] == "krylov/conjugate_gradients"
    assert len(files) <= MOST[verb], files


def told(verb: str) -> list[str]:
    """Files that CONTRIBUTING's paragraph on a verb names, in its order."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paragraph = re.search(rf"\*\*How a `mri-design {verb}` call travels\.\*\*(.*?)\n\n", text, re.DOTALL)
    assert paragraph is not None
    return re.findall(r"`([^`]+)\.py`", paragraph[1])


@pytest.mark.parametrize("verb", WORDS)
def test_the_trip_is_told_file_by_file(verb, trips):
    files = shortest(verb, trips)
    assert [name for name in told(verb) if name in files] == list(files)


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Files of the package that a reconstruction of a file with several coils enters, whenever the file changes."""
    folder = tmp_path_factory.mktemp("walk")
    scan = load_phantom("brain", shape=16, n_coils=2, rng=np.random.default_rng(0))
    np.savez(folder / "scan.npz", kspace=scan.kspace[0])
    (folder / "recipe.toml").write_text(RECIPE + "[coils]\ncalibration_lines = 8\n")
    entered: list[str] = []
    root = f"{PACKAGE}{os.sep}"

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        is_call = (
            event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED
        )  # bodies of classes have no such flag
        if is_call and name.startswith(root) and entered[-1:] != [name]:
            entered.append(name)

    words = ["recon", "scan.npz", "--recipe", "recipe.toml", "--out", "run"]
    with undrawn(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        sys.setprofile(note)
        result = CliRunner().invoke(app, words)
        sys.setprofile(None)
    assert result.exit_code in (0, 4), result.output
    return [Path(name).relative_to(PACKAGE).with_suffix("").as_posix() for name in entered]


def test_the_trip_from_a_file_to_an_image_is_told_in_its_order(walk):
    rest = iter(walk)
    assert not [name for name in told("recon") if name not in rest]
