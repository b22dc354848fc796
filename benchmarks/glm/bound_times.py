"""The double loop on a9a with a Gaussian prior: its bound, and the time it takes."""

from __future__ import annotations
