"""How many bytes the temporaries of one memory space take together."""

from __future__ import annotations

from hlo_inspect.analysis.memory.allocations import Assignment


def temporary_bytes(assignment: Assignment, heap: int, thread_local: int, alignment: int, space: int) -> int:
    """The heap and the tables of tuples, end to end, each at the next multiple of the alignment
    (`BufferAssignment::CombineTempAllocations`).

    The order decides how the last one is rounded. Tables come in the order in which they are assigned, the heap after them,
    then `thread_local` allocations of what is applied to elements; `std::partition` moves what is temporary behind the rest.
    """
    sizes: list[int | None] = [
        one.bytes if one.kind == "temporary" and one.space == space else None for one in assignment.allocations
    ]
    if space in assignment.heaps:
        sizes.append(heap)
    total = 0
    for size in partitioned([*sizes, *[None] * thread_local]):
        total = -(-total // alignment) * alignment + size
    return total


def partitioned(sizes: list[int | None]) -> list[int]:
    """The sizes in the order in which `std::partition` of libstdc++ leaves them behind the others."""
    first, last = 0, len(sizes)
    while True:
        while first != last and sizes[first] is None:
            first += 1
        if first == last:
            break
        last -= 1
        while first != last and sizes[last] is not None:
            last -= 1
        if first == last:
            break
        sizes[first], sizes[last] = sizes[last], sizes[first]
        first += 1
    return [size for size in sizes[first:] if size is not None]
