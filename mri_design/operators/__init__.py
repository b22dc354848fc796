"""Linear operators: measurement (X) and sparsity (B).

Names are imported when first used: the readers of scans need the convention of trajectories that stands in this
folder, and none of the operators, whose libraries take half a second to import.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
