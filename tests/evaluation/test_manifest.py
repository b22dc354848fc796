"""The manifest: reproducible text without machine paths."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError, Status
from mri_design.evaluation.manifest import InputFile, Manifest, installed_versions, manifest_text


def of_command(*words: str, **settings: str) -> dict:
    """The manifest of a run with these arguments, as it is read back."""
    made = Manifest(command=words, seed=None, inputs=[], settings=settings, wall_seconds=0.0, status="", lines=[])
    return json.loads(manifest_text(made))


@pytest.fixture
def manifest(tmp_path) -> Manifest:
    scan = tmp_path / "scan.h5"
    scan.write_bytes(b"scan")
    return Manifest(
        command=["/opt/x/mri-design", "design", str(scan), "--out=../runs/brain-01/", "--lines", "64"],
        seed=7,
        inputs=[InputFile.of(scan)],
        settings={
            "tau": np.float32(0.5),
            "scan": scan,
            "maps": f"{tmp_path}/maps.npy",
            "status": Status.STALLED,
        },
        wall_seconds=1.23456,
        status=Status.CONVERGED.value,
        lines=np.array([64, 60]),
    )


def test_inputs_are_named_by_content(manifest):
    assert manifest.inputs[0] == InputFile("scan.h5", hashlib.sha256(b"scan").hexdigest())


def test_no_folder_of_the_machine_is_kept(manifest, tmp_path):
    text = manifest_text(manifest)
    assert str(tmp_path) not in text and "/opt" not in text and "runs" not in text
    plain = json.loads(text)
    assert plain["command"] == ["mri-design", "design", "scan.h5", "--out=brain-01", "--lines", "64"]
    assert plain["settings"]["scan"] == "scan.h5"
    assert plain["settings"]["maps"] == "maps.npy"


@pytest.mark.parametrize("argument", ["C:\\Users\\me\\scan.h5", "--in=C:\\me\\scan.h5", "~/me/scan.h5"])
def test_foreign_paths_lose_their_folders_too(argument):
    made = of_command(argument, scan=argument.removeprefix("--in="))
    assert made["settings"]["scan"] == "scan.h5"
    assert made["command"] == [argument[: argument.find("=") + 1] + "scan.h5"]


@pytest.mark.parametrize("flag", ["", "--strategies="])
def test_strategies_from_files_keep_their_names(flag):
    made = of_command(f"{flag}random,trained:/a/b/c.npz,calibrated:../d.npz")
    assert made["command"] == [f"{flag}random,trained:c.npz,calibrated:d.npz"]


def test_values_become_plain_and_keys_sorted(manifest):
    plain = json.loads(manifest_text(manifest))
    assert list(plain) == sorted(plain)
    assert plain["lines"] == [64, 60]
    assert plain["settings"]["tau"] == 0.5
    assert plain["settings"]["status"] == Status.STALLED.value
    assert plain["wall_seconds"] == 1.235
    assert plain["seed"] == 7


def test_key_order_of_the_settings_does_not_matter():
    assert manifest_text({"b": 1, "a": {"d": 1, "c": 2}}) == manifest_text({"a": {"c": 2, "d": 1}, "b": 1})


def test_numbers_json_lacks_become_text():
    assert json.loads(manifest_text({"a": float("nan"), "b": np.array([np.inf])})) == {
        "a": "nan",
        "b": ["inf"],
    }


def test_a_value_without_a_plain_form_is_refused():
    with pytest.raises(InputError, match="object"):
        manifest_text({"a": object()})


def test_an_unreadable_input_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gone\.h5"):
        InputFile.of(Path(tmp_path / "gone.h5"))


def test_every_package_that_computes_or_checks_has_its_version():
    known = {"numpy", "scipy", "pyfftw", "h5py", "ismrmrd", "sigpy", "jinja2", "typer"}
    assert known <= set(installed_versions())


def test_versions_name_what_is_absent():
    versions = installed_versions(["numpy", "no-such-package-here"])
    assert versions["numpy"] == np.__version__
    assert versions["no-such-package-here"] == "not installed"
    assert versions["python"].startswith("3.")
