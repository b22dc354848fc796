"""The pages are true: code runs and prints what it says, commands end well, links and options exist."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import socket
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.cli.main import HELP, HELP_ALL, VERBS, application
from tests.command_line import called
from tests.docs.conftest import LINES, SAMPLES
from tests.docs.pages import PAGES, REPOSITORY, blocks, commands
from tests.simulated_scanner import main as simulated_scanner

OTHER_PROGRAMS = ("pip install ", "uvx ", "conda ", "docker ", "bart ", "git clone ")
"""Not run: they need a network or another program. Where they name files, the files must exist."""
FACTOR = 8
"""The pages' scans have this many times as many lines as those of the tests."""
COUNTS = ("--lines", "--start", "--swaps")
"""Options whose value counts lines or names them."""
MANY_IMAGES = ("compare", "protocol")
"""Verbs that reconstruct many times. They are run under the recipe `local`, the others under the default prior."""
NEEDED = {".nii.gz": "nibabel", ".dcm": "pydicom", ".seq": "pypulseq"}
"""Packages of the extra `export`, by the format that needs them; where one is missing, nobody runs the command."""
NEEDED_BY_PAGE = {"beyond-lines": "finufft", "quantitative-maps": "nibabel"}
"""Page to a package that not every machine has."""
OPTIONS = {
    name: {option for one in application()[name].assemble_argument_collection() for option in one.names}
    | {HELP, HELP_ALL}
    for name in VERBS
}
"""Options of every verb."""
TARGETS = set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.M))


def _runs_verbs(page: Path) -> bool:
    return any("mri-design " in block.text for block in blocks(page) if block.language == "sh")


def _smaller(command: str) -> list[str]:
    """The command for scans of an eighth of the lines, with a quick recipe where it names none, in one process.

    Reports take half of the time, and have tests of their own.
    """
    words = command.split()[1:]
    counts = {*COUNTS, "--slice", "--slices"} if "phantom:head-3d" in words else COUNTS  # planes of a volume
    for place, word in enumerate(words[:-1]):
        if word in counts:
            words[place + 1] = re.sub(r"\d+", lambda number: str(int(number[0]) // FACTOR), words[place + 1])
        if word == "-s" and words[place + 1].startswith(("constraints.forbid", "constraints.require")):
            words[place + 1] = re.sub(r"\d+", lambda number: str(int(number[0]) // FACTOR), words[place + 1])
    if "--recipe" in words:
        assert "phantom:" not in command, "a phantom with a recipe of its own would run at its full size"
    elif "--recipe" in OPTIONS.get(words[0], ()):
        words += ["--recipe", "small-local.toml" if words[0] in MANY_IMAGES else "small.toml"]
    for option in ("--jobs", "--seeds"):
        learned = option == "--seeds" and "--rule" in words  # an order is learned without them
        if option in OPTIONS.get(words[0], ()) and option not in words and not learned:
            words += [option, "1"]
    if "--seeds" in words:
        words[words.index("--seeds") + 1] = "1"
    if "--no-report" in OPTIONS.get(words[0], ()) and not {"--png", "--no-report"} & {*words}:
        words.append("--no-report")
    return words


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if _runs_verbs(page) else []) for page in PAGES]
)
def test_everything_on_the_page_runs(page: Path, desk: Path) -> None:
    if page.stem in NEEDED_BY_PAGE:
        pytest.importorskip(NEEDED_BY_PAGE[page.stem])
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python":
            _run_python(block.text, block.printed, names)
        elif block.language == "toml":
            _check_recipe(block.text, desk / (block.title or "unnamed.toml"))
        elif block.language == "sh":
            for command in commands(block):
                _run_command(command)
        else:
            assert block.language in ("", "bibtex"), f"a block of {block.language}, which nobody runs"


def _run_python(text: str, printed: str | None, names: dict[str, object]) -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(text, "page", "exec"), names)
    if printed is not None:  # the words, and numbers as far as they are the same on every processor
        number = re.compile(r"\d+(?:\.\d+)?")
        assert number.sub("#", shown.getvalue()) == number.sub("#", printed)
        found, said = ([float(text) for text in number.findall(one)] for one in (shown.getvalue(), printed))
        assert found == pytest.approx(said, rel=0.02)


