"""The inner solvers on one table: products with A and seconds to a relative gap of the objective, from cold."""

from __future__ import annotations
