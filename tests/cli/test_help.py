import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest

from mri_design import strategy_names
from mri_design.cli import files, flags, sequence_flags, study
from mri_design.design.echo_trains import ORDERS
from mri_design.experiment.recipe import DesignRecipe, ReconstructionRecipe
from mri_design.experiment.reconstruction import METHODS
from mri_design.experiment.strategies import TRAINING_RULES
from mri_design.kinds import designed_kinds
from mri_design.runs.convert import ENDINGS as CONVERTED
from mri_design.runs.export import ENDINGS
from mri_design.runs.train import RULES
from mri_design.scan.simulation.phantoms import phantom_names
from mri_design.sequences.scanner import shipped_scanners
from mri_design.sequences.settings import KINDS
from tests.cli.folders import Run

VERBS = [
    "demo",
    "info",
    "status",
    "design",
    "adapt",
    "recon",
    "compare",
    "protocol",
    "train",
    "export",
    "mask",
    "convert",
]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_s_help_ends_with_an_example(run: Run, verb: str) -> None:
    result = run(verb, "--help", code=0)
    assert f"Example: mri-design {verb}" in result.output


def test_the_first_help_names_all_verbs_and_exit_codes(run: Run) -> None:
    text = run("--help").output
    assert all(verb in text for verb in VERBS)
    assert "Exit codes: 0 done, 2 wrong usage, 3 bad input, 4 finished but not converged" in text


def test_the_names_in_the_help_are_the_real_ones() -> None:
    assert phantom_names() == flags.PHANTOMS
    assert ReconstructionRecipe.kinds()["method"].choices == METHODS
    assert tuple(ENDINGS) == files.FORMATS
    assert CONVERTED == files.CONVERTED
    assert shipped_scanners() == sequence_flags.SCANNERS
    assert sequence_flags.SEQUENCES == KINDS
    assert study.RULES == RULES
    assert DesignRecipe.kinds()["order"].choices == ORDERS


def test_the_help_names_every_strategy_that_is_registered(run: Run) -> None:
    text = " ".join(run("design", "--help").output.replace("│", " ").split())
    every = {name for encoding in designed_kinds() for name in strategy_names(encoding)} - set(TRAINING_RULES)
    assert len(every) > 20 and all(name in text for name in every) and "<strategies" not in text


@pytest.mark.parametrize(("verb", "offered"), [("design", False), ("compare", True)])
def test_rules_that_learn_from_training_scans_are_offered_where_they_are_taken(
    run: Run, tmp_path: Path, verb: str, offered: bool
) -> None:
    text = " ".join(run(verb, "--help").output.split())
    assert all((name in text) is offered for name in TRAINING_RULES)
    assert "oracle-hole" in text
    if not offered:
        words = ("--encoding", "plane", "--samples", 9, "--strategy", *TRAINING_RULES)
        run(verb, "phantom:brain", *words, "--out", tmp_path / "x", code=2)


def test_help_keeps_what_stands_in_brackets(run: Run) -> None:
    assert "the strategy's, or the recipe's]" in " ".join(run("design", "--help").output.replace("│", " ").split())


