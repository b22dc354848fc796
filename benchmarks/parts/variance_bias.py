"""The bias of sampled variances, whose draws are solved to a tolerance, and what the estimators state of it."""

from __future__ import annotations
