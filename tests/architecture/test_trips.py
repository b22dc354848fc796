"""How many files a newcomer reads between a verb and the conjugate gradients, and that CONTRIBUTING names them.

The trips are those of real calls: small runs stop at every solve and look up the stack.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

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
"""What the verb is for: a design also reconstructs in the end, which is a shorter trip."""
MOST = {"design": 9, "recon": 7}
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


@pytest.mark.parametrize("verb", WORDS)
def test_the_trip_is_told_file_by_file(verb, trips):
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = re.search(rf"\*\*How a `mri-design {verb}` call travels\.\*\*(.*?)\n\n", text, re.DOTALL)
    assert told is not None
    named = re.findall(r"`([^`]+)\.py`", told[1])
    files = shortest(verb, trips)
    assert [name for name in named if name in files] == list(files)
