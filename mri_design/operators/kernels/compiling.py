"""Loops compiled by Numba and kept on disk, and registers as one of its types.

A register (`Lanes`) holds several numbers side by side, which are loaded, stored and calculated with together. Fourier
transforms, wavelets and edges of graphs need them: their loops read and write one array in places that may overlap, as
far as the compiler knows, and would be left to single numbers. All other loops are plain Numba. Complex arrays are seen
as flat real ones, (real, imaginary) interleaved, and taken apart as they are loaded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import caching
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, overload, register_model

from mri_design.errors import say_once


def compiled(function: Callable[..., Any], fastmath: frozenset[str] = frozenset({"contract"})) -> Callable[..., Any]:
    """Compile a loop by ``numba.njit``, without the interpreter's lock, with fused multiply-add, cached on disk.

    Nothing else of IEEE arithmetic is relaxed, and no loop runs in several threads: the same input gives the same
    bits in every process on a machine. If no folder for the cache can be written, a line on stderr says so.
    """
    loop: Any = numba.njit(nogil=True, fastmath=set(fastmath), error_model="numpy")(function)
    try:
        loop._cache = _Cache(function)
    except RuntimeError:
        say_once(
            "compiled loops cannot be kept, as no folder for them can be written: every run compiles them anew, which "
            "takes up to a minute. Set NUMBA_CACHE_DIR to a folder that can be written."
        )
    return loop


def summing(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `compiled`, for sums whose terms may be added in another order, several side by side."""
    return compiled(function, frozenset({"contract", "reassoc"}))


class _Cache(caching.FunctionCache):
    """Numba's cache of one loop, which is stale as soon as any file of this folder changes: loops call each other.

    Files are written aside and renamed. Where that fails, as on a full disk, or a file cannot be read, the loop is
    compiled without them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(self._cache_path, self._impl.filename_base, _stamp())

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        with suppress(OSError, EOFError, UnpicklingError):
            yield


class _CacheFile(caching.IndexDataCacheFile):
    """Machine code kept with the types that it was compiled for, and with the stamp of its source.

    Numba numbers the files of a loop. Two processes that compile it for different types at a time can choose one
    number for both, and where a disk is full the code of an older version stays behind a new index.
    """

    def load(self, key: object) -> object:
        held = super().load(key)
        return held[1] if isinstance(held, tuple) and len(held) == 2 and held[0] == (self._source_stamp, key) else None

    def save(self, key: object, data: object) -> None:
        super().save(key, ((self._source_stamp, key), data))


@cache
def _stamp() -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of all files of compiled loops."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


COUNT = {4: 8, 8: 4}
"""Numbers side by side, by bytes of one: 256 bits."""


class Lanes(types.Type):
    """A register of floats."""

    def __init__(self, scalar: types.Float) -> None:
        self.scalar = scalar
        self.count = COUNT[scalar.bitwidth // 8]
        super().__init__(name=f"Lanes({scalar}, {self.count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Lanes) -> None:
        super().__init__(dmm, fe_type, _vector(fe_type))


def _vector(lanes: Lanes, times: int = 1) -> ir.VectorType:
    scalar = ir.FloatType() if lanes.scalar.bitwidth == 32 else ir.DoubleType()
    return ir.VectorType(scalar, lanes.count * times)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, vector: ir.VectorType) -> Any:
    """Of ``array[index:]`` as a register; only of an array that is flat and contiguous, or it would be other memory."""
    if not (isinstance(array_type, types.Array) and array_type.ndim == 1 and array_type.layout == "C"):
        raise TypingError(f"registers of {array_type}, which is no flat and contiguous array")
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _load(context: Any, builder: Any, array_type: Any, array: Any, index: Any, times: int = 1) -> Any:
    """A register, or one of ``times`` the length, from ``array[index:]``."""
    address = _address(context, builder, array_type, array, index, _vector(Lanes(array_type.dtype), times))
    return builder.load(address, align=array_type.dtype.bitwidth // 8)


def _store(context: Any, builder: Any, array_type: Any, array: Any, index: Any, register: Any) -> None:
    address = _address(context, builder, array_type, array, index, register.type)
    builder.store(register, address, align=array_type.dtype.bitwidth // 8)


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """Lanes from ``array[index:]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _load(context, builder, array, *arguments)

    return Lanes(array.dtype)(array, types.intp), generate


