"""Draw the pictures of the how-to pages, by the commands that these pages teach.

    OMP_NUM_THREADS=1 python docs/figures/how_to.py [PAGE ...]

Every picture is a figure that a run left in its folder (``--png``), with fewer colours; that of a sequence is drawn by
pypulseq. Runs are made on embedded scans, measured ones where there are some.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from mri_design.experiment.recipe import SHIPPED

HERE = Path(__file__).parent
EVERY_THIRD = "every-third.npy"
"""A mask of 128 lines: every third one, and 24 at the centre."""


@dataclass(frozen=True)
class Picture:
    """A figure of a run.

    Parameters
    ----------
    command : str
        The verb and its options, without those for the folder; PLACE stands for the folder with earlier runs.
    figure : str
        Name of the figure in the run's folder.
    run : str
        Name of the run, under which later commands find it.
    """

    command: str
    figure: str
    run: str


COMPARED = (
    "compare phantom:t2w --train phantom:t1w --lines 24,32,48 --recipe PLACE/local.toml"
    " --strategies calibrated,vd-polynomial,low-pass,random"
)
PICTURES = {
    "design-one-scan": Picture("design phantom:lf-gre --lines 48 --block 4", "mask-growth", "designed"),
    "reconstruct": Picture("recon phantom:lf-gre --mask PLACE/designed/mask.npy", "images", "image"),
    "at-the-scanner": Picture("design phantom:lf-gre --lines 48 --block 4", "predicted-error", "designed"),
    "reading-good": Picture("design phantom:lf-gre --lines 48 --block 4", "std", "designed"),
    "reading-predictions": Picture("design phantom:lf-gre --lines 48 --block 4", "calibration", "designed"),
    "reading-low-pass": Picture("design phantom:lf-gre --lines 48 --block 4 --strategy low-pass", "std", "low-pass"),
    "reading-noise": Picture("recon phantom:lf-gre --mask PLACE/designed/mask.npy --noise 0.0044", "std", "noise"),
    "coils": Picture(f"recon phantom:head-16ch --mask PLACE/{EVERY_THIRD}", "images", "coils"),
    "coil-maps": Picture(f"recon phantom:head-16ch --mask PLACE/{EVERY_THIRD}", "coil-maps", "coils"),
    "three-d-scans": Picture(
        "design phantom:t2w --recipe PLACE/default.toml --encoding plane --acceleration 8", "images", "plane"
    ),
    "plane-mask": Picture(
        "design phantom:t2w --recipe PLACE/default.toml --encoding plane --acceleration 8", "mask-growth", "plane"
    ),
    "beyond-lines": Picture(
        "design phantom:brain --recipe PLACE/default.toml --encoding spiral --shots 12 --strategy one-missing",
        "trajectory",
        "arms",
    ),
    "one-protocol": Picture(
        "protocol phantom:t1w --lines 32 --test phantom:t2w --recipe PLACE/local.toml", "mask-growth", "protocol"
    ),
    "other-images": Picture(
        f"recon phantom:t2w --recipe PLACE/default.toml --mask PLACE/{EVERY_THIRD} --with phantom:t1w-6a",
        "companions",
        "beside",
    ),
    "choose-a-strategy": Picture(COMPARED, "masks", "strategies"),
}
"""By the name of the file, without ending."""


def make(name: str, place: Path) -> None:
    """Make the run of a picture, unless it is there, and keep its figure with 64 colours."""
    wanted = PICTURES[name]
    folder = place / wanted.run
    if not folder.is_dir():
        words = wanted.command.replace("PLACE", str(place)).split()
        command = [sys.executable, "-m", "mri_design.cli.start", *words, "--out", str(folder), "--png", "--quiet"]
        subprocess.run(command, check=True)
    drawn = Image.open(folder / "figures" / f"{wanted.figure}.png").convert("RGB")
    drawn.quantize(64, method=Image.Quantize.MEDIANCUT).save(HERE / f"{name}.png", optimize=True)


def draw_sequence(place: Path) -> None:
    """Export the design as a Pulseq sequence, and draw what pypulseq reads: gradients of the last repetitions."""
    import pypulseq

    path = place / "lines.seq"
    words = ["export", str(place / "designed"), "--sequence", "gre", "--fov", "0.24", "--out", str(path)]
    subprocess.run([sys.executable, "-m", "mri_design.cli.start", *words, "--quiet"], check=True)
    sequence = pypulseq.Sequence()
    sequence.read(str(path))
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    names = ("readout", "phase encode", "slice")
    end = 1e3 * sequence.duration()[0]
    for panel, name, (times, values) in zip(panels, names, sequence.waveforms_and_times()[0][:3], strict=True):
        panel.plot(1e3 * times, 1e3 * values / sequence.system.gamma, color="#1f2328", linewidth=1)
        panel.set(ylabel=f"{name}\n(mT/m)", xlim=(end - 120, end))
    panels[-1].set(xlabel="time (ms)")
    figure.savefig(HERE / "export.png", dpi=110)


def main() -> None:
    """Draw the pictures that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    every = [*PICTURES, "export"]
    parser.add_argument("pictures", nargs="*", default=every, help=", ".join(every))
    names = parser.parse_args().pictures
    designed = any(name == "export" or "PLACE/designed" in PICTURES[name].command for name in names)
    needed = ["design-one-scan", *names] if designed else names
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        mask = np.zeros(128, dtype=bool)
        mask[::3] = mask[52:76] = True
        np.save(place / EVERY_THIRD, mask)
        for recipe in ("default", "local"):
            text = SHIPPED.joinpath(f"{recipe}.toml").read_text("utf-8")
            whole = text.replace("[input]", "[input]\nmatrix = 128")
            (place / f"{recipe}.toml").write_text(whole if recipe == "default" else f"input.matrix = 128\n{text}")
        for name in dict.fromkeys(needed):
            draw_sequence(place) if name == "export" else make(name, place)
            print(f"{name}.png", (HERE / f"{name}.png").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