def _check_recipe(text: str, file: Path) -> None:
    if text.startswith("--8<--"):  # the file that is put in there is a shipped recipe
        assert (REPOSITORY / text.split('"')[1]).is_file()
        return
    file.write_text(text)
    assert md.load_recipe(file) != md.load_recipe(None)


def _run_command(command: str) -> str:
    """What it prints, of a verb."""
    program = command.split()[0]
    if program == "make":
        assert command.split()[1] in TARGETS
    elif command.startswith(OTHER_PROGRAMS):
        assert not set(re.findall(r"[\w./-]+\.(?:yml|lock|txt)", command)) - {
            path.name for path in REPOSITORY.iterdir()
        }
    else:
        assert program == "mri-design", f"nobody runs {command!r}"
        needed = next((package for ending, package in NEEDED.items() if f"{ending} " in f"{command} "), None)
        if needed is not None and find_spec(needed) is None:
            return ""
        if command.split()[1] == "open":  # reports are left out
            (Path(command.split()[2]) / "report.html").touch()
        ended = called(_smaller(command))
        assert ended.exit_code in (0, 4), f"{command}\n{ended.output}"
        said = ("out of reach", "other methods not converged")  # of a small scan, rivals have too few iterations
        assert ended.exit_code == 0 or any(text in ended.output for text in said), f"{command}\n{ended.output}"
        return ended.stdout
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("verb", [name for name in VERBS if name != "demo"])  # which tests/cli runs as it is here
def test_the_example_in_the_help_runs(verb: str, desk: Path) -> None:
    text = " ".join((inspect.getdoc(application()[verb].default_command) or "").split("Example: ")[1].split())
    examples = re.findall(r"mri-design .*?(?=;|$)", text.split(" Parameters ---")[0])
    if not any(f"{verb} " in example and "--out run" in example for example in examples):
        _run_command("mri-design design scan.h5 --lines 64 --out run")  # where an example begins with a run
    for name, rows in {"lesion": 8, "muscle": 16}.items():
        np.save(desk / f"{name}.npy", np.arange(LINES)[:, None] // 4 * np.ones((1, SAMPLES)) == rows // 4)
    for example in examples:
        command, _, kept = example.partition(" > ")
        if port := re.search(r"--listen (\d+)", command):
            with socket.create_server(("127.0.0.1", 0)) as server:
                free = str(server.getsockname()[1])
            command = command.replace(port[1], free)
            threading.Thread(target=simulated_scanner, args=(["coils.npz", free],), daemon=True).start()
        printed = _run_command(command)
        if kept:
            Path(kept).write_text(printed, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_that_are_named_exist(page: Path) -> None:
    known = set().union(*OPTIONS.values()) | {"--version", "--require-hashes"}
    text = page.read_text(encoding="utf-8")
    for code in re.findall(r"`([^`\n]+)`", text):
        named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", code))
        assert named <= known, f"{page.name}: {code}"
    for block in blocks(page):
        for command in commands(block) if block.language == "sh" else ():
            if command.startswith("mri-design") and command.split()[1] in OPTIONS:
                named = {word for word in command.split() if word.startswith("--")}
                assert named <= OPTIONS[command.split()[1]], f"{page.name}: {command}"


def _anchors(file: Path) -> set[str]:
    """Names of a page's headings, as its renderers make them, and those that it gives itself."""
    text = re.sub(r"^```.*?^```$", "", file.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*?)(?: \{ #(\S+) \})?$", text, re.M)
    made = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title, _ in headings}
    return made | {given for _, given in headings if given}


def _links(page: Path) -> Iterator[tuple[str, str]]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", link):
            file, _, anchor = link.partition("#")
            yield file, anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for file, anchor in _links(page):
        if file.startswith("api/"):  # the reference is made when the pages are built
            continue
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{page.name}: {file}"
        if anchor:
            assert anchor in _anchors(target), f"{page.name}: {file}#{anchor}"
