"""Interleaf angles chosen one after the other by the posterior's information, as the papers do."""

from __future__ import annotations
