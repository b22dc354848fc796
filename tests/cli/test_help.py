"""The help of the verbs, the names that it gives, and what is not loaded for it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mri_design import strategy_names
from mri_design.cli import options
from mri_design.cli.main import HELP, HELP_ALL, VERBS, application
from mri_design.experiment import TRAINING_RULES
from mri_design.experiment.reconstruction import METHODS
from mri_design.kinds import designed_kinds
from mri_design.runs.protocol import RULES
from mri_design.scan.simulation import PHANTOMS
from mri_design.sequences import shipped_scanners
from tests.cli.conftest import REPOSITORY
from tests.cli.folders import Run


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_help_and_an_example(run: Run, verb: str) -> None:
    for flag in HELP, HELP_ALL:
        text = run(verb, flag, code=0).output
        assert f"mri-design {verb}" in text.partition("Example: ")[2] and "{" not in text
    assert verb in run(HELP, code=0).output


def test_the_names_in_the_help_are_the_real_ones(run: Run) -> None:
    assert tuple(PHANTOMS) == options.PHANTOMS
    texts = {verb: " ".join(run(verb, HELP_ALL).output.replace("│", " ").split()) for verb in VERBS}
    assert all(name in texts["recon"] for name in METHODS)
    assert all(name in texts["export"] for name in shipped_scanners())
    assert all(name in texts["protocol"] for name in RULES)
    every = {name for encoding in designed_kinds() for name in strategy_names(encoding)} - set(TRAINING_RULES)
    assert len(every) > 20 and all(name in texts["design"] for name in every)
    assert not any(name in texts["design"] for name in TRAINING_RULES)  # which only protocol and compare take


@pytest.mark.parametrize("verb", VERBS)
def test_the_short_help_explains_some_ten_options_and_the_long_one_all(
    run: Run, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")  # an option a line
    texts = [run(verb, flag).output for flag in (HELP, HELP_ALL)]
    short, long = (set(re.findall(r"^ +(?:\w+, )?(--[\w-]+)", text, re.M)) for text in texts)
    options = {one.name for one in application()[verb].assemble_argument_collection() if one.show and one.index is None}
    assert short <= long and len(short) <= 13 and options <= long
    assert all(name in texts[0] for name in options)  # those that are left out by their name


def test_a_design_has_few_options() -> None:
    arguments = application()["design"].assemble_argument_collection()
    assert len([one for one in arguments if one.show]) + 1 <= 36  # and --help; six are of regions, one is a dry run


LOADED = "import mri_design.cli.main"
VERB = "sys.argv = ['mri-design', {words}]; from mri_design.cli.main import main; main()"
SMALL = '[input]\nmatrix = 16\n[reconstruction]\nmethod = "mean"\n'


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        ("", "numpy scipy matplotlib skimage msgspec h5py"),
        ("--help", "numpy mri_design.experiment.recipe"),
        ("info small.npy", "numba matplotlib skimage scipy.sparse rich"),
        (
            "design phantom:brain --lines 10 --recipe small.toml --out run --no-report",
            "matplotlib dask scipy.sparse.linalg scipy.optimize",
        ),
    ],
)
def test_a_verb_does_not_wait_for_what_it_does_not_use(tmp_path: Path, words: str, heavy: str) -> None:
    np.save(tmp_path / "small.npy", np.ones((16, 16), dtype=np.complex64))
    (tmp_path / "small.toml").write_text(SMALL)
    begin = LOADED if not words else VERB.format(words=repr(words.split())[1:-1])
    loaded = f"print('loaded:', set({heavy.split()}) & set(sys.modules))"
    code = f"import atexit, sys; atexit.register(lambda: {loaded}); {begin}"
    here = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, env=here
    )
    assert done.returncode in (0, 4), done.stderr
    assert done.stdout.endswith("loaded: set()\n")


def test_a_shell_completes_verbs_and_options(tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(application().generate_completion(shell="bash"))
    asked = f"source {script}; COMP_WORDS=(mri-design recon --dra); COMP_CWORD=2; _mri_design; echo ${{COMPREPLY[@]}}"
    assert subprocess.check_output(["bash", "-c", asked], text=True).split() == ["--draws"]


def test_options_are_taken_where_python_leaves_docstrings_out() -> None:
    words = ("-OO", "-m", "mri_design.cli.start", "design", "--help")
    assert b"--lines" in subprocess.check_output([sys.executable, *words], cwd=REPOSITORY)
