"""Programs of one device run on CPU, in the compiler's process: their inputs, and outputs held against expected ones.

Arrays lie in files of numpy (.npz) in the order of the program. Types that numpy lacks, such as bf16, are those of ml_dtypes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

OUTPUTS = "outputs.npz"
"""File of the outputs, in the folder of XLA's files."""
_TYPES = {"i1": "bool", "f16": "float16", "f32": "float32", "f64": "float64", "complex<f32>": "complex64"}
_TYPES |= {f"{sign}{bits}": f"{name}{bits}" for sign, name in (("i", "int"), ("ui", "uint")) for bits in (8, 16, 32, 64)}
_TYPES |= {"bf16": "bfloat16", "complex<f64>": "complex128", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2"}
_FOREIGN = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})
"""Types of ml_dtypes, which numpy writes as bytes without a type."""

Array = Any
"""numpy's, which has no types here."""


def write_arrays(kinds: Sequence[Any], names: Sequence[str], wanted: str, path: str, seed: int, to: str) -> None:
    """Write arrays of these types to a file: those of the file `path`, or without one arrays made from a seed.

    Arrays are taken by the names of the arguments if all are there, else in the order of the file. Raise ValueError if number,
    shape or type differ from those that are `wanted`: "argument" or "output".
    """
    import numpy as np

    types = [_dtype(str(kind.element_type)) for kind in kinds]
    shapes = [tuple(kind.shape) for kind in kinds]
    if path:
        arrays = _read(path, names, types, shapes, wanted)
    else:
        random = np.random.default_rng(seed)
        arrays = [_made(random, shape, dtype) for shape, dtype in zip(shapes, types, strict=True)]
    np.savez(to, *arrays)


def outputs_differ(executable: Any, inputs: str, expected: str, tolerance: int, folder: str) -> dict[str, Any]:  # noqa: ANN401
    """Run an executable on inputs and count the elements that differ from the expected ones. Write the outputs to the folder.

    The answer has `elements`, `different` and `ulp`: the largest distance in units in the last place, None if it has none.
    """
    import numpy as np

    jax, device = import_module("jaxlib._jax"), executable.local_devices()[0]
    arguments = [jax.dlpack_managed_tensor_to_buffer(_capsule(array), device, None) for array in _in_order(inputs)]
    results = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    outputs = [np.asarray(shards[0]) for shards in results]
    np.savez(Path(folder) / OUTPUTS, *outputs)
    answer: dict[str, Any] = {"elements": sum(array.size for array in outputs), "different": 0, "ulp": 0}
    for output, right in zip(outputs, _in_order(expected) if expected else outputs, strict=True):
        different, ulp = _difference(output, _typed(right, output.dtype), tolerance)
        answer["different"] += different
        if different:
            answer["ulp"] = None if ulp is None or answer["ulp"] is None else max(answer["ulp"], ulp)
    return answer


def _dtype(name: str) -> Array:
    """Return numpy's type for one of MLIR. Raise ValueError for those that have none."""
    import numpy as np

    if name not in _TYPES:
        raise ValueError(f"an array of {name} cannot be read or made; the types are {', '.join(sorted(_TYPES))}")
    own = _TYPES[name]
    return np.dtype(getattr(import_module("ml_dtypes"), own) if own in _FOREIGN else own)


def _typed(array: Array, dtype: Array) -> Array:
    """Return an array with its type, if numpy wrote bytes without one."""
    return array.view(dtype) if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize else array


def _in_order(path: str) -> list[Array]:
    import numpy as np

    with np.load(path) as archive:
        return [archive[name] for name in archive.files]


def _read(path: str, names: Sequence[str], types: Sequence[Any], shapes: Sequence[Any], wanted: str) -> list[Array]:
    """Return the arrays of a file in the order of the program. Raise ValueError if they do not fit it."""
    import numpy as np

    try:
        with np.load(path) as archive:
            listed: Mapping[str, Array] = {name: archive[name] for name in archive.files}
    except Exception as error:  # numpy raises anything, AttributeError for a file of a single array too
        raise ValueError(f"is no file of numpy.savez that can be read: {error}") from error
    if len(listed) != len(types):
        raise ValueError(f"has {len(listed)} arrays, the program {len(types)} {wanted}s")
    if set(names) == set(listed):
        listed = {name: listed[name] for name in names}
    arrays: list[Array] = []
    for (name, array), dtype, shape in zip(listed.items(), types, shapes, strict=True):
        typed = _typed(array, dtype)
        if (typed.dtype, typed.shape) != (dtype, shape):
            number = len(arrays)
            has = f"{typed.dtype}{list(typed.shape)}"
            raise ValueError(f"{name} is {has}; {wanted} {number} of the program is {dtype}{list(shape)}")
        arrays.append(typed)
    return arrays


def _made(random: Any, shape: Sequence[int], dtype: Array) -> Array:  # noqa: ANN401 - numpy's generator
    """Return an array of normal numbers, or of integers from 0 to 9."""
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    return (random.integers(0, 10, shape) if dtype.kind in "iu" else random.standard_normal(shape)).astype(dtype)


def _capsule(array: Array) -> Array:
    """Return an array as the capsule that XLA takes. Raise ValueError for types that numpy cannot hand over."""
    try:
        return array.__dlpack__()
    except (BufferError, TypeError) as error:
        raise ValueError("arguments of types that numpy lacks, such as bf16, cannot be handed to the program") from error


def _difference(output: Array, expected: Array, tolerance: int) -> tuple[int, int | None]:
    """Return how many elements differ by more than the tolerance, and the largest distance in ULP; None between integers."""
    import numpy as np

    if output.dtype.kind == "c":
        half = output.real.dtype
        output, expected = output.reshape(-1).view(half), expected.reshape(-1).view(half)
    equal = (output == expected) | ((output != output) & (expected != expected))  # noqa: PLR0124 - NaN differs from itself
    if output.dtype.kind in "biu" or equal.all():
        return int((~equal).sum()), None if output.dtype.kind in "biu" else 0
    bits = f"i{output.dtype.itemsize}"
    distance = np.abs(_ordered(output, bits) - _ordered(expected, bits))
    finite = (output == output) & (expected == expected)  # noqa: PLR0124
    wrong = ~equal & ((distance > tolerance) | ~finite)
    return int(wrong.sum()), int(distance[wrong & finite].max(initial=0)) if (wrong & finite).any() else None


def _ordered(array: Array, bits: str) -> Array:
    """Return the numbers of floats in their order: neighbours differ by 1."""
    import numpy as np

    whole = np.ascontiguousarray(array).view(bits).astype("object" if bits == "i8" else "int64")
    least = -(1 << (8 * int(bits[1:]) - 1))
    return np.where(whole < 0, least - whole, whole)
