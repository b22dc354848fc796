import io
import sys

import pytest

from mri_design.cli.terminal import Bar, ending, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "quiet", "shows"), [(Terminal, False, True), (Terminal, True, False), (io.StringIO, False, False)]
)
def test_progress_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], quiet: bool, shows: bool
) -> None:
    screen, out = stream(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "stdout", out)
    with progress(quiet) as bar:
        for done in range(4):
            bar.update("designing", done, 3)
    assert ("designing" in screen.getvalue()) == shows
    assert (screen.getvalue() == "") != shows
    assert out.getvalue() == ""


def test_an_invisible_bar_takes_everything() -> None:
    Bar(None).update("designing", 3, 0)


def test_the_exit_code_of_several_runs_is_that_of_the_worst() -> None:
    assert ending("converged", "converged") == 0
    assert ending("converged", "not converged (2 of 3 design steps)") == 4
