"""How near the estimators of z = diag(B A^-1 B^H) come to the exact ones, by products with A spent and by seconds."""

from __future__ import annotations
