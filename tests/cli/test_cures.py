"""Inputs and outputs that are something else than a file or a folder: what is wrong, and what to do about it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("folder", ["got a folder", "Name a file in it."]),
        ("empty.npy", ["got an empty file", "Copy or download it again"]),
        ("nowhere.npy", ["got No such file or directory", "Look at the spelling and the folder."]),
    ],
)
@pytest.mark.parametrize("verb", ["recon", "design", "compare", "info --maps"])
def test_what_is_no_file_of_data_is_refused_with_a_cure(
    run: Run, tmp_path: Path, verb: str, source: str, words: list[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.npy").touch()
    path, out = tmp_path / source, tmp_path / "out"
    more = {"recon": [], "design": ["--lines", "8"], "compare": ["--lines", "8"]}
    if verb == "info --maps":
        told = run("info", "scan.npz", "--maps", path)
    else:
        told = run(verb, path, *more[verb], "--out", out)
    assert told.exit_code in (2, 3), told.output
    assert all(word in " ".join(told.output.split()) for word in words), told.output
    assert not out.exists()


def test_an_output_folder_that_is_a_file_is_named_as_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    for out in (tmp_path / "taken", tmp_path / "taken" / "deeper"):
        told = run("recon", "scan.npz", "--out", out)
        text = " ".join(told.output.split())
        assert told.exit_code == 3 and "a file in the place of a folder" in text and "Give another --out." in text
    assert (tmp_path / "taken").read_text() == "mine"
