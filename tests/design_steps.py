"""Decisions for tests, told by their fields alone, whatever part of a `DesignStep` each belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from mri_design import SliceModel
from mri_design.design import Choice, DesignStep, Evaluate, Forecast, Outcome, ReferenceSlice, Trial
from mri_design.operators import Array

Part = TypeVar("Part", DesignStep, Forecast)


def design_step(line: int, **values: Any) -> DesignStep:
    """A decision for ``line``; the other fields by name, as ``actual_energy=2.0``."""
    return changed(DesignStep(Choice(line)), **values)


def changed(step: Part, **values: Any) -> Part:
    """The decision, or its forecast, with other values of some fields; a `TypeError` for a name that no part has."""
    left = dict(values)
    made: Part = _changed(step, left)
    if left:
        raise TypeError(f"no field of a decision: {sorted(left)}")
    return made


def _changed(record: Any, left: dict[str, Any]) -> Any:
    parts: dict[str, Any] = {}
    for each in fields(record):
        value = getattr(record, each.name)
        if each.name in left:
            parts[each.name] = left.pop(each.name)
        elif is_dataclass(value):
            parts[each.name] = _changed(value, left)
    return replace(record, **parts)


def replayed(reconstruct: Callable[[SliceModel, Sequence[int]], Array], scans: Sequence[ReferenceSlice]) -> Evaluate:
    """Trials one after another in this process; ``reconstruct`` makes an image of a slice from some lines."""

    def evaluate(trials: Sequence[Trial]) -> Iterable[Outcome]:
        return [scans[i].outcome(reconstruct(scans[i].slice_model, lines)) for i, lines in trials]

    return evaluate
