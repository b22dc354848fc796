"""What a training leaves: one file, the order."""

from __future__ import annotations

from mri_design.design.trained_design import TrainedDesign
from mri_design.experiment.trained_file import save_trained
from mri_design.runs.run import Ending
from mri_design.runs.train.order_file import OrderFile, order_ending


def report_order(file: OrderFile, design: TrainedDesign | Ending) -> Ending:
    """Write a finished order, and remove its beginning; one that was finished before stays as it is."""
    if isinstance(design, Ending):
        return design
    save_trained(file.path, design)
    file.beginning.unlink(missing_ok=True)
    return order_ending(design)
