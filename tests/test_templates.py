"""Templates are compiled once where what is compiled can be kept."""

import sys
from pathlib import Path
from typing import NoReturn

import pytest

from mri_design.templates import environment


@pytest.mark.parametrize("kept", [True, False])
def test_what_is_compiled_is_kept_beside_the_modules_of_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    package = tmp_path / f"words_{kept}"
    (package / "pages").mkdir(parents=True)
    (package / "__init__.py").touch()
    if kept:
        (package / "__pycache__").mkdir()
    (package / "pages/a.txt").write_text("{{ one }}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", not kept)
    for text in ("{{ one }}", "{{ one }}", "{{ one }} again"):
        (package / "pages/a.txt").write_text(text)
        found = environment(package.name, "pages").get_template("a.txt").render(one=1)
        assert found == text.replace("{{ one }}", "1")
    assert bool(list(package.rglob("__jinja2*"))) == kept
    for one in package.rglob("__jinja2*"):  # damaged
        one.write_bytes(one.read_bytes()[:25])
    assert environment(package.name, "pages").get_template("a.txt").render(one=1) == "1 again"
    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    (package / "pages/a.txt").write_text("new {{ one }}")
    assert environment(package.name, "pages").get_template("a.txt").render(one=1) == "new 1"


def full(*_: object, **__: object) -> NoReturn:
    raise OSError("No space left on device")
