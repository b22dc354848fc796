"""What a report shows of images: arrays, errors against the reference, figures, masks, coil maps, where shots ran."""

from __future__ import annotations
