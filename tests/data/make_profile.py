"""Makes `profile/`: a step of a small network on CPU as text, and a recorded profile of its runs, under jax 0.10.2.

`python make_profile.py`. The profile is what `jax.profiler` recorded, less everything but the executions of the step: other
threads, other programs, and the machine.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FOLDER = Path(__file__).parent / "profile"
RUNS, WIDTH, BATCH = 5, 512, 256
STATS = ("hlo_op", "hlo_module", "program_id", "run_id", "device_ordinal", "_p", "_c")


def step_of(jax: Any) -> Any:
    jnp: Any = import_module("jax.numpy")

    def step(weights: Any, batch: Any) -> Any:
        def loss(weights: Any) -> Any:
            return jnp.mean((jnp.tanh(batch @ weights["in"]) @ weights["out"]) ** 2)

        return jax.tree.map(lambda weight, slope: weight - 0.1 * slope, weights, jax.grad(loss)(weights))

    return jax.jit(step, donate_argnums=0)


def recorded(jax: Any, compiled: Any, weights: Any, batch: Any) -> Any:
    """Run the step and return the profile of all runs but the first."""
    weights = compiled(weights, batch)  # the warm-up
    jax.block_until_ready(weights)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            for _ in range(RUNS):
                weights = compiled(weights, batch)
                jax.block_until_ready(weights)
        (path,) = Path(folder).rglob("*.xplane.pb")
        return jax.profiler.ProfileData.from_file(str(path))


def executions(profile: Any) -> Iterator[tuple[str, list[tuple[str, int, int, dict[str, Any]]]]]:
    """Yield the lines of CPUs with the events of executions and of their ends. A number stands for the name of the thread."""
    (plane,) = (plane for plane in profile.planes if plane.name == "/host:CPU")
    for number, line in enumerate(plane.lines):
        events = []
        for event in line.events:
            stats = {key: value for key, value in event.stats if key in STATS}
            if "hlo_op" in stats or (event.name.startswith("end: ") and "_c" in stats):
                events.append((event.name, round(event.start_ns), round(event.duration_ns), stats))
        if events:
            yield f"thread {number}", events


def text_of(lines: list[tuple[str, list[Any]]]) -> str:
    """Return an XSpace of one plane as text of its protocol buffer. Times begin with the first event."""
    begin = min(start for _, events in lines for _, start, _, _ in events)
    names: dict[str, int] = {}
    keys: dict[str, int] = {}

    def stat(key: str, value: Any) -> str:
        number = keys.setdefault(key, len(keys) + 1)
        return f"stats {{ metadata_id: {number} " + (
            f'str_value: "{value}" }}' if isinstance(value, str) else f"int64_value: {value} }}"
        )

    text = 'planes { name: "/host:CPU"\n'
    for name, events in lines:
        text += f'lines {{ name: "{name}" timestamp_ns: 0\n'
        for event, start, duration, stats in events:
            number = names.setdefault(event, len(names) + 1)
            times = f"offset_ps: {(start - begin) * 1000} duration_ps: {duration * 1000}"
            text += f"events {{ metadata_id: {number} {times} {' '.join(stat(*pair) for pair in stats.items())} }}\n"
        text += "}\n"
    for kind, table in (("event", names), ("stat", keys)):
        for name, number in table.items():
            text += f'{kind}_metadata {{ key: {number} value {{ id: {number} name: "{name}" }} }}\n'
    return text + "}\n"


def main() -> None:
    jax: Any = import_module("jax")
    jnp: Any = import_module("jax.numpy")
    weights = {"in": jnp.full((WIDTH, 4 * WIDTH), 0.01), "out": jnp.full((4 * WIDTH, WIDTH), 0.01)}
    batch = jnp.full((BATCH, WIDTH), 0.1)
    compiled = step_of(jax).lower(weights, batch).compile()
    FOLDER.mkdir(exist_ok=True)
    here = re.escape(str(Path(__file__).parent))
    (FOLDER / "mlp.hlo.xz").write_bytes(lzma.compress(re.sub(here, "/train", compiled.as_text()).encode()))
    data = import_module("jaxlib._profile_data").ProfileData
    lines = list(executions(recorded(jax, compiled, weights, batch)))
    (FOLDER / "mlp.xplane.pb").write_bytes(data.text_proto_to_serialized_xspace(text_of(lines)))


if __name__ == "__main__":
    main()
