"""Small sound files of every kind that the package reads, scans and others, and damages to them."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path

import h5py
import ismrmrd
import mrd as mrd2
import numpy as np
from ismrmrd.serialization import ProtocolSerializer

from mri_design.cli.main import call
from mri_design.design.fixed import LowPass
from mri_design.design.training import TrainedDesign
from mri_design.experiment.calibration import calibrate
from mri_design.experiment.design import DesignOptions, run_design
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.stored_designs import Checkpoint, save_trained
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.writing import DicomLabels, dicom_bytes, mrd_skeleton_bytes, nifti_bytes
from mri_design.sequences.orders import GridOrder
from mri_design.sequences.pulseq_file import pulseq_file
from mri_design.sequences.scanner import SequenceSettings, load_scanner

_START = 10240  # where the first measurement of such a file begins
_PROTOCOL = """### ASCCONV BEGIN ###
sRXSPEC.alDwellTime[0] = 10000
sKSpace.lBaseResolution = {columns}
sKSpace.lPhaseEncodingLines = {lines}
sKSpace.ucDimension = 0x2
sKSpace.ucTrajectory = 0x1
sSliceArray.asSlice[0].dThickness = 5.0
sSliceArray.asSlice[0].dPhaseFOV = 200.0
sSliceArray.asSlice[0].dReadoutFOV = 200.0
### ASCCONV END ###
<ParamDouble."flReadoutOSFactor"> {{ <Precision> 6 1.0 }}"""
_NOISE, _END = 1 << 25, 1


def siemens_bytes(kspace: np.ndarray, noise: np.ndarray) -> bytes:
    """K-space (coil, ky, kx) behind readouts (readout, coil, sample) of noise alone."""
    lines = kspace.shape[1]
    blocks = [_readout(samples, _NOISE, 0, 0) for samples in noise]
    blocks += [_readout(kspace[:, line], 0, line, lines // 2) for line in range(lines)]
    blocks.append(_header(_END, (0, 0), 0, 0, 352) + bytes(160))
    text = _PROTOCOL.format(columns=kspace.shape[2], lines=lines).encode()
    text = b"MeasYaps\0" + struct.pack("<I", len(text)) + text
    content = struct.pack("<II", 8 + len(text), 1) + text + b"".join(blocks)
    listed = struct.pack("<II", 0, 1) + struct.pack("<IIQQ64s64s", 1, 1, _START, len(content), b"", b"")
    return listed.ljust(_START, b"\0") + content


def _readout(samples: np.ndarray, flags: int, line: int, centre: int) -> bytes:
    rows = np.ascontiguousarray(samples, "<c8")
    stored = b"".join(
        struct.pack("<IiIiIIHHI", 0, 1, 1, 0, 0, 0, n, 0, 0) + row.tobytes() for n, row in enumerate(rows)
    )
    return _header(flags, rows.shape, line, centre, 192 + len(stored)) + stored


def _header(flags: int, shape: tuple[int, ...], line: int, centre: int, length: int) -> bytes:
    coils, samples = shape
    head = struct.pack("<IiIIIHHiiii", length, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
    head += struct.pack("<QHH14H", flags, samples, coils, line, *[0] * 13)
    head += struct.pack("<4HfIHH", 0, 0, samples // 2, 0, 0.0, 0, centre, 0)
    return (head + struct.pack("<7f", 0, 0, 0, 1, 0, 0, 0)).ljust(192, b"\0")


NY, NX = 12, 16
PLAIN = '[input]\nmatrix = 16\n[reconstruction]\nmethod = "zero-filled"\n'
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
    words = ("design", "phantom:brain", *words, *places, "--no-report", "--quiet")
    if code := call(words):
        raise RuntimeError(f"{' '.join(words)}: exit code {code}")
    return folder / "run"


def run_folder(folder: Path) -> Path:
    """The manifest of a run, as `info` reads it."""
    return _design(folder, "--lines", "6") / "manifest.json"


def stored_run(folder: Path) -> Path:
    """What a run leaves to be read again, as `export` and `load_run` read it."""
    return _design(folder, "--lines", "6") / "result.npz"


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
    content, *_ = pulseq_file(GridOrder.in_trains((6, 3, 8, 1), 1, NY), settings, load_scanner("generic"))
    (folder / "lines.seq").write_bytes(content)
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


NY, NX, COILS = 12, 16, 2
RECIPE = '[design]\nstrategy = "calibrated"\nstart = 8\n[inference]\nsamples = 8\nloops = 3\n'
HEADER = """<?xml version="1.0"?><ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">
<experimentalConditions><H1resonanceFrequency_Hz>127000000</H1resonanceFrequency_Hz></experimentalConditions><encoding>
<encodedSpace><matrixSize><x>16</x><y>12</y><z>{partitions}</z></matrixSize>
<fieldOfView_mm><x>200</x><y>200</y><z>5</z></fieldOfView_mm></encodedSpace>
<reconSpace><matrixSize><x>16</x><y>12</y><z>{partitions}</z></matrixSize>
<fieldOfView_mm><x>200</x><y>200</y><z>5</z></fieldOfView_mm></reconSpace>
<encodingLimits/><trajectory>{trajectory}</trajectory></encoding></ismrmrdHeader>"""
PARTITIONS, SPOKES = 4, 6


def samples(*shape: int) -> np.ndarray:
    """Complex numbers, all different, the same whenever asked."""
    real, imaginary = np.random.default_rng(5).standard_normal((2, *shape))
    return (real + 1j * imaginary).astype(np.complex64)


def npy(folder: Path) -> Path:
    """K-space as an array."""
    np.save(folder / "scan.npy", samples(COILS, NY, NX))
    return folder / "scan.npy"


def npz(folder: Path) -> Path:
    """K-space with everything that an archive may hold beside it."""
    maps = samples(COILS, NY, NX)
    arrays = {"kspace": samples(COILS, NY, NX), "coil_maps": maps / np.linalg.norm(maps, axis=0), "noise_variance": 0.5}
    np.savez(folder / "scan.npz", measured=np.ones(NY, bool), reference=samples(NY, NX), **arrays)
    return folder / "scan.npz"


def trajectory(folder: Path) -> Path:
    """Samples along a trajectory."""
    points = np.random.default_rng(1).uniform(-6, 6, (3, 20, 2))
    np.savez_compressed(folder / "scan.npz", kspace=samples(COILS, 3, 20), trajectory=points, matrix=(NY, NX))
    return folder / "scan.npz"


def header(folder: Path) -> Path:
    """The header beside an array."""
    npy(folder)
    text = {
        "dims": ["coil", "k1", "k0"],
        "noise_variance": 0.25,
        "zero_filled_k1_columns": [],
        "shape": [COILS, NY, NX],
    }
    (folder / "scan.json").write_text(json.dumps(text))
    return folder / "scan.json"


def fastmri(folder: Path) -> Path:
    """A fastMRI volume, compressed."""
    with h5py.File(folder / "scan.h5", "w") as file:
        file.create_dataset("kspace", data=samples(2, COILS, NX, NY), chunks=(1, COILS, NX, NY), compression="gzip")
        file["mask"] = np.ones(NY, bool)
        file["ismrmrd_header"] = HEADER.format(partitions=1, trajectory="cartesian")
        file.attrs["acquisition"] = "AXT2"
    return folder / "scan.h5"


def mrd(folder: Path) -> Path:
    """Raw data with noise readouts."""
    kspace = samples(COILS, NY, NX)
    readouts = [_acquisition(kspace[:, line], noise=True) for line in range(2)]
    return _mrd_file(folder, [*readouts, *(_acquisition(kspace[:, line], line) for line in range(NY))])


def mrd_volume(folder: Path) -> Path:
    """Raw data of a volume."""
    kspace = samples(COILS, PARTITIONS, NY, NX)
    places = [(line, partition) for partition in range(PARTITIONS) for line in range(NY)]
    readouts = [_acquisition(kspace[:, partition, line], line, partition) for line, partition in places]
    return _mrd_file(folder, readouts, partitions=PARTITIONS)


def mrd_trajectory(folder: Path) -> Path:
    """Raw data along spokes."""
    kspace, along = samples(COILS, SPOKES, NX), np.arange(NX) - NX // 2
    angles = np.pi * np.arange(SPOKES) / SPOKES
    readouts = [_acquisition(kspace[:, shot], shot, axes=2) for shot in range(SPOKES)]
    for angle, readout in zip(angles, readouts, strict=True):
        readout.traj[:] = np.stack([along * np.cos(angle), NY / NX * along * np.sin(angle)], axis=-1)
    return _mrd_file(folder, readouts, trajectory="radial")


def _acquisition(
    stored: np.ndarray, line: int = 0, partition: int = 0, *, noise: bool = False, axes: int = 0
) -> ismrmrd.Acquisition:
    readout = ismrmrd.Acquisition()
    readout.resize(NX, COILS, axes)
    if noise:
        readout.set_flag(ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
    readout.data[:] = stored
    readout.idx.kspace_encode_step_1, readout.idx.kspace_encode_step_2 = line, partition
    readout.center_sample = NX // 2
    return readout


def _mrd_file(
    folder: Path, readouts: list[ismrmrd.Acquisition], *, partitions: int = 1, trajectory: str = "cartesian"
) -> Path:
    file = ismrmrd.Dataset(str(folder / "scan.h5"), "dataset", mode="w")
    file.write_xml_header(HEADER.format(partitions=partitions, trajectory=trajectory).encode())
    for readout in readouts:
        file.append_acquisition(readout)
    file.close()
    return folder / "scan.h5"


def mrd_v2(folder: Path) -> Path:
    """Raw data as a stream of MRD, version 2."""
    kspace = samples(COILS, NY, NX)
    space = mrd2.EncodingSpaceType(
        matrix_size=mrd2.MatrixSizeType(x=NX, y=NY, z=1), field_of_view_mm=mrd2.FieldOfViewMm(x=200, y=200, z=5)
    )
    encoding = mrd2.EncodingType(
        encoded_space=space,
        recon_space=space,
        encoding_limits=mrd2.EncodingLimitsType(kspace_encoding_step_1=mrd2.LimitType(maximum=NY - 1, center=NY // 2)),
        trajectory=mrd2.Trajectory.CARTESIAN,
    )
    with mrd2.BinaryMrdWriter(str(folder / "scan.mrd")) as stream:
        stream.write_header(mrd2.Header(encoding=[encoding]))
        for line in range(NY):
            head = mrd2.AcquisitionHeader(idx=mrd2.EncodingCounters(kspace_encode_step_1=line))
            readout = mrd2.Acquisition(head=head, data=kspace[:, line], trajectory=np.zeros((0, 0), np.float32))
            stream.write_data([mrd2.StreamItem.Acquisition(readout)])
    return folder / "scan.mrd"


def npy_outline(folder: Path) -> Path:
    """Slices of k-space as an array, as `info` reads them."""
    np.save(folder / "scan.npy", samples(3, COILS, NY, NX))
    return folder / "scan.npy"


def fastmri_outline(folder: Path) -> Path:
    """A fastMRI volume, as `info` reads it."""
    return fastmri(folder)


def mrd_outline(folder: Path) -> Path:
    """Raw data, as `info` reads them."""
    return mrd(folder)


def twix_outline(folder: Path) -> Path:
    """Siemens raw data, as `info` reads them."""
    return twix(folder)


def twix(folder: Path) -> Path:
    """Siemens raw data with noise readouts."""
    (folder / "scan.dat").write_bytes(siemens_bytes(samples(COILS, NY, NX), samples(2, COILS, NX)))
    return folder / "scan.dat"


def _pair(folder: Path) -> None:
    (folder / "scan.hdr").write_text(f"# Dimensions\n{NX} {NY} 1 {COILS}\n")
    (folder / "scan.cfl").write_bytes(samples(NX, NY, 1, COILS).tobytes(order="F"))


def cfl(folder: Path) -> Path:
    """The samples of a BART pair."""
    _pair(folder)
    return folder / "scan.cfl"


def hdr(folder: Path) -> Path:
    """The header of a BART pair."""
    _pair(folder)
    return folder / "scan.hdr"


def nifti(folder: Path) -> Path:
    """An image as NIfTI, compressed."""
    place = SliceGeometry((1.5, 2.0), 5.0)
    (folder / "image.nii.gz").write_bytes(nifti_bytes(np.abs(samples(NY, NX)), place, "fuzzing"))
    return folder / "image.nii.gz"


def dicom(folder: Path) -> Path:
    """An image as DICOM."""
    labels = DicomLabels("magnitude", "fuzzing", "fuzzing")
    (folder / "image.dcm").write_bytes(dicom_bytes(np.abs(samples(NY, NX)), None, labels))
    return folder / "image.dcm"


def maps_file(folder: Path) -> Path:
    """Coil maps."""
    np.savez(folder / "maps.npz", coil_maps=samples(COILS, NY, NX))
    return folder / "maps.npz"


def mask(folder: Path) -> Path:
    """A mask of lines."""
    np.save(folder / "mask.npy", np.arange(NY) % 2 == 0)
    return folder / "mask.npy"


def recipe(folder: Path) -> Path:
    """A recipe."""
    (folder / "recipe.toml").write_text(RECIPE)
    return folder / "recipe.toml"


def trained(folder: Path) -> Path:
    """A design learnt on training scans."""
    profile, errors = np.ones((3, NY)), np.array([0.5, 0.4, 0.3])
    design = TrainedDesign(
        grid=(NY, NX), lines=(6, 5, 7, 4), n_start=2, profile=profile, errors=errors, rule="residual-greedy"
    )
    save_trained(folder / "trained.npz", design)
    return folder / "trained.npz"


def checkpoint(folder: Path) -> Path:
    """The state of a design that was interrupted."""
    scan = KSpaceData(samples(1, 1, NY, NX), np.ones(NY, bool), noise_variance=0.1)
    plain = Recipe()
    model = calibrate(scan, plain, calibration_lines=4, ordinary=True).slice_model(0, **plain.slice_settings)
    options = DesignOptions(checkpoint=Checkpoint(folder / "design.npz", "fuzzing"))
    run_design([model], LowPass(), 6, plain, seed=0, start=4, options=options)
    return folder / "design.npz"


_SCANS = (npy, npz, trajectory, header, fastmri, mrd, mrd_volume, mrd_trajectory, mrd_v2, twix, cfl, hdr, nifti, dicom)
_OUTLINES = (npy_outline, fastmri_outline, mrd_outline, twix_outline, mrd_skeleton, sequence, run_folder)
_OTHERS = (maps_file, mask, recipe, trained, checkpoint, stored_run, scanner)
_STREAMS = (mrd_stream,)
CORPUS: dict[str, Callable[[Path], Path]] = {each.__name__: each for each in (*_SCANS, *_OUTLINES, *_OTHERS, *_STREAMS)}
"""Makes a sound file in a folder, and whatever stands beside it; returns the file that is damaged then."""

KINDS = tuple(CORPUS)


LIES = (b"0", b"-1", b"1e999", b"999999999", b"18446744073709551616", b"NaN", b"'")
DAMAGES = ("bit", "bits", "bytes", "cut", "insertion", "lie", "header", "link")
"""Kinds of damage; "header" is bits among the first bytes, "lie" another number where a number stands as text."""


def damaged(path: Path, kind: str, secret: Path, rng: np.random.Generator) -> None:
    """Damage a file in place.

    Parameters
    ----------
    path : Path
        A sound file.
    kind : str
        One of `DAMAGES`.
    secret : Path
        A file that nobody was asked to read: where "link" leads.
    rng : Generator
        Of places and values.
    """
    if kind == "link":
        path.unlink()
        path.symlink_to(secret)
        return
    path.write_bytes(_changed(path.read_bytes(), kind, rng))


def _changed(content: bytes, kind: str, rng: np.random.Generator) -> bytes:
    data, size = bytearray(content), len(content)
    if kind in ("bit", "bits", "header"):
        within = min(size, 128) if kind == "header" else size
        for at in rng.integers(within, size=1 if kind == "bit" else int(rng.integers(2, 17))):
            data[at] ^= 1 << int(rng.integers(8))
    elif kind == "bytes":
        start, length = int(rng.integers(size)), int(rng.integers(1, 33))
        data[start : start + length] = rng.choice([b"\x00", b"\xff", b"\x80"]) * len(data[start : start + length])
    elif kind == "cut":
        del data[int(rng.integers(size)) :]
    elif kind == "insertion":
        at = int(rng.integers(size + 1))
        data[at:at] = rng.bytes(int(rng.integers(1, 65)))
    else:
        numbers = list(re.finditer(rb"\d+", content[:4096])) or list(re.finditer(rb".", content[:64], re.DOTALL))
        found = numbers[int(rng.integers(len(numbers)))]
        data[found.start() : found.end()] = LIES[int(rng.integers(len(LIES)))]
    return bytes(data)
