"""Programs for one device that together use many HLO operators, control flow and large constants."""

from __future__ import annotations

from typing import Any

from programs import Arg, Program, jax, jnp, lax


def control_flow(_mesh: Any) -> Program:
    """Run a loop of known and one of unknown trip count, a two-way and a three-way branch."""

    def step(flag: Any, choice: Any, limit: Any, x: Any) -> Any:
        x = lax.fori_loop(0, 5, lambda i, v: v * 1.5 + i, x)
        x = lax.while_loop(lambda v: jnp.sum(v) < limit, lambda v: v * v + 1.0, x)
        x = lax.cond(flag, jnp.sin, lambda v: v @ v, x)
        return lax.switch(choice, [jnp.tanh, jnp.exp, lambda v: lax.sort(v, dimension=0)], x)

    args = (Arg((), "bool"), Arg((), "int32"), Arg(()), Arg((8, 8)))
    return Program(step, args, truth={"params.count": 4, "params.unused_count": 0, "optimizer.name": "none"})


def array_operators(_mesh: Any) -> Program:
    """Operators that move, select, window, sort and look up; the attributes of each have a form of their own."""

    def step(x: Any, image: Any, kernel: Any, index: Any) -> Any:
        conv = lax.conv_general_dilated(
            image, kernel, (2, 1), ((1, 1), (0, 2)), rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        pooled = lax.reduce_window(image, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        pool_grad = jax.grad(lambda v: jnp.sum(lax.reduce_window(v, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")))(
            image
        )
        gathered = x[index]
        scattered = x.at[index].add(gathered * 2.0, mode="drop", unique_indices=True)
        padded = lax.pad(x, 0.5, ((1, 2, 1), (0, -1, 0)))
        piece = lax.dynamic_slice(x, (index[0], 0), (2, 4))
        updated = lax.dynamic_update_slice(x, piece, (0, index[1]))
        keys, values = lax.sort((x, lax.broadcasted_iota(jnp.int32, x.shape, 1)), dimension=1, num_keys=1, is_stable=True)
        top, where = lax.top_k(x, 3)
        joined = lax.concatenate([lax.rev(x, (0,)), lax.slice(x, (0, 1), (8, 8), (2, 3)).T.reshape(1, 12)[:, :8]], 0)
        window = jnp.cumsum(x, axis=1)
        largest = lax.reduce_max(x, (0, 1))
        return conv, pooled, pool_grad, scattered, padded, updated, keys, values, top, where, joined, window, largest

    args = (Arg((8, 8)), Arg((1, 8, 8, 2)), Arg((3, 3, 2, 4)), Arg((4,), "int32"))
    return Program(step, args, truth={"params.count": 4, "params.unused_count": 0})


def number_operators(_mesh: Any) -> Program:
    """Element-wise operators and a batched product, with half-precision and integer types."""

    def step(x: Any, y: Any, half: Any, bits: Any) -> Any:
        wave = lax.erf(x) + lax.log1p(jnp.abs(x)) + lax.expm1(x) + lax.atan2(x, y) + lax.cbrt(x) + lax.logistic(x)
        mixed = lax.dot_general(half, half, (((2,), (1,)), ((0,), (0,))), preferred_element_type=jnp.float32)
        reduced = lax.reduce_precision(x, 5, 10) + jnp.round(x) + lax.clamp(-1.0, x, 1.0) + lax.rem(x, y)
        logic = lax.population_count(bits) ^ lax.clz(bits) | lax.shift_left(bits, jnp.uint32(3)) & ~bits
        floats = lax.bitcast_convert_type(bits, jnp.float32)
        kept = lax.optimization_barrier((x * 2.0, bits))
        choice = jnp.where(lax.is_finite(x) & (x > y), x, lax.nextafter(x, y))
        return wave, mixed, reduced, logic, floats, kept, choice

    args = (Arg((8, 8)), Arg((8, 8)), Arg((2, 4, 4), "float16"), Arg((6,), "uint32"))
    return Program(step, args, truth={"params.count": 4, "params.unused_count": 0})


def linear_algebra(_mesh: Any) -> Program:
    """Operators with an algorithm behind them: a transform, a factorisation, a solve, random bits; complex numbers."""

    def step(x: Any, spd: Any, state: Any) -> Any:
        spectrum = lax.fft(x.astype(jnp.complex64), "FFT", (8,))
        lower = lax.linalg.triangular_solve(jnp.tril(spd), x, left_side=True, lower=True)
        factor = lax.linalg.cholesky(spd)
        new_state, random = lax.rng_bit_generator(state, (4,), dtype=jnp.uint32)
        return spectrum.real, spectrum.imag * jnp.abs(spectrum), lower, factor, new_state, random

    args = (Arg((8, 8)), Arg((8, 8)), Arg((4,), "uint32"))
    return Program(step, args, truth={"params.count": 3, "params.unused_count": 0})


def constants(_mesh: Any) -> Program:
    """Constants of rank 0 to 4 and of several element types, which the printer can elide or write out."""

    def step(x: Any) -> Any:
        table = jnp.asarray([[column * 0.25 - row for column in range(6)] for row in range(4)], jnp.float32)
        cube = jnp.asarray([i * 7 % 11 - 5 for i in range(16)], jnp.int32).reshape(2, 2, 2, 2)
        mask = jnp.asarray([[True, False, True], [False, False, True]])
        special = jnp.asarray([jnp.inf, -jnp.inf, jnp.nan], jnp.float32)
        pair = jnp.asarray([1 + 2j, -0.5j], jnp.complex64)
        half = jnp.asarray([0.1, 65280.0], jnp.bfloat16)
        return x @ table, lax.rev(cube, (0,)), mask, special + x[0, 0], pair * 2, half + half

    return Program(step, (Arg((3, 4)),), truth={"params.count": 1, "params.unused_count": 0})
