"""What a run knew about its scan before it began: noise, signal, and whether k-space was simulated."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mri_design.experiment.inputs import PreparedScan
from mri_design.scan.data import KSpaceData

__all__ = [
    "calibration_settings",
    "calibration_summary",
    "level_settings",
    "level_summary",
    "simulated_from",
    "simulation_summary",
]

_CALIBRATION = ("noise_readouts", "calibration_lines", "calibration_scan", "coil_maps_file", "coil_maps_explain")


def simulated_from(data: KSpaceData) -> str:
    """What k-space was simulated from ("from images"); empty where it was not simulated."""
    return str(data.card.get("simulated", "")).split(",")[0]


def simulation_summary(origins: Iterable[str]) -> dict[str, object]:
    """One row for a report's table that says which k-space was simulated; none where no scan's was.

    Parameters
    ----------
    origins : iterable of str
        `simulated_from` of every scan.
    """
    listed = list(origins)
    kinds = list(dict.fromkeys(origin for origin in listed if origin))
    if not kinds:
        return {}
    some = sum(bool(origin) for origin in listed)
    share = "" if some == len(listed) else f" ({some} of {len(listed)} images)"
    return {"k-space": f"simulated {' and '.join(kinds)}{share}"}


def calibration_settings(scan: PreparedScan) -> dict[str, object]:
    """Where noise and coil maps are from, and what the file says about either, for a manifest."""
    details = {name: text for name, text in scan.data.card.items() if name in _CALIBRATION}
    return {"noise_source": scan.noise_source, "coil_maps_source": scan.maps_source, **details}


def calibration_summary(scan: PreparedScan) -> dict[str, object]:
    """The same for a report's table."""
    return {"noise": scan.noise_source, "coil maps": scan.maps_source}


def level_settings(noise_variance: float, signal: float, unit: float) -> dict[str, object]:
    """Noise and signal level in force, for a manifest; ``unit`` (`PreparedScan.unit`) takes them to images' units."""
    return {"noise_sd_per_real_component": float(np.sqrt(noise_variance)) * unit, "signal_level": float(signal) * unit}


def level_summary(noise_variance: float, signal: float, unit: float) -> dict[str, object]:
    """The same for a report's table."""
    levels = level_settings(noise_variance, signal, unit)
    return dict(zip(("noise sd per real component", "signal level"), levels.values(), strict=True))
