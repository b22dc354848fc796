"""Strategies by name: those that choose phase-encode lines, samples of a plane, or shots.

A name is FAMILY, FAMILY:SETTING, or for densities FAMILY[:POWER] draw=DRAW. A strategy is a class in `design` and an
entry of strategies.toml; from then on recipes, the command line and comparisons know it. A user's own script registers
one by `register_strategy`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

from mri_design.errors import (
    InputError,
    UnknownNameError,
    UsageError,
    described,
    require_choice,
    require_instance,
    whole_number,
)
from mri_design.kinds import KINDS, gridded_kinds
from mri_design.registry import Shipped, full_name, require_part, split_name

if TYPE_CHECKING:  # loaded when a strategy is made: help lists their names before that
    from mri_design.design.strategy import Strategy

ORACLES: list[str] = []
"""Strategies that look at the true image; they cannot choose before `TrueImages.knowing` has given it to them."""

TRAINING_RULES: list[str] = []
"""Strategies that look at the truth of training scans: they make one mask for other scans."""

FROM_FILES = ("trained",)
"""Families that come as FAMILY:FILE, from what training wrote."""

INFORMED = ("calibrated",)
"""Families that may come as FAMILY:FILE: training scans are then side information."""

ReadsSetting = Callable[[str, str], Mapping[str, Any]]
"""(whole name, text behind the family) -> fields of the strategy that it sets; refuses by `UsageError`."""


@dataclass(frozen=True)
class Known:
    """Entry of a strategy in the table of names: fields as the arguments of `register_strategy`.

    Parameters
    ----------
    scan : bool, optional
        Whether it needs a scan: a posterior, or a true image. By default the strategy itself knows.
    """

    make: Callable[[], Strategy]
    random: bool | None = None
    tuned: tuple[float, ...] = ()
    settings: ReadsSetting | None = None
    scan: bool | None = None

    @property
    def needs_scan(self) -> bool:
        """Whether it uses data; a strategy that does not declare it is created to find out."""
        return self.make().needs_posterior if self.scan is None else self.scan


STRATEGIES: dict[str, dict[str, Known]] = {kind.sort: {} for kind in KINDS.values() if kind.on_grid or kind.shots}
"""By what they choose (`Kind.sort`), and by name, in the order in which help lists them."""

ABOUT: dict[str, str] = {}
"""What families choose, in a few words that go on from "lines", "samples" or "spokes"; a script may add its own."""


def _named(encoding: str) -> dict[str, Known]:
    """The strategies for the candidates of an encoding."""
    return STRATEGIES[KINDS[encoding].sort]


def register_strategy(
    name: str,
    make: Callable[[], Strategy],
    encodings: Iterable[str] = ("lines",),
    *,
    random: bool | None = None,
    tuned: Sequence[float] = (),
    settings: ReadsSetting | None = None,
    looks_at: str = "",
) -> None:
    """Make a strategy known by a name, for recipes, `make_strategy` and the runs.

    Parameters
    ----------
    name : str
        In lower case, words joined by hyphens.
    make : callable
        Makes the strategy: its class, for example.
    encodings : str or sequence of str
        What it chooses: "lines", "plane", "shots"; as one text with spaces between them, or each by itself.
    random : bool, optional
        Whether another seed gives another mask with no look at the data; by default strategies without a posterior do.
    tuned : sequence of float
        Powers that tuning on training scans tries, as ``NAME:POWER``.
    settings : callable, optional
        (whole name, text behind the family) -> fields of the strategy's dataclass that the text sets. By default a
        power where one is tuned; nothing may follow the name of others.
    looks_at : {"", "nothing", "scan", "truth", "training"}
        Whether it needs the true image, as oracles do, or that of training scans, before it can choose: its
        ``knowing(truths, reconstruct)`` (`TrueImages`), or ``knowing(scans)`` of `TrainingResidual`, is called with
        them. Whether others look at no data, or at the posterior of a scan, they say by themselves once they are made.

    Raises
    ------
    InputError
        For a name with a colon or another character that lists and shells take for their own, an unknown encoding, and
        something that makes no strategy.
    """
    require_choice(("", "nothing", "scan", "truth", "training"), looks_at=looks_at)
    if name in FROM_FILES:
        raise InputError(field="strategy", got=repr(name), wanted="a name that means nothing else")
    chosen = encodings.split() if isinstance(encodings, str) else list(encodings)
    unknown = sorted(set(chosen) - set(STRATEGIES))
    if unknown or not chosen:
        raise InputError(field="encodings", got=", ".join(unknown) or "none", wanted=", ".join(STRATEGIES))
    shipped = next((STRATEGIES[each][name].make for each in chosen if name in STRATEGIES[each]), None)
    require_part("strategy", name, make, "its class, or a function that makes it", known=shipped)
    drawn = False if looks_at in ("truth", "training") else random
    scan = looks_at != "nothing" if looks_at else None
    known = Known(make, drawn, tuple(tuned), settings or (_power if tuned else None), scan)
    for encoding in chosen:
        STRATEGIES[encoding][name] = known
    for names, mark in ((ORACLES, "truth"), (TRAINING_RULES, "training")):
        if name in names:
            names.remove(name)
        if looks_at == mark:
            names.append(name)


def _power(name: str, text: str) -> dict[str, Any]:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise UsageError(f"strategy {name!r}: the power must be a number of zero or more")
    return {"power": value}


DRAWS = {
    "random": "",
    "jittered": ", one from every unit of mass",
    "systematic": ", evenly",
    "golden": ", in steps of the golden ratio",
    "half": ", on one half of k-space",
}
"""How lines are drawn from a density, and the words that it adds to what a strategy chooses."""


def _density(name: str, text: str) -> dict[str, Any]:
    """``3``, ``draw=golden`` or ``3 draw=golden``."""
    power, named, draw = text.partition("draw=")
    if named and draw not in DRAWS:
        raise UsageError(f"strategy {name!r}: draw must be one of {', '.join(DRAWS)}")
    fields = _power(name, power.strip()) if power.strip() or not named else {}
    return {**fields, "draw": draw} if named else fields


def _spacing(name: str, text: str) -> dict[str, Any]:
    distance = whole_number(text)
    if distance is None or not 1 <= distance < 10**6:
        raise UsageError(f"strategy {name!r}: the spacing of the lines must be a whole number from 1 to 999999")
    return {"spacing": distance}


def _caipi(name: str, text: str) -> dict[str, Any]:
    numbers = [whole_number(part) for part in text.split("x")]
    parts = [number for number in numbers if number is not None and 0 <= number < 10**4]
    if len(numbers) not in (2, 3) or len(parts) < len(numbers) or min(parts[:2]) < 1:
        raise UsageError(f"strategy {name!r}: give the distances along ky and kz as 2x3, or with a shift as 2x3x1")
    rows, columns, *shift = parts
    if shift and shift[0] >= columns:
        raise UsageError(
            f"strategy {name!r}: a shift of {shift[0]} is the same as one of {shift[0] % columns}, as samples lie "
            f"{columns} apart along kz; give one from 0 to {columns - 1}"
        )
    return {"spacing": (rows, columns), "shift": shift[0] if shift else None}


_SETTINGS: dict[str, ReadsSetting] = {"density": _density, "distance": _spacing, "distances": _caipi}
_SHIPPED = tomllib.loads(resources.files("mri_design.experiment").joinpath("strategies.toml").read_text("utf-8"))
for _one in _SHIPPED["strategy"]:
    _file, _class = _one["class"].split(".")
    register_strategy(
        _one["name"],
        Shipped(f"design.{_file}", _class, _one.get("with", {})),
        _one["chooses"],
        random=_one.get("random"),
        tuned=_one.get("tuned", ()),
        settings=_SETTINGS.get(_one.get("setting")),
        looks_at=_one["looks_at"],
    )
    ABOUT[_one["name"]] = _one["about"]

USUAL: dict[str, str] = _SHIPPED["usual"]
"""The strategies of a comparison that names none; of shots all."""


def explained(name: str) -> str:
    """Description of a strategy that continues "lines", "samples" or "shots"; empty if there is none.

    Parameters
    ----------
    name : str
        As `make_strategy` takes it.
    """
    family, setting = split_name(name)
    if family in FROM_FILES:
        return "in the order that mri-design protocol --rule learnt on other scans"
    about = ABOUT.get(family, "")
    if reads_file(name):
        return f"{about}; what mri-design protocol --rule saw on other scans has a say"
    setting, _, draw = (setting or "").partition("draw=")
    return f"{about}{DRAWS.get(draw, '')}" + (f" (set to {setting.strip()})" if setting and about else "")


def _chosen(sort: str) -> str:
    """Words for the candidates that strategies of an entry of `STRATEGIES` choose."""
    return " and ".join(kind.several for kind in KINDS.values() if kind.sort == sort and (kind.on_grid or kind.shots))


def tuned_powers(name: str, encoding: str = "lines") -> tuple[float, ...]:
    """Powers (of ``regular`` distances of the lines) that tuning tries for a strategy; none where its name has one."""
    family, setting = split_name(name)
    known = _named(encoding).get(family)
    return known.tuned if known is not None and (setting is None or setting.startswith("draw=")) else ()


def with_power(name: str, power: float) -> str:
    """The name of a strategy that is tuned, with a power: ``vd-polynomial draw=golden`` to that with ``:3``."""
    family, _ = split_name(name)
    return f"{family}:{power:g}{name.removeprefix(family)}"


def strategy_names(encoding: str = "lines") -> tuple[str, ...]:
    """Every name `make_strategy` knows."""
    return tuple(_named(encoding))


def usual_strategies(encoding: str = "lines") -> list[str]:
    """The strategies of a comparison that names none."""
    return USUAL[encoding].split(",") if encoding in USUAL else list(strategy_names(encoding))


def strategy_named(name: str, encoding: str = "lines") -> str:
    """The name of a strategy in full, where an alias stands for it (`registry.ALIASES`)."""
    return full_name(name, _named(encoding))


def make_strategy(name: str, encoding: str = "lines", *, but: Collection[str] = ()) -> Strategy:
    """The strategy called ``name`` that chooses lines or, for the encoding "plane", samples, for others shots.

    ``vd-polynomial:3`` and its like set the density's power, ``vd-polynomial:3 draw=systematic`` how lines are drawn
    from it too, ``regular:4`` the distance of the lines, ``trained:FILE`` and ``calibrated:FILE`` read what training
    wrote; in a plane, ``vd-polynomial:8`` and ``poisson-disc:3`` set the density's power, ``caipi:2x3`` and
    ``caipi:2x3x1`` the distances and the shift.
    `ORACLES` and `TRAINING_RULES` cannot choose before they were given truths. Refusals name all ``but`` some.

    Raises
    ------
    UsageError
        For an unknown name, a power that is not a number of zero or more, or a file that is not named.
    InputError
        Where the file cannot be used.
    """
    fields = check_strategy_name(name, encoding, but=but)
    name = strategy_named(name, encoding)
    family, setting = split_name(name)
    if reads_file(name):
        from mri_design.design.calibrated import Calibrated
        from mri_design.design.training import TrainedOrder
        from mri_design.experiment.stored_designs import load_trained

        design = load_trained(Path(setting or ""))
        if family in FROM_FILES:
            return TrainedOrder(design=design, name=strategy_label(name))
        return Calibrated(side_information=(design,), name=strategy_label(name))
    made = _named(encoding)[family].make()
    return replace(made, **fields, name=name) if fields else made  # type: ignore[type-var]


def name_of_strategy(strategy: str | Strategy, encoding: str = "lines") -> str:
    """The name of a strategy given by name or as an object; an object is registered under its own name.

    Raises
    ------
    InputError
        For an object that is no strategy, or has the name of another one that is known.
    """
    if isinstance(strategy, str):
        return strategy_named(strategy, encoding)
    from mri_design.design.strategy import Strategy

    require_instance(Strategy, wanted="a name of `strategy_names`, or a Strategy", strategy=strategy)
    name, known = strategy.name, _named(encoding).get(strategy.name)
    if known is None or known.make() != strategy:
        if known is not None and type(known.make()) is not type(strategy):
            raise InputError(f"strategy {name}", described(strategy), f"another name: {name!r} is one that is known")
        register_strategy(name, lambda: strategy, [KINDS[encoding].sort])
    return name


def learns_from_scans(name: str, encoding: str) -> bool:
    """Whether a comparison tunes a strategy on training scans, or designs a mask with it on them.

    Raises
    ------
    UsageError, InputError
        As `make_strategy`.
    """
    if name in TRAINING_RULES or tuned_powers(name, encoding):
        return True
    return name not in ORACLES and make_strategy(name, encoding).needs_posterior


def check_strategy_name(name: str, encoding: str = "lines", *, but: Collection[str] = ()) -> Mapping[str, Any]:
    """Refuse a name that `make_strategy` does not know for the encoding; files are not opened.

    The refusal names the strategies that there are, without those that the caller does not take (``but``).

    Returns
    -------
    mapping
        Fields of the strategy that the name sets.

    Raises
    ------
    UsageError
        For an unknown name, a power that is not a number of zero or more, or a file that is not named.
    """
    name = strategy_named(str(name), encoding)
    family, setting = split_name(name)
    makers = _named(encoding)
    families = (*makers, *(FROM_FILES if not KINDS[encoding].shots else ()))
    others = [_chosen(kind) for kind, known in STRATEGIES.items() if family in known]
    others += [_chosen(KINDS[each].sort) for each in gridded_kinds()] if family in FROM_FILES else []
    if others and family not in families:
        here, there = _chosen(KINDS[encoding].sort), ", ".join(each for each in makers if each not in but)
        raise UsageError(f"strategy {family!r} chooses {' or '.join(others)}; for {here} there are: {there}")
    if reads_file(name):
        if family not in FROM_FILES and KINDS[encoding].axes != 1:
            raise UsageError(
                f"strategy {family!r} takes a file of mri-design protocol --rule where it chooses lines, but none here"
            )
        if not setting:
            raise UsageError(f"strategy {family!r} needs a file from mri-design protocol --rule: {family}:FILE")
        return {}
    if family not in makers:
        known = [f"{each}:FILE" if each in FROM_FILES else each for each in families if each not in but]
        raise UnknownNameError("strategy", family, known)
    if setting is None:
        return {}
    settings = makers[family].settings
    if settings is None:
        raise UsageError(f"strategy {family!r} takes no power (got {name!r})")
    return settings(name, setting)


def is_random(name: str, encoding: str = "lines") -> bool:
    """Whether another seed gives another mask, without data."""
    known = _named(encoding).get(split_name(name)[0])
    if known is None or reads_file(name):
        return False
    return known.random if known.random is not None else not known.needs_scan


def kinds_of_masks(encoding: str = "lines") -> tuple[str, ...]:
    """Names of the strategies that use no data, and so make masks without a scan."""
    return tuple(name for name, known in _named(encoding).items() if not known.needs_scan)


def reads_file(name: str) -> bool:
    """Whether a file from `mri-design protocol --rule` stands in the name, FAMILY:FILE."""
    family, setting = split_name(str(name))
    return family in FROM_FILES or (family in INFORMED and setting is not None)


def strategy_files(names: Sequence[str]) -> list[str]:
    """The files that strategies read, each once."""
    return list(dict.fromkeys(split_name(name)[1] or "" for name in names if reads_file(name)))


def strategy_label(name: str) -> str:
    """The name without the folders of a file, for tables and manifests."""
    family, setting = split_name(name)
    return f"{family}:{PureWindowsPath(setting).name}" if setting and reads_file(name) else name
