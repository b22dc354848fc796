"""One folder per verb of the command line: what it computes, and the report that shows it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