def test_help_does_not_wait_for_the_numerics() -> None:
    """A handful of such imports is the difference between half a second and four."""
    heavy = {"numpy", "scipy", "matplotlib", "skimage", "pydantic", "h5py"}
    code = f"import mri_design.cli.main, sys; sys.exit(bool({heavy} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_info_of_a_small_file_loads_neither_compiler_nor_figures(tmp_path: Path) -> None:
    np.save(tmp_path / "small.npy", np.ones((16, 16), dtype=np.complex64))
    code = (
        "import atexit, sys\n"
        "heavy = {'numba', 'matplotlib', 'sigpy', 'jinja2', 'pyfftw', 'skimage', 'scipy.sparse', 'mri_design.model'}\n"
        "atexit.register(lambda: print('loaded:', heavy & set(sys.modules)))\n"
        f"sys.argv = ['mri-design', 'info', {str(tmp_path / 'small.npy')!r}]\n"
        "from mri_design.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("loaded: set()\n")


def test_a_run_without_a_report_loads_nothing_that_only_reports_or_few_recipes_use(tmp_path: Path) -> None:
    recipe = tmp_path / "small.toml"
    recipe.write_text('[simulation]\nmatrix = 16\n[reconstruction]\nmethod = "mean"\nstd_samples = 4\n')
    code = (
        "import atexit, sys\n"
        "heavy = {'matplotlib', 'jinja2', 'pyfftw', 'dask', 'scipy.sparse.linalg', 'scipy.optimize'}\n"
        "atexit.register(lambda: print('loaded:', heavy & set(sys.modules)))\n"
        f"words = ['--recipe', {str(recipe)!r}, '--out', {str(tmp_path / 'run')!r}, '--no-report']\n"
        "sys.argv = ['mri-design', 'design', 'phantom:brain', '--lines', '10', *words]\n"
        "from mri_design.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 4), done.stderr
    assert done.stdout.endswith("loaded: set()\n")


def test_the_version_is_the_installed_one(run: Run) -> None:
    try:
        installed = version("mri-design")
    except PackageNotFoundError:
        pytest.skip("the package is not installed here")
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"mri-design {installed}\n")


@pytest.mark.parametrize("verb", flags.MOST_USED)
def test_a_long_help_begins_with_the_options_that_are_used_most(run: Run, verb: str) -> None:
    text = run(verb, "--help", code=0).output
    panels = re.findall(r"─ ([A-Z][\w ,().-]*?) ─+╮\n(.*?)╰─", text, re.S)
    names = [title for title, _ in panels if title != "Arguments"]
    assert names[0] == "Options" and "More options" in names
    shown = set(re.findall(r"^│ (?:[* ]  )?(--[a-z-]+)", dict(panels)["Options"], re.M))
    wanted = set(flags.MOST_USED[verb].split())
    assert len(wanted) == 5 and {name.split(",")[0] for name in shown} == wanted


@pytest.mark.parametrize("verb", VERBS)
def test_options_without_a_value_show_no_type(run: Run, verb: str) -> None:
    assert "<bool>" not in run(verb, "--help", code=0).output


def test_the_help_of_all_verbs_shows_no_type_either(run: Run) -> None:
    shown = run("--help", code=0).output
    assert "<bool>" not in shown and "--install-completion" in shown


@pytest.mark.parametrize(("verb", "default"), [("recon", "all"), ("convert", "all"), ("design", "0")])
def test_help_says_which_slices_are_taken_where_none_is_named(run: Run, verb: str, default: str) -> None:
    row = run(verb, "--help", code=0).output.partition("--slices,--slice")[2].partition("│ --")[0]
    assert f"[default: {default}]" in re.sub(r"[\s│]+", " ", row)


@pytest.mark.parametrize("verb", VERBS)
def test_help_says_what_a_default_is_and_not_only_that_a_recipe_has_it(run: Run, verb: str) -> None:
    text = _plain(run(verb, "--help", code=0).output)
    assert "[default: the recipe's" not in text
    if verb == "design":
        for default in ("as-chosen", "lines", "--no-shutter", "calibrated", "the strategy's"):
            assert f"[default: {default}, or the recipe's]" in text


def test_the_help_of_mask_speaks_of_no_scan_and_no_run(run: Run) -> None:
    """Its sequence is described by options that export has, too, where a scan and a run have a say."""
    assert not re.search(r"\b(scan's|run|run's|inference)\b", _plain(run("mask", "--help", code=0).output))
    assert "[default: the scan's; 0.010; tse: 0.016]" in _plain(run("export", "--help", code=0).output)


def _plain(text: str) -> str:
    """Help without its frames and ends of lines."""
    return re.sub(r"[\s│╭╮╰╯─]+", " ", text)
