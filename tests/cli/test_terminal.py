import io
import subprocess
import sys

import pytest

from mri_design.cli.terminal import ending, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "quiet", "shows"),
    [(Terminal, False, True), (Terminal, True, False), (io.StringIO, False, True), (io.StringIO, True, False)],
)
def test_progress_is_for_those_who_want_it(
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


def test_a_log_gets_a_line_every_tenth_of_the_way_and_every_half_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr("mri_design.cli.terminal.time.monotonic", lambda: clock[0])
    with progress(False) as bar:
        for done in range(101):
            bar.update("designing", done, 100)
    assert capsys.readouterr().err.splitlines() == [f"designing: {done} of 100" for done in range(0, 101, 10)]
    with progress(False) as bar:
        for done in range(8):
            clock[0] += 10
            bar.update("slow", done, 1000)
    assert capsys.readouterr().err.splitlines() == [f"slow: {done} of 1000" for done in (0, 3, 6)]
    with progress(False) as bar:
        bar.update("empty", 0, 0)
    assert capsys.readouterr().err == "empty: 0 of 0\n"


def test_output_that_nobody_reads_any_more_goes_nowhere() -> None:
    """As behind `| head -1`: quiet, the work goes on to its end, exit code 0."""
    code = (
        "import sys; from mri_design.cli.terminal import output_may_end_early; output_may_end_early()\n"
        "for i in range(100000): print(i)\n"
        "sys.stderr.write('done')"
    )
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert writer.stdout is not None and writer.stderr is not None
    assert writer.stdout.readline() == "0\n"
    writer.stdout.close()
    assert (writer.stderr.read(), writer.wait(60)) == ("done", 0)
    writer.stderr.close()


def test_the_exit_code_of_several_runs_is_that_of_the_worst() -> None:
    assert ending("converged", "converged") == 0
    assert ending("converged", "not converged (2 of 3 design steps)") == 4
