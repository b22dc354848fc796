"""`--no-report`: the same results without figures and report, for batch work."""

from pathlib import Path

import pytest

from tests.cli.folders import Run, files

FAST = ("--recipe", "fast.toml")
COMMANDS = {
    "design": ("design", "scan.npz", "--lines", 10, "--start", 6),
    "compare": ("compare", "scan.npz", "--lines", "8,10", "--strategies", "low-pass,random", "--seeds", 2),
}


def results(folder: Path) -> dict[str, bytes]:
    left_out = (".mri-design.json", "report.html")
    return {k: v for k, v in files(folder).items() if k not in left_out and not k.startswith("figures")}


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_results_are_the_same_and_nothing_is_drawn(
    run: Run, tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (*COMMANDS[verb], *(("--jobs", 1) if verb == "compare" else ()))
    command = (*command, *FAST)
    run(*command, "--out", tmp_path / "a", code=(0, 4))
    with monkeypatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.__init__", None)  # whoever draws would stop here
        told = run(*command, "--no-report", "--out", tmp_path / "b")
    assert told.exit_code in (0, 4) and f"{tmp_path / 'b'}" in [
        line.rpartition(": ")[2] for line in told.output.splitlines()
    ]
    assert not (tmp_path / "b" / "report.html").exists() and not (tmp_path / "b" / "figures").exists()
    assert (tmp_path / "b" / "manifest.json").exists()
    assert results(tmp_path / "a") == results(tmp_path / "b") != {}


def test_figures_are_written_as_png_where_that_is_asked_for(run: Run, tmp_path: Path) -> None:
    command = ("recon", "scan.npz", *FAST, "--png")
    run(*command, "--out", tmp_path / "a", code=0)
    names = sorted(path.name for path in (tmp_path / "a" / "figures").iterdir())
    assert names == [f"{name}.{kind}" for name in ("errors", "images", "mask") for kind in ("png", "svg")]
    run(*command, "--no-report", "--out", tmp_path / "b", code=2)
    assert not (tmp_path / "b").exists()
