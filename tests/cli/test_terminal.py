import io
import os
import subprocess
import sys

import pytest

from mri_design.cli import start
from mri_design.cli.terminal import progress


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
    with progress(quiet) as watch:
        for done in range(4):
            watch("designing", done, 3)
    assert ("designing" in screen.getvalue()) == shows
    assert (screen.getvalue() == "") != shows
    assert out.getvalue() == ""


def test_a_log_gets_a_line_every_tenth_of_the_way_and_every_half_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr("mri_design.cli.terminal.time.monotonic", lambda: clock[0])
    with progress(False) as watch:
        for done in range(101):
            watch("designing", done, 100)
    assert capsys.readouterr().err.splitlines() == [f"designing: {done} of 100" for done in range(0, 101, 10)]
    with progress(False) as watch:
        for done in range(8):
            clock[0] += 10
            watch("slow", done, 1000)
    assert capsys.readouterr().err.splitlines() == [f"slow: {done} of 1000" for done in (0, 3, 6)]


def test_messages_that_nobody_reads_any_more_go_nowhere_too() -> None:
    """As behind `2>&1 | head -1`: the work goes on to its end with its own exit code."""
    code = (
        "import sys; from mri_design.cli.terminal import output_may_end_early; output_may_end_early()\n"
        "for i in range(100000): print(i, file=sys.stderr if i % 2 else sys.stdout)\n"
        "sys.exit(3)"
    )
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    writer.stdout.readline()
    writer.stdout.close()
    assert writer.wait(60) == 3


def test_an_output_that_is_closed_from_the_beginning_is_no_error() -> None:
    code = (
        "import sys; sys.stdout = None\n"
        "from mri_design.cli.terminal import output_may_end_early; output_may_end_early(); print('lost')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("full", ["stdout", "stderr"])
def test_an_output_on_a_full_disk_is_an_error_once(full: str) -> None:
    code = (
        "import sys; from mri_design.cli.terminal import output_may_end_early; output_may_end_early()\n"
        f"try: print('lost', file=sys.{full})\n"
        f"except OSError: print('lost', file=sys.{full}); sys.exit(1)"
    )
    with open("/dev/full", "w") as disk:
        outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, full: disk}
        done = subprocess.run([sys.executable, "-c", code], check=False, **outputs)
    assert (done.returncode, done.stdout or b"", done.stderr or b"") == (1, b"", b"")


def test_an_interruption_while_the_program_is_loaded_ends_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Loading:
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "mri_design.cli.main", Loading())
    with pytest.raises(SystemExit) as ended:
        start.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "mri-design: interrupted\n"


CODE = (
    "import os, sys\n"
    "sys.argv = ['mri-design', '--version']\n"
    "from mri_design.cli.start import main\n"
    "try: main()\n"
    "except SystemExit: pass\n"
    "import numpy, threadpoolctl\n"
    "most = max(p['num_threads'] for p in threadpoolctl.threadpool_info())\n"
    "print('threads:', most, os.environ.get('OMP_NUM_THREADS'))"
)


@pytest.mark.parametrize(("given", "said"), [({}, "threads: 1 1"), ({"OPENBLAS_NUM_THREADS": "2"}, "None")])
def test_it_calculates_on_one_thread_unless_told_otherwise(given: dict[str, str], said: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")} | given
    found = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1].endswith(said)
