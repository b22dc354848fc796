"""Claims whose reason is stated only where they do not hold."""

from __future__ import annotations

from .runner import Claim


def checked(place: str, claim: str, theirs: str, ours: str, holds: object, otherwise: str) -> Claim:
    """A claim that was decided by a measurement; ``otherwise`` says why where it does not hold."""
    return Claim(place, claim, theirs, ours, bool(holds), "" if holds else otherwise)
