"""The numbers in a text that a user reads, whatever its words are."""

import re


def numbers_in(text: str) -> list[float]:
    """Those that stand alone, in their order; a minus sign may be a real one."""
    return [float(one.replace("\u2212", "-")) for one in re.findall(r"(?<![\w.])[-\u2212]?\d+(?:\.\d+)?", text)]