@intrinsic
def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """``array[index:] = value``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _store(context, builder, array, *arguments)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


def _loading_apart(group: int) -> Any:
    @intrinsic
    def load_apart(typingctx: Any, array: Any, index: Any) -> Any:
        lanes = Lanes(array.dtype)
        both = types.UniTuple(lanes, 2)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            mixed = _load(context, builder, array, arguments[0], arguments[1], times=2)
            places = range(2 * lanes.count)
            halves = [_shuffled(builder, mixed, [k for k in places if k // group % 2 == part]) for part in (0, 1)]
            return context.make_tuple(builder, both, halves)

        return both(array, types.intp), generate

    return load_apart


def _storing_together(group: int) -> Any:
    @intrinsic
    def store_together(typingctx: Any, array: Any, index: Any, first: Any, second: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            to, at, *halves = arguments
            order = [
                k // (2 * group) * group + k % group + (k // group % 2) * first.count for k in range(2 * first.count)
            ]
            _store(context, builder, array, to, at, builder.shuffle_vector(*halves, _choice(order)))
            return context.get_dummy_value()

        return types.void(array, types.intp, first, second), generate

    return store_together


# (even, odd) numbers of ``array[index:]``: real and imaginary parts, or every other real number.
load_pairs, store_pairs = _loading_apart(1), _storing_together(1)
# The same by twos: every other complex number, parts side by side.
load_twos, store_twos = _loading_apart(2), _storing_together(2)


@intrinsic
def load_doubled(typingctx: Any, array: Any, index: Any) -> Any:
    """Two lanes of ``array[index:]`` with every number twice: weights of real and imaginary parts."""
    lanes = Lanes(array.dtype)
    both = types.UniTuple(lanes, 2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        register, half = _load(context, builder, array, *arguments), lanes.count // 2
        halves = [_shuffled(builder, register, [k // 2 + side * half for k in range(lanes.count)]) for side in (0, 1)]
        return context.make_tuple(builder, both, halves)

    return both(array, types.intp), generate


@intrinsic
def transpose(typingctx: Any, source: Any, at: Any, step: Any, target: Any, to: Any, stride: Any) -> Any:
    """As many rows as there are lanes, ``step`` apart, written as columns, ``stride`` apart, to another array."""
    count = Lanes(source.dtype).count

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given, at, step, written, to, stride = arguments
        rows = []
        for _ in range(count):
            rows.append(_load(context, builder, source, given, at))
            at = builder.add(at, step)
        apart = 1
        while apart < count:  # blocks of this size change places across the diagonal (Eklundh 1972)
            upper = _choice([k if not k & apart else count + k - apart for k in range(count)])
            lower = _choice([k + apart if not k & apart else count + k for k in range(count)])
            for k in range(count):
                if not k & apart:
                    pair = rows[k], rows[k + apart]
                    rows[k] = builder.shuffle_vector(*pair, upper)
                    rows[k + apart] = builder.shuffle_vector(*pair, lower)
            apart *= 2
        for row in rows:
            _store(context, builder, target, written, to, row)
            to = builder.add(to, stride)
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, target, types.intp, types.intp), generate


@intrinsic
def fill(typingctx: Any, scalar: Any) -> Any:
    """The same number in every lane."""
    lanes = Lanes(scalar)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _spread(builder, arguments[0], lanes)

    return lanes(scalar), generate


@intrinsic
def load_filled(typingctx: Any, array: Any, index: Any) -> Any:
    """``array[index]``, an index not negative, in every lane."""
    lanes = Lanes(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(array)(context, builder, arguments[0]).data
        return _spread(builder, builder.load(builder.gep(data, [arguments[1]])), lanes)

    return lanes(array, types.intp), generate


def _spread(builder: Any, scalar: Any, lanes: Lanes) -> Any:
    nothing = ir.Constant(_vector(lanes), ir.Undefined)
    register = builder.insert_element(nothing, scalar, ir.Constant(ir.IntType(32), 0))
    return _shuffled(builder, register, [0] * lanes.count)


def _shuffled(builder: Any, register: Any, places: list[int]) -> Any:
    """The numbers of a register at these places."""
    return builder.shuffle_vector(register, ir.Constant(register.type, ir.Undefined), _choice(places))


def _choice(places: list[int]) -> ir.Constant:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)


def _arithmetic(function: Any, instruction: str) -> None:
    """Lanes with lanes, and scalar times lanes, for one of + - *."""

    @intrinsic
    def between(typingctx: Any, first: Any, second: Any) -> Any:
        lanes = first if isinstance(first, Lanes) else second

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            operands = [
                value if isinstance(kind, Lanes) else _spread(builder, value, lanes)
                for kind, value in zip(signature.args, arguments, strict=True)
            ]
            return getattr(builder, instruction)(*operands, flags=("contract",))

        return lanes(first, second), generate

    @overload(function)
    def typed(first, second):
        kinds = {value.scalar if isinstance(value, Lanes) else value for value in (first, second)}
        if len(kinds) == 1 and (isinstance(first, Lanes) or isinstance(second, Lanes)):
            return lambda first, second: between(first, second)
        return None


_arithmetic(operator.add, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")


@compiled
def weights_of(weights, first, parts, count):
    """Two lanes of the real ``weights[first:]``, each number twice where what it weighs has two parts."""
    return load_doubled(weights, first) if parts == 2 else (load(weights, first), load(weights, first + count))


@compiled
def load_parts(array, index, count):
    """Lanes of real parts and, ``count`` numbers further on, of imaginary ones."""
    return load(array, index), load(array, index + count)


@compiled
def store_parts(array, index, count, real, imaginary):
    """Write what `load_parts` reads."""
    store(array, index, real)
    store(array, index + count, imaginary)


@compiled
def load_four(array, at, count):
    """Four registers of ``array[at:]``, one after another."""
    return load(array, at), load(array, at + count), load(array, at + 2 * count), load(array, at + 3 * count)


@compiled
def store_four(array, at, count, first, second, third, fourth):
    """Write what `load_four` reads."""
    store(array, at, first)
    store(array, at + count, second)
    store(array, at + 2 * count, third)
    store(array, at + 3 * count, fourth)
