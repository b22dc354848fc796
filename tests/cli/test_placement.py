"""A marker at a known place in the patient is there by the header of its scan, or files claim no place at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mri_design import KSpaceData
from mri_design.scan.io import read
from tests.scan.io.conftest import MrdFile
from tests.scan.io.twix_file import Measurement, write_twix

nibabel = pytest.importorskip("nibabel")
pydicom = pytest.importorskip("pydicom")

NX, NY, NZ, PIXEL = 24, 20, 6, 10.0  # samples, and millimetres
TO_LPS = np.diag([-1.0, -1.0, 1.0])
POINTS = {(50.0, -30.0, 20.0): 1.0, (-70.0, -20.0, 0.0): 0.4, (-20.0, 60.0, -10.0): 0.3}
"""Millimetres along phase, readout and slice from the centre, and brightness: the first point is the marker."""
SYSTEM = "<acquisitionSystemInformation><systemVendor>{}</systemVendor></acquisitionSystemInformation>"
SIGN = (
    "<userParameters><userParameterLong><name>fourierSign</name><value>{}</value></userParameterLong></userParameters>"
)


class Patient:
    """Points in the patient's coordinates, seen by a slice or slab of any place and directions."""

    def __init__(self, seed: int = 0) -> None:
        turned, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))
        self.axes = turned * np.linalg.det(turned)  # rows: phase, readout, across; right-handed
        self.centre = np.array([12.0, -34.0, 56.0])

    def at(self, offset: tuple[float, ...], *, flat: bool) -> np.ndarray:
        """Where a point is, in millimetres to the left, back and head; in a flat slice that is within its plane."""
        return self.centre + np.array([*offset[:2], 0.0 if flat else offset[2]]) @ self.axes

    def samples(self, sign: int, nz: int = 1) -> np.ndarray:
        """K-space (kz, ky, kx) of the points, with the sign of the exponent that a maker has."""
        grids = [(np.arange(n) - n // 2) / (n * PIXEL) for n in (nz, NY, NX)]
        total = np.zeros((nz, NY, NX), np.complex128)
        for offset, brightness in POINTS.items():
            away = self.at(offset, flat=nz == 1) - self.centre
            along_y, along_x, along_z = self.axes @ away
            kz, ky, kx = np.meshgrid(*grids, indexing="ij")
            total += brightness * np.exp(2j * np.pi * sign * (kz * along_z + ky * along_y + kx * along_x))
        return total.astype(np.complex64)

    def mrd(self, path: Path, sign: int, *, vendor: str = "", said: int | None = None, nz: int = 1) -> Path:
        """An ISMRMRD file, written by the ismrmrd package."""
        system, more = SYSTEM.format(vendor) if vendor else "", "" if said is None else SIGN.format(said)
        extents = (NX * PIXEL, NX * PIXEL, nz * PIXEL)
        raw = MrdFile(path.parent, NX, NY, nz, NX, *extents, system=system, more=more)
        raw.add_volume(self.samples(sign, nz).swapaxes(0, 1)[np.newaxis])
        for readout in raw.readouts:
            readout.position[:] = self.centre
            readout.phase_dir[:], readout.read_dir[:], readout.slice_dir[:] = self.axes
        return raw.write(path.name)

    def twix(self, path: Path) -> Path:
        """A Siemens file: its maker's sign, and directions as a quaternion."""
        phase, read_out, across = self.axes
        raw = Measurement(base=NX, lines=NY, oversampling="1.0", thickness=PIXEL)
        raw.phase_extent, raw.read_extent = NY * PIXEL, NX * PIXEL
        turned = Rotation.from_matrix(np.stack([phase, read_out, across], axis=1))
        quaternion = tuple(np.roll(turned.as_quat(), 1).tolist())  # the real part first
        kspace = self.samples(1)[np.newaxis]
        raw.add_scan(kspace, position=tuple(self.centre), quaternion=quaternion)
        return write_twix(path, raw)


MAKERS: dict[str, Callable[[Patient, Path], Path]] = {
    "siemens.h5": lambda patient, path: patient.mrd(path, 1, vendor="SIEMENS"),
    "declared.h5": lambda patient, path: patient.mrd(path, -1, vendor="SOMEBODY", said=-1),
    "conjugate.h5": lambda patient, path: patient.mrd(path, 1, vendor="SOMEBODY", said=1),
    "siemens.dat": lambda patient, path: patient.twix(path),
    "volume-siemens.h5": lambda patient, path: patient.mrd(path, 1, vendor="SIEMENS", nz=NZ),
    "volume-declared.h5": lambda patient, path: patient.mrd(path, -1, said=-1, nz=NZ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_pixels_are_where_they_are_in_the_patient(tmp_path: Path, name: str) -> None:
    if name.endswith(".dat"):
        pytest.importorskip("twixtools")
    patient, flat = Patient(2), not name.startswith("volume")
    found = _brightest(read(MAKERS[name](patient, tmp_path / name), isolated=False))
    np.testing.assert_allclose(found, patient.at(next(iter(POINTS)), flat=flat), atol=1e-3)


def _brightest(scan: Any) -> np.ndarray:
    """Where the brightest pixel of a scan is, in the patient's coordinates, by its geometry."""
    assert isinstance(scan, KSpaceData) and scan.geometry is not None
    shifted = np.fft.ifft2(np.fft.ifftshift(scan.kspace, axes=(-2, -1)))
    images = np.abs(np.fft.fftshift(shifted, axes=(-2, -1)))[:, 0]
    number, row, column = np.unravel_index(images.argmax(), images.shape)
    return TO_LPS @ (scan.geometry[number].affine(scan.grid_shape) @ [column, row, 0, 1])[:3]
