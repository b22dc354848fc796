"""Small files of every format, and a child process with a memory limit to read damaged ones in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import ismrmrd
import numpy as np
import pytest

from mri_design.scan.io import read

_HEADER = """<?xml version="1.0"?>
<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">{system}
 <experimentalConditions><H1resonanceFrequency_Hz>127000000</H1resonanceFrequency_Hz></experimentalConditions>
 <encoding>
  <encodedSpace><matrixSize><x>{nx}</x><y>{ny}</y><z>{nz}</z></matrixSize>
   <fieldOfView_mm><x>{fov}</x><y>200</y><z>{fovz}</z></fieldOfView_mm></encodedSpace>
  <reconSpace><matrixSize><x>{rx}</x><y>{ny}</y><z>{nz}</z></matrixSize>
   <fieldOfView_mm><x>{rfov}</x><y>200</y><z>{fovz}</z></fieldOfView_mm></reconSpace>
  <encodingLimits>{limits}</encodingLimits>
  <trajectory>{trajectory}</trajectory>{parallel}
 </encoding>{more}
</ismrmrdHeader>"""

_CHILD = """
import json, resource, sys
from mri_design.errors import InputError
from mri_design.scan.io.formats import read
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
for path in sys.argv[2:]:
    try:
        outcome = type(read(path, isolated=False)).__name__
        message = field = ""
    except InputError as error:
        outcome, message, field = "InputError", str(error), error.field
    except BaseException as error:
        outcome, message, field = type(error).__name__, str(error)[:300], ""
    print(json.dumps([path, outcome, message, field]), flush=True)
"""


@dataclass(frozen=True)
class Outcome:
    """What became of one file in the child."""

    path: Path
    kind: str
    message: str
    field: str = ""


@dataclass
class MrdFile:
    """An MRD file to be written; every field can be made wrong on purpose."""

    folder: Path
    nx: int = 16
    ny: int = 12
    nz: int = 1
    rx: int = 16
    fov: object = 200
    rfov: object = 200
    fovz: object = 5
    trajectory: str = "cartesian"
    centre: int | None = None
    centre_partition: int | None = None
    system: str = ""
    parallel: str = ""
    more: str = ""
    header: str | None = None
    readouts: list[ismrmrd.Acquisition] = field(default_factory=list)

    def add(self, samples: np.ndarray, coordinates: np.ndarray | None = None, **fields: int) -> ismrmrd.Acquisition:
        """Append a readout (coil, sample), perhaps with coordinates (sample, dimension).

        Fields go to the counters or the header.
        """
        readout = ismrmrd.Acquisition()
        axes = 0 if coordinates is None else coordinates.shape[1]
        readout.resize(samples.shape[1], samples.shape[0], axes)
        readout.data[:] = samples
        if coordinates is not None:
            readout.traj[:] = coordinates
        readout.center_sample = samples.shape[1] // 2
        for name, value in fields.items():
            if name == "flag":
                readout.set_flag(value)
            else:
                setattr(readout.idx if hasattr(readout.idx, name) else readout, name, value)
        self.readouts.append(readout)
        return readout

    def add_scan(self, kspace: np.ndarray, **fields: int) -> MrdFile:
        """Append every line of (slice, coil, ky, kx)."""
        for index in range(kspace.shape[0]):
            for line in range(kspace.shape[2]):
                self.add(kspace[index, :, line], slice=index, kspace_encode_step_1=line, **fields)
        return self

    def add_volume(self, kspace: np.ndarray, **fields: int) -> MrdFile:
        """Append every readout of (coil, ky, kz, kx)."""
        for ky, kz in np.ndindex(kspace.shape[1:3]):
            self.add(kspace[:, ky, kz], kspace_encode_step_1=ky, kspace_encode_step_2=kz, **fields)
        return self

    def read(self, **settings: Any) -> Any:
        """Write the file, and read it in this process."""
        return read(self.write(), **settings)

    def write(self, name: str = "raw.h5") -> Path:
        """Write the file."""
        path = self.folder / name
        text = self.header
        if text is None:
            limits = ""
            for number, centre in ((1, self.centre), (2, self.centre_partition)):
                if centre is not None:
                    step = f"<minimum>0</minimum><maximum>{self.ny - 1}</maximum><center>{centre}</center>"
                    limits += f"<kspace_encoding_step_{number}>{step}</kspace_encoding_step_{number}>"
            text = _HEADER.format(**{**vars(self), "limits": limits})
        file = ismrmrd.Dataset(str(path), "dataset", mode="w")
        file.write_xml_header(text.encode())
        for readout in self.readouts:
            file.append_acquisition(readout)
        file.close()
        return path


@pytest.fixture
def scan() -> np.ndarray:
    """K-space (2 slices, 3 coils, 12 ky, 16 kx), every sample different."""
    rng = np.random.default_rng(3)
    real, imaginary = rng.standard_normal((2, 2, 3, 12, 16))
    return (real + 1j * imaginary).astype(np.complex64)


@pytest.fixture
def mrd(tmp_path: Path) -> partial[MrdFile]:
    """The builder of MRD files."""
    return partial(MrdFile, tmp_path)


@pytest.fixture
def fastmri_file(tmp_path: Path, scan: np.ndarray) -> Path:
    """A compressed fastMRI volume of ``scan``."""
    path = tmp_path / "volume.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("kspace", data=scan.swapaxes(-1, -2), chunks=(1, 3, 16, 12), compression="gzip")
        file["mask"] = np.ones(12, bool)
        file.attrs["acquisition"] = "AXT2"
    return path


@pytest.fixture
def read_in_child() -> Callable[..., list[Outcome]]:
    """Read files in one child with an address-space limit; a crash there is the outcome of its file."""

    def run(paths: Sequence[Path], *, limit: int = 3 * 2**30) -> list[Outcome]:
        outcomes: list[Outcome] = []
        while len(outcomes) < len(paths):
            left = [str(path) for path in paths[len(outcomes) :]]
            command = [sys.executable, "-c", _CHILD, str(limit), *left]
            try:
                child = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
                printed, status = child.stdout, child.returncode
                assert status <= 0, child.stderr
            except subprocess.TimeoutExpired as stalled:
                printed, status = (stalled.stdout or b"").decode(), -1
            for line in printed.splitlines():
                path, *rest = json.loads(line)
                outcomes.append(Outcome(Path(path), *rest))
            if status < 0:
                outcomes.append(Outcome(paths[len(outcomes)], "crash", ""))
        return outcomes

    return run
