"""Templates of the package, compiled once: their code is cached in __pycache__ if that folder can be written."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.bccache import Bucket


def environment(package: str, folder: str = "", **options: Any) -> Environment:
    """Templates of a package's folder, in which an unknown name is an error and statements leave no lines.

    To compile those of a report takes longer than to render them.

    Parameters
    ----------
    package : str
        Its name.
    folder : str
        Inside it.
    **options
        Further ones of the environment.
    """
    import jinja2  # here: many runs need none

    class Compiled(jinja2.FileSystemBytecodeCache):
        """Cache of compiled templates: a file that is damaged or cannot be written is compiled anew."""

        def load_bytecode(self, bucket: Bucket) -> None:
            try:
                super().load_bytecode(bucket)
            except Exception:  # whatever a damaged file does to the reading of code
                bucket.reset()

        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):
                super().dump_bytecode(bucket)

    kept = Path(str(resources.files(package)), "__pycache__")
    writable = not sys.dont_write_bytecode and os.access(kept, os.W_OK)
    ways = "-".join([jinja2.__version__, *(f"{name}={value}" for name, value in options.items())])
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder),
        bytecode_cache=Compiled(str(kept), f"__jinja2_{ways}_%s.cache") if writable else None,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )
