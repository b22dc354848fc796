"""MRpro as another writer and reader of ISMRMRD files; imported only where it is installed."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SIDE = 32
_MARKED = ((0.2, -0.1, 0.3, 0.2, 1.0), (0.21875, -0.28125, 0.05, 0.05, 9.0))
"""Ellipses: centre and radius along x and y in fields of view, brightness; the second is a marker."""


def write_by_mrpro(path: Path, vendor: str, axes: NDArray[Any], centre: NDArray[Any]) -> None:
    """A file that MRpro makes of its own phantom: a large ellipse and a marker beside it.

    Parameters
    ----------
    path : Path
        Of the file.
    vendor : str
        Maker of the scanner in the header; MRpro writes the conjugate of its samples for "siemens".
    axes : float array, shape (3, 3)
        Rows: directions of phase encoding, readout and slice in the patient.
    centre : float array, shape (3,)
        Of the slice, millimetres.
    """
    import torch
    from mrpro.data import Rotation, SpatialDimension
    from mrpro.data.enums import TrajectoryType
    from mrpro.data.traj_calculators import KTrajectoryCartesian
    from mrpro.phantoms import EllipsePhantom
    from mrpro.phantoms.phantom_elements import EllipseParameters

    matrix = SpatialDimension(z=1, y=_SIDE, x=_SIDE)
    names = ("center_x", "center_y", "radius_x", "radius_y", "intensity")
    phantom = EllipsePhantom([EllipseParameters(**dict(zip(names, one, strict=True))) for one in _MARKED])
    scan = phantom.kdata(KTrajectoryCartesian.fullysampled(matrix), matrix)
    about = scan.header.acq_info
    lines = torch.arange(_SIDE)[None, None, None, :, None]
    about.idx.k1 = lines.to(about.idx.k1.dtype)
    phase, read_out, across = ([torch.tensor(float(x)) for x in direction[::-1]] for direction in axes)
    directions = [SpatialDimension(*vector) for vector in (across, phase, read_out)]
    about.orientation = Rotation.from_directions(*directions).reshape(1, 1, 1, 1, 1)
    about.position = SpatialDimension(*(torch.full((1, 1, 1, 1, 1), float(x) / 1000) for x in centre[::-1]))
    scan.header.vendor, scan.header.trajectory_type = vendor, TrajectoryType.CARTESIAN
    scan.to_file(str(path))


def kspace_by_mrpro(path: Path) -> NDArray[np.complex64]:
    """K-space (slice, coil, ky, kx) of an ISMRMRD file as MRpro has it: the conjugate of the samples of "siemens"."""
    samples: NDArray[np.complex64] = _read(path).data[:, :, 0].numpy()
    return samples


def lines_by_mrpro(path: Path) -> list[int]:
    """The phase-encode counters of an ISMRMRD file as MRpro has them."""
    counters: list[int] = _read(path).header.acq_info.idx.k1.flatten().tolist()
    return counters


def brightest_by_mrpro(path: Path, folder: Path) -> NDArray[np.float64]:
    """Where the brightest pixel is by the DICOM file that MRpro makes of a file of one slice.

    Parameters
    ----------
    path : Path
        An ISMRMRD file.
    folder : Path
        For the DICOM file; what is there goes.

    Returns
    -------
    float array, shape (3,)
        Millimetres to the left, back and head.
    """
    import pydicom
    from mrpro.algorithms.reconstruction import DirectReconstruction

    scan = _read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = DirectReconstruction(scan, csm=None)(scan)
        shutil.rmtree(folder, ignore_errors=True)
        image.to_dicom_folder(folder)
    file = pydicom.dcmread(next(folder.iterdir()))
    pixels = file.pixel_array.reshape(file.Rows, file.Columns)
    row, column = np.unravel_index(pixels.argmax(), pixels.shape)
    frame = file.PerFrameFunctionalGroupsSequence[0]
    first = np.array(frame.PlanePositionSequence[0].ImagePositionPatient, float)
    along = np.reshape(np.array(frame.PlaneOrientationSequence[0].ImageOrientationPatient, float), (2, 3))
    down, right = (float(step) for step in frame.PixelMeasuresSequence[0].PixelSpacing)
    return np.asarray(first + column * right * along[0] + row * down * along[1], dtype=np.float64)


def _read(path: Path) -> Any:
    from mrpro.data import KData
    from mrpro.data.traj_calculators import KTrajectoryCartesian

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KData.from_file(str(path), KTrajectoryCartesian())
