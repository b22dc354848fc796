"""Logistic regression in chunks: how far every sweep of Laplace propagation is from the MAP, and what it costs."""

from __future__ import annotations
