"""How many samples around DC a design over a plane begins with."""

from __future__ import annotations

LEAST, SHARE = 16, 128
"""Samples at least, and the part of the plane that they are."""


def start_for_samples(n_samples: int, target: int) -> int:
    """Samples nearest to DC to begin with: a 128th of the plane, 16 at least, and half of the target at most.

    The image's scale is seen in them; wider centres are wasted where samples are chosen one by one.
    """
    return min(target, max(1, min(max(LEAST, n_samples // SHARE), target // 2)))
