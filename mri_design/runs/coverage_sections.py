"""What a report and a manifest say of error bars that were calibrated on other scans."""

from __future__ import annotations

from mri_design.evaluation.page import Paragraph, ReportTable, Section
from mri_design.evaluation.run_folder import RunFolder
from mri_design.experiment.coverage import Coverage

_TABLE = "coverage.csv"
_FORMATS = {"radius": ".2f"} | dict.fromkeys(("left_out_mean", "left_out_least", "promised"), ".1f")


def coverage_sections(folder: RunFolder, coverage: Coverage | None) -> list[Section]:
    """Write coverage.csv, and return the report's section about it; without, that of an earlier run does not stay."""
    if coverage is None:
        folder.remove(_TABLE)
        return []
    rows = [
        {
            "level": one.level,
            "radius": one.radius,
            "left_out_mean": one.left_out,
            "left_out_least": one.least,
            "promised": one.promised,
        }
        for one in coverage.radii
    ]
    folder.write_table(_TABLE, rows)
    caption = (
        "All but the radius in per cent of the pixels, air included. level: so many are within radius standard "
        "deviations, on the mean over these scans. left out: each scan in turn within the radius of the others, mean "
        "and least. promised: what a further scan has at least, on the mean over all that come as these came."
    )
    said = str(coverage)
    about = (
        f"{said[0].upper()}{said[1:]}: the middle slice of each, reconstructed from the same samples by the same "
        "recipe, and held against its own complete image. Pixels of one image are wrong together: what counts is that "
        f"there are {len(coverage.images)} scans. It holds for scans of the same kind (anatomy, contrast, coils, "
        f"noise), on the mean over them, and never for one image.{''.join(f' {why}.' for why in coverage.refused)}"
    )
    return [Section("Coverage of the error bars", [Paragraph(about), ReportTable(rows, caption, _FORMATS)])]


def coverage_facts(coverage: Coverage | None) -> tuple[dict[str, object], dict[str, object]]:
    """What a report's table of key numbers, and a manifest's settings, say of it; nothing without."""
    return ({}, {}) if coverage is None else ({"coverage": str(coverage)}, {"coverage": coverage.as_settings()})
