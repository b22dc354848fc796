"""Do designed masks beat tuned variable density on scans that nobody tuned on? The study behind the README's numbers.

    OMP_NUM_THREADS=1 python benchmarks/design_study.py --data ../shared/data/mri --out results/design-study --jobs 2

measures everything (an hour or more on two cores) and puts its tables into README.md, every measured cell, and figures.
What is measured is kept: an interrupted run goes on where it was, a strategy that is new is measured alone. ``--only
SECTION`` (again for more) measures some, ``--forget STRATEGY`` and ``--again SECTION`` drop rows first, ``--tables``
only writes the tables anew, ``--images N`` looks at a part of each group for now. ``--quick`` is the same on toy sizes
from embedded phantoms in minutes, where numbers mean nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from importlib import resources
from pathlib import Path

from study.document import write_document
from study.groups import TUNED, Entry, Group
from study.ledger import Ledger
from study.measure import measure, predict, tune
from study.sections import GROUPS, POSTERIOR, Setting, real_phase, rivals
from study.training import train_all
from study.tuning import Show, tune_weight
from threadpoolctl import threadpool_limits

from mri_design.evaluation.run_folder import InputFile, manifest_text
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.stored_designs import fingerprint
from mri_design.experiment.strategies import reads_file
from mri_design.scan.io.atomic import write_text

SEED = 0
SECTIONS = ("trained", *GROUPS, "prediction")
"""In the order of their measurement: trained orders are used by what comes after."""


class Study:
    """A folder with its ledger, and what was chosen for a run."""

    def __init__(self, out: Path, data: Path | None, jobs: int, show: Show, images: int | None = None) -> None:
        self.out, self.jobs, self.show, self.images = out, jobs, show, images
        (out / "trained").mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger.open(out)
        self.setting = Setting(data, out / "trained")

    def check(self) -> None:
        """Refuse a folder that holds rows of another study."""
        settings = load_recipe("local").as_settings() | {"design": None}
        learnt = resources.files("mri_design.design").joinpath("error_model.json").read_text("utf-8")
        identity = f"{'quick' if self.setting.quick else 'full'} {fingerprint(settings | {'error models': learnt})}\n"
        path = self.out / "settings.txt"
        if path.exists() and path.read_text(encoding="utf-8") != identity and self.ledger.of("cells"):
            sys.exit("settings.txt is of another study: give another --out, or delete the folder's rows and this file")
        write_text(path, identity)

    def tune_map(self) -> None:
        """The weight of MAP, once."""
        group = replace(real_phase(self.setting)[0], section="MAP")
        weight = tune_weight(group, self.ledger, self.jobs, SEED, self.show, self.setting.cut_short)
        self.setting = replace(self.setting, weight=weight)

    def runnable(self, groups: list[Group]) -> list[Group]:
        """The groups without strategies that do not exist or were not trained, on as many images as were asked for."""
        usable = []
        for group in groups:
            tests = [group.tests[i] for i in group.images_of(Entry("", images=self.images))]
            entries = [entry for entry in group.entries if unusable(entry) is None]
            usable.append(replace(group, tests=tests, entries=entries))
        return usable

    def skipped(self) -> list[str]:
        """Strategies that could not be measured, and why."""
        entries = rivals(self.setting)
        return [f"{entry.label}: {why}" for entry in entries if (why := unusable(entry)) is not None]

    def run(self, section: str) -> None:
        """One section."""
        if section == "trained":
            train_all(self.setting, self.ledger, self.jobs, SEED, self.show)
        elif section == "prediction":
            self.predict()
        else:
            groups = GROUPS[section](self.setting)
            self.tune_others(groups)
            for group in self.runnable(groups):
                measure(group, self.ledger, self.jobs, SEED, self.show)

    def tune_others(self, groups: list[Group]) -> None:
        """Densities of other groups that these take over, where they are missing."""
        own = {(group.section, group.name) for group in groups}
        needed = {group.tuned_like for group in groups if group.tuning is None} - own
        missing = [n for n in needed if not self.ledger.of("tuned", section=n[0], group=n[1])]
        for group in real_phase(self.setting) if missing else []:
            if (group.section, group.name) in missing:
                tune(group, self.ledger, self.jobs, SEED, self.show)

    def predict(self) -> None:
        """Predictions on some images of the groups with real phase."""
        label = "trained residual-greedy"
        strategies = {name: (name, "mean") for name in POSTERIOR}
        for group in self.runnable(real_phase(self.setting))[:3]:
            some = 2 if len(group.tests) > 6 else 1
            tests = [group.tests[i] for i in group.images_of(Entry("", images=some))]
            named = {entry.label: entry for entry in group.entries}
            masks = {name: named[name] for name in (TUNED, "low-pass", label) if name in named}
            predict(replace(group, tests=tests), masks, strategies, self.ledger, self.jobs, SEED, self.show)

    def write_manifest(self, seconds: float, command: list[str]) -> None:
        """Versions, settings, and the checksums of the scans."""
        data = self.setting.data
        files = (
            sorted([*data.glob("img_3T*.npz"), *data.glob("mag3T*.npz"), *data.glob("[lm][fc]_*.npy")]) if data else []
        )
        cells = self.ledger.of("cells")
        missed = sum(not row["reconstruction_converged"] or not row["mask_converged"] for row in cells)
        manifest = manifest_text(
            command,
            seed=SEED,
            inputs=[InputFile.of(file) for file in files],
            settings={"weight of MAP": self.setting.weight, "recipe": load_recipe("local").as_settings()},
            wall_seconds=seconds,
            status=f"{missed} of {len(cells)} cells not converged" if missed else "converged",
            lines=[],
        )
        write_text(self.out / "manifest.json", manifest)


def unusable(entry: Entry) -> str | None:
    """Why an entry cannot be measured, where it cannot."""
    file = entry.name.partition(":")[2]
    if reads_file(entry.name) and not Path(file).exists():
        return "its trained order is not there: `--again trained` trains anew"
    return None if entry.exists() else "no such strategy"


def progress(what: str, done: int, of: int) -> None:
    """A line now and then."""
    if done == of or done % max(1, of // 10) == 0:
        print(f"... {what}: {done} of {of}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure, write after each section."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("results/design-study"), help="folder for the results")
    arguments.add_argument("--data", type=Path, default=Path("../shared/data/mri"), help="folder of the scans")
    arguments.add_argument("--jobs", type=int, default=2, help="processes")
    arguments.add_argument("--images", type=int, help="of each group at most; a later run measures the others")
    arguments.add_argument("--quick", action="store_true", help="a smoke run on toy sizes")
    arguments.add_argument("--only", action="append", choices=SECTIONS, help="measure this section only")
    arguments.add_argument("--again", action="append", default=[], choices=SECTIONS, help="drop its rows first")
    arguments.add_argument(
        "--forget", action="append", default=[], help="drop a strategy's rows first, of the sections to be measured"
    )
    arguments.add_argument("--tables", action="store_true", help="measure nothing, write the tables anew")
    chosen = arguments.parse_args()
    study = Study(chosen.out, None if chosen.quick else chosen.data.resolve(), chosen.jobs, progress, chosen.images)
    study.ledger.forget(lambda row: row["section"] in chosen.again)
    measured = chosen.only or SECTIONS
    study.ledger.forget(
        lambda row: row.get("strategy") in chosen.forget and "family" not in row and row["section"] in measured
    )
    study.check()
    began = time.perf_counter()
    with threadpool_limits(1):
        study.tune_map()
        for name in () if chosen.tables else [name for name in SECTIONS if name in (chosen.only or SECTIONS)]:
            start = time.perf_counter()
            study.run(name)
            write_document(study.out, study.ledger, name)
            print(f"... {name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    write_document(study.out, study.ledger)
    for line in study.skipped():
        print(f"skipped: {line}", file=sys.stderr)
    if not chosen.tables:  # the manifest is of what was measured
        study.write_manifest(time.perf_counter() - began, sys.argv[1:])


if __name__ == "__main__":
    main()
