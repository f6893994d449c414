"""Files of `jax.export`, in the compiler's process: their StableHLO, with numbers in place of symbolic sizes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib import import_module
from io import BytesIO
from operator import add, mul, sub
from typing import Any

_OPERATORS = {ast.Add: add, ast.Sub: sub, ast.Mult: mul}


def stablehlo_of(data: bytes, sizes: Mapping[str, int]) -> bytes:
    """Return the StableHLO of a serialized `Exported`, as text or bytecode. `sizes` are those of its symbols: {"b": 512}.

    Raise ValueError if jax is missing, the data is of another kind, or a symbol has no size.
    """
    try:
        export, jax = import_module("jax.export"), import_module("jax")
        exported = export.deserialize(bytearray(data))
    except ImportError as error:
        raise ValueError("a file of jax.export needs jax and flatbuffers: pip install jax flatbuffers") from error
    except Exception as error:  # flatbuffers and jax raise anything
        raise ValueError("is neither StableHLO nor a file of jax.export") from error
    if all(isinstance(size, int) for array in exported.in_avals for size in array.shape):
        return str(exported.mlir_module()).encode()
    arrays = [_with_sizes(jax, array, sizes) for array in exported.in_avals]
    arguments, keywords = jax.tree.unflatten(exported.in_tree, arrays)
    return _refined(jax.jit(exported.call).lower(*arguments, **keywords).compiler_ir("stablehlo"))


def _refined(module: Any) -> bytes:  # noqa: ANN401 - jaxlib has no types
    """Return a module as bytecode, with the sizes of all its arrays worked out from those of its arguments."""
    written = BytesIO()
    module.operation.write_bytecode(written)
    refine = import_module("jaxlib._jax").mlir.refine_polymorphic_shapes
    return bytes(refine(mlir_module=written.getvalue(), enable_shape_assertions=True, validate_static_shapes=True))


def _with_sizes(jax: Any, array: Any, sizes: Mapping[str, int]) -> Any:  # noqa: ANN401 - jax is not imported above
    shape = tuple(size if isinstance(size, int) else _value(str(size), sizes) for size in array.shape)
    return jax.ShapeDtypeStruct(shape, array.dtype)


def _value(text: str, sizes: Mapping[str, int]) -> int:
    """Return the number that a symbolic size stands for: a sum of products. Raise ValueError for any other expression."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in sizes:
                raise ValueError(f"the size {node.id} is not set; write --set {node.id}=N")
            return sizes[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return int(_OPERATORS[type(node.op)](value(node.left), value(node.right)))
        raise ValueError(f"the size {text} cannot be worked out")

    return value(ast.parse(text, mode="eval").body)
