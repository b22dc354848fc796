"""Small designs that are shown on a page, and the browser that looks at it."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import mri_design as md
from mri_design.design import Amount, DesignEngine, Moment
from mri_design.evaluation import plots
from mri_design.runs.live import Live, Watched
from tests.design.conftest import make_slice

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class ShownDesign:
    """A design of a slice of 16 lines, of which three are there at the start."""

    def __init__(self, page: Live, most: int = 12) -> None:
        self.one, self.amount, self.page = make_slice(), Amount(most), page
        picture = plots.Frame("ky-rows", None)
        page.begins(Watched("<b>scan</b>", self.one.candidates, picture, None, self.amount, {"noise": "given"}))

    def run(self, look: Callable[[Moment], None] = lambda _: None) -> int:
        """Lines in the end; ``look`` sees each moment once it is shown."""

        def watch(moment: Moment) -> None:
            self.page.show(moment, moment.frame())
            look(moment)

        inference = md.DoubleLoop(md.variances.MonteCarlo(4, 0.1), outer_iterations=1)
        engine = DesignEngine(md.make_strategy("calibrated"), inference, watch=watch, amount=self.amount)
        state = engine.run([self.one], engine.begin([self.one], (7, 8, 9)), self.amount.most, closing=True)
        return len(state.trace.lines)
