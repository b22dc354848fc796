"""Small sound files that are no scans: what runs leave, sequences, labels, scanners' limits, streams."""

from __future__ import annotations

import json
from pathlib import Path

import ismrmrd
import numpy as np
from ismrmrd.serialization import ProtocolSerializer
from typer.testing import CliRunner

from mri_design.cli.main import app
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.writing.mrd import mrd_skeleton_bytes
from mri_design.sequences.orders import LineOrder
from mri_design.sequences.pulseq_file import pulseq_file
from mri_design.sequences.scanner import load_scanner
from mri_design.sequences.settings import SequenceSettings

NY, NX = 12, 16
PLAIN = '[simulation]\nmatrix = 16\n[reconstruction]\nmethod = "zero-filled"\n'
STREAM_HEADER = """<?xml version="1.0"?><ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">
<experimentalConditions><H1resonanceFrequency_Hz>127000000</H1resonanceFrequency_Hz></experimentalConditions><encoding>
<encodedSpace><matrixSize><x>16</x><y>12</y><z>1</z></matrixSize>
<fieldOfView_mm><x>200</x><y>200</y><z>5</z></fieldOfView_mm></encodedSpace>
<reconSpace><matrixSize><x>16</x><y>12</y><z>1</z></matrixSize>
<fieldOfView_mm><x>200</x><y>200</y><z>5</z></fieldOfView_mm></reconSpace>
<encodingLimits/><trajectory>cartesian</trajectory></encoding></ismrmrdHeader>"""


def _design(folder: Path, *words: str) -> Path:
    """The folder of a small design, made by the command line; no figure is drawn, since no reader looks at one."""
    (folder / "plain.toml").write_text(PLAIN)
    places = ("--recipe", str(folder / "plain.toml"), "--out", str(folder / "run"))
    done = CliRunner().invoke(app, ["design", "phantom:brain", *words, *places, "--no-report"])
    if done.exit_code:
        raise RuntimeError(done.output)
    return folder / "run"


def run_folder(folder: Path) -> Path:
    """The manifest of a run, as `info` reads it."""
    return _design(folder, "--lines", "6") / "manifest.json"


def stored_run(folder: Path) -> Path:
    """The run folder as `export` reads it."""
    return run_folder(folder)


def plane_order(folder: Path) -> Path:
    """The samples of a design over a plane, as `export` reads them."""
    return _design(folder, "--encoding", "plane", "--samples", "40", "--strategy", "vd-polynomial") / "samples.csv"


def shot_order(folder: Path) -> Path:
    """The trajectory of a design over spokes, as `export` reads it."""
    return _design(folder, "--encoding", "radial", "--shots", "6", "--strategy", "golden") / "trajectory.npz"


def sequence(folder: Path) -> Path:
    """A Pulseq sequence, as `info` reads it."""
    settings = SequenceSettings(
        kind="gre",
        field_of_view=(0.24, 0.2),
        samples=NX,
        echo_time=0.008,
        repetition_time=0.025,
        flip_angle=15.0,
        bandwidth=400.0,
    )
    made = pulseq_file(LineOrder.of_lines((6, 3, 8, 1), NY), settings, load_scanner("generic"))
    (folder / "lines.seq").write_bytes(made.content)
    return folder / "lines.seq"


def mrd_skeleton(folder: Path) -> Path:
    """Labels of lines without samples."""
    content = mrd_skeleton_bytes(((6, 3), (1, 8)), (NY, NX), SliceGeometry((1.5, 2.0), 5.0))
    (folder / "labels.h5").write_bytes(content)
    return folder / "labels.h5"


def scanner(folder: Path) -> Path:
    """The limits of a scanner."""
    limits = {"max_gradient": 0.03, "max_slew": 120.0, "max_b1": 2e-5}
    times = {"rf_dead_time": 1e-4, "rf_ringdown_time": 3e-5, "adc_dead_time": 1e-5}
    lines = [f"{name} = {value}" for name, value in (limits | times).items()]
    (folder / "mine.toml").write_text("\n".join(["[mine]", *lines, ""]))
    return folder / "mine.toml"


def _readouts() -> np.ndarray:
    real, imaginary = np.random.default_rng(6).standard_normal((2, NY, NX))
    return (real + 1j * imaginary).astype(np.complex64)


def json_stream(folder: Path) -> Path:
    """Readouts as lines of JSON, as `adapt` reads them."""
    said: list[dict[str, object]] = [{"lines": NY, "samples": NX, "noise_variance": 0.5}]
    for line, samples in enumerate(_readouts()):
        said.append({"line": line, "real": samples.real.tolist(), "imag": samples.imag.tolist()})
    (folder / "stream.jsonl").write_text("".join(json.dumps(message) + "\n" for message in [*said, {"close": True}]))
    return folder / "stream.jsonl"


def mrd_stream(folder: Path) -> Path:
    """Readouts in the streaming protocol of ISMRMRD."""
    with (folder / "stream.mrd").open("wb") as file:
        out = ProtocolSerializer(file)
        out.serialize(ismrmrd.xsd.CreateFromDocument(STREAM_HEADER))
        for line, samples in enumerate(_readouts()):
            readout = ismrmrd.Acquisition.from_array(samples[np.newaxis], center_sample=NX // 2)
            readout.idx.kspace_encode_step_1 = line
            out.serialize(readout)
        out.close()
    return folder / "stream.mrd"
