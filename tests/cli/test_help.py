"""The help of the verbs, the names that it gives, and what is not loaded for it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mri_design import strategy_names
from mri_design.cli import files, flags, study
from mri_design.cli.main import VERBS as FUNCTIONS
from mri_design.experiment import TRAINING_RULES, DesignRecipe, ReconstructionRecipe
from mri_design.experiment.extent import ORDERS
from mri_design.experiment.reconstruction import METHODS
from mri_design.kinds import designed_kinds
from mri_design.runs.export import ENDINGS as CONVERTED
from mri_design.runs.export import FORMATS as EXPORTED
from mri_design.runs.protocol import RULES
from mri_design.scan.simulation import phantom_names
from mri_design.sequences import shipped_scanners
from mri_design.sequences.scanner import KINDS
from tests.cli.conftest import REPOSITORY
from tests.cli.folders import Run

VERBS = [function.__name__ for function in FUNCTIONS]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_help_with_the_options_that_stand_first(run: Run, verb: str) -> None:
    text = run(verb, "--help", code=0).output
    assert "<bool>" not in text and "<strategies" not in text
    assert all(f"{name}" in text for name in flags.MOST_USED.get(verb, "").split())


def test_the_names_in_the_help_are_the_real_ones(run: Run) -> None:
    assert phantom_names() == flags.PHANTOMS
    assert ReconstructionRecipe.declared()["method"].choices == METHODS
    assert tuple(EXPORTED) == files.FORMATS
    assert CONVERTED == files.CONVERTED
    assert all(name in run("export", "--help").output for name in shipped_scanners())
    assert files.SEQUENCES == KINDS
    assert study.RULES == RULES
    assert DesignRecipe.declared()["order"].choices == ORDERS
    text = " ".join(run("design", "--help").output.replace("│", " ").split())
    every = {name for encoding in designed_kinds() for name in strategy_names(encoding)} - set(TRAINING_RULES)
    assert len(every) > 20 and all(name in text for name in every)
    assert not any(name in text for name in TRAINING_RULES)  # which only compare takes
    assert all(verb in run("--help").output for verb in VERBS)


HELP = "import mri_design.cli.main"
VERB = "sys.argv = ['mri-design', {words}]; from mri_design.cli.main import main; main()"
SMALL = '[input]\nmatrix = 16\n[reconstruction]\nmethod = "mean"\n'


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        ("", "numpy scipy matplotlib skimage pydantic h5py"),
        ("info small.npy", "numba matplotlib sigpy pyfftw skimage scipy.sparse"),
        (
            "design phantom:brain --lines 10 --recipe small.toml --out run --no-report",
            "matplotlib pyfftw dask scipy.sparse.linalg scipy.optimize",
        ),
    ],
)
def test_a_verb_does_not_wait_for_what_it_does_not_use(tmp_path: Path, words: str, heavy: str) -> None:
    np.save(tmp_path / "small.npy", np.ones((16, 16), dtype=np.complex64))
    (tmp_path / "small.toml").write_text(SMALL)
    begin = HELP if not words else VERB.format(words=repr(words.split())[1:-1])
    loaded = f"print('loaded:', set({heavy.split()}) & set(sys.modules))"
    code = f"import atexit, sys; atexit.register(lambda: {loaded}); {begin}"
    here = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, env=here
    )
    assert done.returncode in (0, 4), done.stderr
    assert done.stdout.endswith("loaded: set()\n")


@pytest.mark.parametrize(
    "asked",
    [
        {"_MRI_DESIGN_COMPLETE": "complete_bash", "COMP_WORDS": "mri-design recon --dr", "COMP_CWORD": "2"},
        {"_MRI_DESIGN_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "mri-design recon --dr"},
    ],
)
def test_a_shell_completes_the_options_of_a_verb(asked: dict[str, str]) -> None:
    here, code = os.environ | {"PYTHONPATH": str(REPOSITORY)}, VERB.format(words="")
    assert b"--draws" in subprocess.check_output([sys.executable, "-c", f"import sys; {code}"], env=here | asked)


def test_options_are_the_same_where_python_leaves_docstrings_out() -> None:
    words = ("-m", "mri_design.cli.start", "design", "--help")
    helps = [subprocess.check_output([sys.executable, *flags, *words], cwd=REPOSITORY) for flags in ((), ("-OO",))]
    assert helps[0] == helps[1] and b"--lines" in helps[0]
