"""What every part leaves: README.md, table.csv, a figure and a manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from mri_design.evaluation.manifest import InputFile, installed_versions, manifest_text
from mri_design.evaluation.tables import Row, csv_text
from mri_design.scan.io.atomic import write_text

matplotlib.use("Agg")

PACKAGES = ("mri-design", "numpy", "scipy", "matplotlib")


@dataclass(frozen=True)
class PartFolder:
    """The folder of one part.

    Parameters
    ----------
    out : Path
        Of the whole study.
    part : str
        Its name on the command line.
    quick : bool
        Whether this is a smoke run.
    """

    out: Path
    part: str
    quick: bool = False

    @property
    def path(self) -> Path:
        """Made where it is missing."""
        folder = self.out / self.part
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def command(self) -> str:
        """What makes this folder again."""
        quick = " --quick" if self.quick else ""
        return f"OMP_NUM_THREADS=1 python benchmarks/glm_study.py --out results/glm --only {self.part}{quick}"

    def write(
        self,
        text: str,
        rows: Sequence[Row],
        figures: Mapping[str, Figure],
        *,
        settings: Mapping[str, object],
        inputs: Sequence[Path] = (),
        packages: Sequence[str] = (),
        columns: Sequence[str] | None = None,
    ) -> None:
        """Write everything.

        Parameters
        ----------
        text : str
            The README after its title and command; figures are shown where it links them.
        rows : sequence of mappings
            table.csv.
        figures : mapping of str to Figure
            By file name.
        settings : mapping
            Sizes, seeds and whatever else decided the numbers.
        inputs : sequence of Path
            Files read: name and checksum are kept.
        packages : sequence of str
            Peers whose versions count, beside our own.
        columns : sequence of str, optional
            Of table.csv, where there may be no rows.
        """
        title = self.part.replace("-", " ")
        head = f"# {title[0].upper()}{title[1:]}\n\n    {self.command}\n\n"
        write_text(self.path / "README.md", head + text.strip() + "\n")
        write_text(self.path / "table.csv", csv_text(rows, columns))
        for name, figure in figures.items():
            figure.savefig(self.path / name, dpi=130, metadata={"Software": None})
        manifest = {
            "command": self.command,
            "settings": settings,
            "inputs": [InputFile.of(path) for path in inputs],
            "versions": installed_versions((*PACKAGES, *packages)),
        }
        write_text(self.path / "manifest.json", manifest_text(manifest))
