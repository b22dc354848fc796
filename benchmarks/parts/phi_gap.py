"""How near the criterion phi comes to its minimum from a cold start, by products with A spent, per estimator."""

from __future__ import annotations
