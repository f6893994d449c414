"""Texts of one shape at any size: large programs, and texts that cost too much if an analysis has no bound.

Each function takes a size and returns text about proportional to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

Maker = Callable[[int], str]


class TextShape(NamedTuple):
    """A text that grows. `first` is the smallest measured size: large enough to cost more than the fixed cost of a run."""

    name: str
    make: Maker
    first: int


def entry(lines: Iterable[str], header: str = "HloModule m") -> str:
    """Write a module of one computation."""
    return f"{header}\n\nENTRY e {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


SUM = (
    "sum (a: f32[], b: f32[]) -> f32[] {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"
)
P = "p = f32[4] parameter(0)"


def _names(prefix: str, count: int) -> str:
    return ", ".join(f"{prefix}{i}" for i in range(count))


def _tuple_of(count: int) -> str:
    return f"({', '.join(['f32[4]'] * count)})"


# -- texts that cost too much if an analysis has no bound  -----------------------------------------------------------------


def sums_and_products(n: int) -> str:
    lines = ["a0 = f32[4] parameter(0)", "b0 = f32[4] parameter(1)"]
    for i in range(n):
        lines += [f"a{i + 1} = f32[4] add(a{i}, b{i})", f"b{i + 1} = f32[4] multiply(a{i}, b{i})"]
    return entry([*lines, f"ROOT r = (f32[4], f32[4]) tuple(a{n}, b{n})"])


def doubled_sum(n: int) -> str:
    lines = ["w = f32[4] parameter(0)", "a0 = f32[4] parameter(1)", *(f"a{i + 1} = f32[4] add(a{i}, a{i})" for i in range(n))]
    header = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }"
    return entry([*lines, f"s = f32[4] subtract(w, a{n})", "ROOT r = (f32[4]) tuple(s)"], header)


def weights_in_a_chain(n: int) -> str:
    aliases = ", ".join(f"{{{i}}}: ({i}, {{}}, may-alias)" for i in range(n))
    lines = [f"w{i} = f32[64,64] parameter({i})" for i in range(n)] + [f"x0 = f32[64,64] parameter({n})"]
    lines += [f"x{i + 1} = f32[64,64] multiply(x{i}, w{i})" for i in range(n)]
    lines += [f"s{i} = f32[64,64] subtract(w{i}, x{i + 1})" for i in range(n)]
    shapes = ", ".join(["f32[64,64]"] * n)
    header = f"HloModule m, input_output_alias={{ {aliases} }}"
    return entry([*lines, f"ROOT r = ({shapes}) tuple({_names('s', n)})"], header)


def momenta_in_a_chain(n: int) -> str:
    """Write a step with momentum: each weight multiplies the value before it, and each gradient depends on all weights."""
    shape, outputs = "f32[64]", f"{_names('u', n)}, {_names('v', n)}"
    aliases = ", ".join(f"{{{i}}}: ({i}, {{}}, may-alias)" for i in range(2 * n))
    lines = [f"{'m' if i >= n else 'w'}{i % n} = {shape} parameter({i})" for i in range(2 * n)]
    lines += [f"h0 = {shape} parameter({2 * n})"]
    for name, value in (("keep", 0.9), ("take", 0.1), ("rate", 0.01)):
        lines += [f"{name}.0 = f32[] constant({value})", f"{name} = {shape} broadcast({name}.0), dimensions={{}}"]
    lines += [f"h{i + 1} = {shape} multiply(h{i}, w{i})" for i in range(n)]
    for i in range(n):
        lines += [f"g{i} = {shape} multiply(h{n}, h{i + 1})", f"a{i} = {shape} multiply(keep, m{i})"]
        lines += [f"b{i} = {shape} multiply(take, g{i})", f"v{i} = {shape} add(a{i}, b{i})"]
        lines += [f"s{i} = {shape} multiply(rate, v{i})", f"u{i} = {shape} subtract(w{i}, s{i})"]
    root = f"ROOT r = ({', '.join([shape] * (2 * n))}) tuple({outputs})"
    return entry([*lines, root], f"HloModule m, input_output_alias={{ {aliases} }}")


def call_of_itself(n: int) -> str:
    lines = [P, "a0 = f32[4] call(p), to_apply=e", *(f"a{i + 1} = f32[4] multiply(a{i}, p)" for i in range(n))]
    return entry([*lines, f"ROOT r = f32[4] subtract(p, a{n})"])


def iota_shardings(n: int) -> str:
    sizes = [(1 << 20) - i for i in range(n)]
    return entry(f"p{i} = f32[1048576] parameter({i}), sharding={{devices=[{s}]<=[{s}]}}" for i, s in enumerate(sizes))


def iota_groups(n: int) -> str:
    groups = (f"[{100_000 + i},2]<=[2,{100_000 + i}]T(1,0)" for i in range(n))
    lines = [f"r{i} = f32[4] all-reduce(p), replica_groups={text}, to_apply=sum" for i, text in enumerate(groups)]
    return SUM.join(["HloModule m\n\n", entry([P, *lines]).partition("\n\n")[2]])


def unclosed_string(n: int) -> str:
    return entry(['ROOT p = f32[4] parameter(0), metadata={op_name="' + 'a\\"' * n])


def unclosed_strings(n: int) -> str:
    return entry(f'p{i} = f32[4] parameter({i}), metadata={{op_name="a' for i in range(n))


def unclosed_heads(n: int) -> str:
    return "HloModule m\n\n" + "".join(f"c{i} (p: f32[]) -> f32[] {{\n" for i in range(n))


def unclosed_signatures(n: int) -> str:
    return "HloModule m\n\n" + "".join(f"c{i} (p: f32[]\n" for i in range(n))


def headers_without_modules(n: int) -> str:
    return "HloModule m\n" * n


def unclosed_comments(n: int) -> str:
    return entry(f"p{i} = f32[4] parameter({i}) /* no end" for i in range(n))


def unclosed_brackets(n: int) -> str:
    return entry(f"p{i} = f32[4] add((((p, q" for i in range(n))


def nested_loops(n: int) -> str:
    shape, trips = "(s32[], f32[4])", 'backend_config={"known_trip_count":{"n":"999999999999999999"}}'
    text = "HloModule m\n\n"
    for i in reversed(range(n)):
        inner = f"x = {shape} while(p), condition=cond, body=body{i + 1}, {trips}" if i + 1 < n else f"x = {shape} copy(p)"
        lines = [f"p = {shape} parameter(0)", inner, "d = f32[4] get-tuple-element(x), index=1", "y = f32[4] add(d, d)"]
        lines += ["i = s32[] get-tuple-element(x), index=0", f"ROOT r = {shape} tuple(i, y)"]
        text += entry(lines, "").replace("ENTRY e", f"body{i}").lstrip() + "\n"
    condition = [f"p = {shape} parameter(0)", "ROOT c = pred[] constant(true)"]
    text = text + entry(condition, "").replace("ENTRY e", "cond").lstrip() + "\n"
    last = [f"p = {shape} parameter(0)", f"ROOT w = {shape} while(p), condition=cond, body=body0, {trips}"]
    return text + entry(last, "").lstrip()


# -- constructs that large programs repeat ------------------------------------------------------------------------------------


def leaves_of_one_shape(n: int) -> str:
    lines = [f"p{i} = f32[4] parameter({i})" for i in range(n)] + [f"n{i} = f32[4] negate(p{i})" for i in range(n)]
    return entry([*lines, f"ROOT r = {_tuple_of(n)} tuple({_names('n', n)})"])


def leaves_of_many_shapes(n: int) -> str:
    lines = [f"p{i} = f32[{i + 1}] parameter({i})" for i in range(n)] + [f"n{i} = f32[{i + 1}] negate(p{i})" for i in range(n)]
    shapes = ", ".join(f"f32[{i + 1}]" for i in range(n))
    return entry([*lines, f"ROOT r = ({shapes}) tuple({_names('n', n)})"])


def tuple_of_one_value(n: int) -> str:
    return entry([P, f"ROOT r = {_tuple_of(n)} tuple({', '.join(['p'] * n)})"])


def elements_of_a_tuple(n: int) -> str:
    lines = [f"p = {_tuple_of(n)} parameter(0)", *(f"g{i} = f32[4] get-tuple-element(p), index={i}" for i in range(n))]
    return entry([*lines, f"ROOT r = {_tuple_of(n)} tuple({_names('g', n)})"])


def one_long_computation(n: int) -> str:
    return entry([P, *(f"a{i} = f32[4] exponential({'p' if not i else f'a{i - 1}'})" for i in range(n))])


def many_computations(n: int) -> str:
    text = "".join(
        f"f{i} (p: f32[4]) -> f32[4] {{\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] negate(p)\n}}\n\n" for i in range(n)
    )
    lines = [f"a{i} = f32[4] fusion({'p' if not i else f'a{i - 1}'}), kind=kLoop, calls=f{i}" for i in range(n)]
    return "HloModule m\n\n" + text + entry([P, *lines]).partition("\n\n")[2]


def calls_that_double(n: int) -> str:
    text = "f0 (p: f32[4]) -> f32[4] {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] negate(p)\n}\n\n"
    for i in range(1, n):
        calls = f"  a = f32[4] call(p), to_apply=f{i - 1}\n  ROOT b = f32[4] call(a), to_apply=f{i - 1}\n"
        text += f"f{i} (p: f32[4]) -> f32[4] {{\n  p = f32[4] parameter(0)\n{calls}}}\n\n"
    return "HloModule m\n\n" + text + entry([P, f"ROOT r = f32[4] call(p), to_apply=f{n - 1}"]).partition("\n\n")[2]


def many_loops(n: int) -> str:
    shape = "(s32[], f32[4])"
    text = "HloModule m\n\n"
    for i in range(n):
        body = [
            f"p = {shape} parameter(0)",
            "i = s32[] get-tuple-element(p), index=0",
            "x = f32[4] get-tuple-element(p), index=1",
        ]
        body += ["one = s32[] constant(1)", "j = s32[] add(i, one)", f"ROOT r = {shape} tuple(j, x)"]
        condition = [f"p = {shape} parameter(0)", "i = s32[] get-tuple-element(p), index=0", f"c = s32[] constant({i + 2})"]
        condition += ["ROOT l = pred[] compare(i, c), direction=LT"]
        text += entry(body, "").replace("ENTRY e", f"body{i}").lstrip() + "\n"
        text += entry(condition, "").replace("ENTRY e", f"cond{i}").lstrip() + "\n"
    loops = [f"w{i} = {shape} while({f'w{i - 1}' if i else 't'}), condition=cond{i}, body=body{i}" for i in range(n)]
    return text + entry([P, "z = s32[] constant(0)", f"t = {shape} tuple(z, p)", *loops], "").lstrip()


def many_branches(n: int) -> str:
    text = "".join(f"b{i} (p: f32[4]) -> f32[4] {{\n  ROOT p = f32[4] parameter(0)\n}}\n\n" for i in range(n))
    operands = ", ".join(["p"] * n)
    switch = f"ROOT r = f32[4] conditional(i, {operands}), branch_computations={{{_names('b', n)}}}"
    return "HloModule m\n\n" + text + entry([P, "i = s32[] parameter(1)", switch]).partition("\n\n")[2]


def many_channels(n: int) -> str:
    lines = [
        f"r{i} = f32[4] all-reduce({'p' if not i else f'r{i - 1}'}), channel_id={i + 1}, replica_groups={{{{0,1}},{{2,3}}}},"
        " use_global_device_ids=true, to_apply=sum"
        for i in range(n)
    ]
    return "HloModule m, num_partitions=4\n\n" + SUM + entry([P, *lines], "").lstrip()


def many_groups(n: int) -> str:
    """Write collectives with distinct groups."""
    orders = (f"{{{{0,{1 + i % 7}}},{{{10 + i},{11 + i}}}}}" for i in range(n))
    lines = [f"r{i} = f32[4] all-reduce(p), replica_groups={text}, to_apply=sum" for i, text in enumerate(orders)]
    return "HloModule m\n\n" + SUM + entry([P, *lines], "").lstrip()


def one_long_group_list(n: int) -> str:
    groups = ",".join(f"{{{2 * i},{2 * i + 1}}}" for i in range(n))
    lines = [f"r{i} = f32[4] all-reduce(p), replica_groups={{{groups}}}, to_apply=sum" for i in range(3)]
    return "HloModule m\n\n" + SUM + entry([P, *lines], "").lstrip()


def permutation_pairs(n: int) -> str:
    pairs = ",".join(f"{{{i},{(i + 1) % n}}}" for i in range(n))
    return entry([P, f"ROOT r = f32[4] collective-permute(p), channel_id=1, source_target_pairs={{{pairs}}}"])


def tiled_shardings(n: int) -> str:
    listed = ((4, "[2,2]"), (8, "[2,4]"), (8, "[4,2]"), (4, "[4,1]"))
    lines = []
    for i in range(n):
        size, tiles = listed[i % 4]
        lines.append(f"p{i} = f32[{i + 8},8] parameter({i}), sharding={{devices={tiles}<=[{size}]}}")
    return entry(lines)


def sharding_of_a_tuple(n: int) -> str:
    shardings = ", ".join(f"{{devices=[{2 + i % 6},1]<=[{2 + i % 6}]}}" for i in range(n))
    return entry([f"ROOT p = ({', '.join(['f32[8,8]'] * n)}) parameter(0), sharding={{{shardings}}}"])


def many_aliases(n: int) -> str:
    aliases = ", ".join(f"{{{i}}}: ({i}, {{}}, may-alias)" for i in range(n))
    lines = [f"p{i} = f32[4] parameter({i})" for i in range(n)]
    header = f"HloModule m, input_output_alias={{ {aliases} }}"
    return entry([*lines, f"ROOT r = {_tuple_of(n)} tuple({_names('p', n)})"], header)


def many_donors(n: int) -> str:
    donors = ", ".join(f"({i}, {{}})" for i in range(n))
    lines = [f"p{i} = f32[{4 + i}] parameter({i})" for i in range(n)]
    return entry([*lines, "ROOT r = f32[4] negate(p0)"], f"HloModule m, buffer_donor={{ {donors} }}")


def long_attribute_lists(n: int) -> str:
    return entry([P, "ROOT r = f32[4] negate(p)" + "".join(f", attribute_{i}={i}" for i in range(n))])


def long_backend_config(n: int) -> str:
    fields = ",".join(f'"key{i}":[{i},{{"a":{i}}}]' for i in range(n))
    return entry([P, f'ROOT r = f32[4] custom-call(p), custom_call_target="t", backend_config={{{fields}}}'])


def nested_tuple(n: int) -> str:
    return entry([f"ROOT p = {'(' * n}f32[4]{')' * n} parameter(0)"])


def nested_brackets(n: int) -> str:
    return entry([P, f"ROOT r = f32[4] negate(p), attribute={'{' * n}{'}' * n}"])


def nested_operands(n: int) -> str:
    """Write instructions in place of operands, nested."""
    return entry([P, "ROOT r = " + "f32[4] negate(" * n + "p" + ")" * n])


def nested_computations(n: int) -> str:
    """Write computations in place of their names, nested."""
    begin = "".join(f"r{i} = f32[4] call(p{i}), to_apply={{\n p{i + 1} = f32[4] parameter(0)\n" for i in range(n))
    return entry(["p0 = f32[4] parameter(0)", begin + f"ROOT q = f32[4] negate(p{n})\n" + "}\n" * n])


def branches_in_place(n: int) -> str:
    """Write many branches of one conditional in place of their names."""
    return entry(
        [P, "ROOT r = f32[] conditional(p), branch_computations={" + ", ".join(["{\nROOT c = f32[] constant(1) }"] * n) + "}"]
    )


def roots_that_disagree(n: int) -> str:
    """Write computations without a root. In every second one the last instruction has another type than the signature."""
    results = ("f32[4]", "f32[5]")
    return (
        "HloModule m\n\n"
        + "".join(f"f{i} (p: f32[4]) -> {results[i % 2]} {{\n  {P}\n}}\n\n" for i in range(n))
        + entry([P], "")
    )


def many_stack_frames(n: int) -> str:
    rows = range(1, n + 1)
    tables = "FileNames\n" + "".join(f'{i} "file{i}.py"\n' for i in rows)
    tables += "\nFunctionNames\n" + "".join(f'{i} "function{i}"\n' for i in rows)
    tables += "\nFileLocations\n" + "".join(f"{i} {{file_name_id={i} function_name_id={i} line={i}}}\n" for i in rows)
    tables += "\nStackFrames\n" + "".join(f"{i} {{file_location_id={i} parent_frame_id={i}}}\n" for i in rows)
    lines = [f'a{i} = f32[4] all-gather(p), dimensions={{0}}, metadata={{op_name="s/a" stack_frame_id={i}}}' for i in rows]
    return f"HloModule m\n\n{tables}\n" + entry([P, *lines], "").lstrip()


def many_scopes(n: int) -> str:
    return entry([P, *(f'a{i} = f32[4] negate(p), metadata={{op_name="jit(f)/layer_{i}/sub_{i}/neg"}}' for i in range(n))])


def one_long_scope(n: int) -> str:
    return entry([P, f'ROOT a = f32[4] all-gather(p), dimensions={{0}}, metadata={{op_name="{"jvp(a)/" * n}x"}}'])


def names_defined_twice(n: int) -> str:
    return entry([P, *(["a = f32[4] negate(p)"] * n)])


def names_not_defined(n: int) -> str:
    return entry(f"a{i} = f32[4] negate(nobody{i})" for i in range(n))


def computations_not_defined(n: int) -> str:
    return entry([P, *(f"a{i} = f32[4] call(p), to_apply=nobody{i}" for i in range(n))])


def computations_of_one_name(n: int) -> str:
    computation = "f (p: f32[4]) -> f32[4] {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] negate(p)\n}\n\n"
    return "HloModule m\n\n" + computation * n + entry([P, "ROOT r = f32[4] call(p), to_apply=f"], "").lstrip()


def lines_that_are_no_hlo(n: int) -> str:
    return entry([P, *(line for i in range(n) for line in (f"this is nothing {i}", f"a{i} = f32[4] negate(p)"))])


def log_with_braces(n: int) -> str:
    return "".join(f"step {i} {{\n  loss (0.5) -> 0.25 {{\n}}\n" for i in range(n)) + entry([P])


def lines_not_as_printed(n: int) -> str:
    return entry([P, *(f'a{i}  =  f32[4]  negate( p )  ,  metadata = {{ op_name = "x" }}' for i in range(n))])


def one_line(n: int) -> str:
    return "HloModule m ENTRY e { p = f32[4] parameter(0) " + " ".join(f"a{i} = f32[4] negate(p)" for i in range(n)) + " }\n"


def long_constant(n: int) -> str:
    values = ", ".join(f"{i}.5" for i in range(n))
    return entry([f"ROOT c = f32[{n}] constant({{{values}}})"])


def custom_calls(n: int) -> str:
    return entry([P, *(f'a{i} = f32[4] custom-call(p), custom_call_target="target_{i}"' for i in range(n))])


def fusion_of_many_operands(n: int) -> str:
    inside = [f"q{i} = f32[4] parameter({i})" for i in range(n)] + ["s0 = f32[4] negate(q0)"]
    inside += [f"s{i} = f32[4] add(s{i - 1}, q{i})" for i in range(1, n)]
    fused = entry(inside, "").replace("ENTRY e", "f").lstrip()
    lines = [f"p{i} = f32[4] parameter({i})" for i in range(n)]
    lines.append(f"ROOT r = f32[4] fusion({_names('p', n)}), kind=kLoop, calls=f")
    return "HloModule m\n\n" + fused + "\n" + entry(lines, "").lstrip()


def many_modules(n: int) -> str:
    module = entry([P, "ROOT r = f32[4] negate(p)"])
    return "".join(module.replace("HloModule m", f"HloModule m{i}") + "\n" for i in range(n))


def writes_in_a_chain(n: int) -> str:
    """Write into one buffer again and again, and read it after each write."""
    lines = [f'b0 = f32[{n},4] custom-call(), custom_call_target="AllocateBuffer"', "p = f32[1,4] parameter(0)"]
    lines.append("z = s32[] constant(0)")
    for i in range(n):
        lines += [f"i{i} = s32[] constant({i})", f"b{i + 1} = f32[{n},4] dynamic-update-slice(b{i}, p, i{i}, z)"]
        lines.append(f"s{i} = f32[1,4] slice(b{i + 1}), slice={{[0:1], [0:4]}}")
        lines.append(f"a{i} = f32[1,4] add({f'a{i - 1}' if i else 'p'}, s{i})")
    return entry(lines)


def sums_of_copies(n: int) -> str:
    """Chain copies, and sum each over devices."""
    lines = [P]
    for i in range(n):
        lines += [f"c{i} = f32[4] copy({f'c{i - 1}' if i else 'p'})", f"r{i} = f32[4] all-reduce(c{i}), to_apply=sum"]
        lines.append(f"a{i} = f32[4] add({f'a{i - 1}' if i else 'p'}, r{i})")
    return "HloModule m, num_partitions=8\n\n" + SUM + entry(lines, "").lstrip()


def slices_of_devices(n: int) -> str:
    """Write slices that begin at the device's number plus multiples of a parameter, and a result in another sharding."""
    lines = ["p = f32[8] parameter(0)", "q = u32[] parameter(1)", "i0 = u32[] partition-id()"]
    for i in range(n):
        lines += [f"i{i + 1} = u32[] add(i{i}, q)", f"d{i} = f32[4] dynamic-slice(p, i{i + 1}), dynamic_slice_sizes={{4}}"]
        lines.append(f"a{i} = f32[4] add({f'a{i - 1}' if i else 'd0'}, d{i})")
    return entry(lines, "HloModule m, num_partitions=8")


def many_shardings_of_results(n: int) -> str:
    """Write results of a partitioned program, none with the shape of an argument."""
    lines = [f"p{i} = f32[{2 * i + 3},8] parameter({i})" for i in range(n)] + ["z = f32[] constant(0)"]
    lines += [f"o{i} = f32[{2 * i + 3},9] pad(p{i}, z), padding=0_0x0_1" for i in range(n)]
    shapes = ", ".join(f"f32[{2 * i + 3},9]" for i in range(n))
    return entry([*lines, f"ROOT r = ({shapes}) tuple({_names('o', n)})"], "HloModule m, num_partitions=8")


def sums_in_fusions(n: int) -> str:
    """Write fusions that each add up the same array, which a chain of tuples hands on."""
    lines = ["e0 = f32[4] parameter(0)", "a0 = f32[] parameter(1)"]
    for i in range(n):
        lines += [f"t{i} = (f32[4]) tuple(e{i})", f"e{i + 1} = f32[4] get-tuple-element(t{i}), index=0"]
    for i in range(n):
        lines += [f"f{i} = f32[] fusion(e{n}), kind=kLoop, calls=one", f"a{i + 1} = f32[] add(a{i}, f{i})"]
    body = [P, "z = f32[] constant(0)", "ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=sum"]
    fused = "one (p: f32[4]) -> f32[] {\n" + "".join(f"  {line}\n" for line in body) + "}\n\n"
    return "HloModule m\n\n" + SUM + fused + entry(lines, "").lstrip()


def histories_of_a_weight(n: int) -> str:
    """Write a step of descent, and buffers that receive values made of the weight."""
    lines = [f"h{i} = f32[3,4] parameter({i + 2})" for i in range(n)]
    lines += ["s0 = f32[4] parameter(0)", "x = f32[9,4] parameter(1)", f"i = s32[] parameter({n + 2})"]
    lines += ["y = f32[9] dot(x, s0), lhs_contracting_dims={1}, rhs_contracting_dims={0}"]
    lines += ["g = f32[4] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "w = f32[4] subtract(s0, g)"]
    for i in range(n):
        lines += [f"s{i + 1} = f32[4] sine(s{i})", f"r{i} = f32[1,4] reshape(s{i + 1})"]
        lines.append(f"n{i} = f32[3,4] dynamic-update-slice(h{i}, r{i}, i, i)")
    root = f"ROOT t = (f32[4], {', '.join(['f32[3,4]'] * n)}) tuple(w, {_names('n', n)})"
    return entry([*lines, root], "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }")


def loops_in_bodies_of_loops(n: int) -> str:
    """Write loops in sequence, each with a body of the same number of loops, four deep."""
    text = "HloModule m\n\nb0 (w0: (f32[4])) -> (f32[4]) {\n  ROOT w0 = (f32[4]) parameter(0)\n}\n\n"
    for depth in range(1, 5):
        loops = [f"w{i + 1} = (f32[4]) while(w{i}), condition=c, body=b{depth - 1}" for i in range(n)]
        body = "".join(f"  {line}\n" for line in ("w0 = (f32[4]) parameter(0)", *loops[:-1], f"ROOT {loops[-1]}"))
        text += f"b{depth} (w0: (f32[4])) -> (f32[4]) {{\n{body}}}\n\n"
    lines = [P, "t = (f32[4]) tuple(p)", "w = (f32[4]) while(t), condition=c, body=b4"]
    return text + entry([*lines, "ROOT r = f32[4] get-tuple-element(w), index=0"], "").lstrip()


SHAPES = (
    TextShape("sums and products", sums_and_products, 200),
    TextShape("x = x + x", doubled_sum, 500),
    TextShape("weights in a chain", weights_in_a_chain, 100),
    TextShape("momenta in a chain", momenta_in_a_chain, 100),
    TextShape("a call of itself", call_of_itself, 200),
    TextShape("shardings of 2^20 devices", iota_shardings, 40),
    TextShape("groups of 200,000 devices", iota_groups, 40),
    TextShape("an unclosed string", unclosed_string, 20_000),
    TextShape("unclosed strings", unclosed_strings, 2_000),
    TextShape("unclosed heads", unclosed_heads, 4_000),
    TextShape("unclosed signatures", unclosed_signatures, 16_000),
    TextShape("HloModule lines", headers_without_modules, 10_000),
    TextShape("unclosed comments", unclosed_comments, 2_000),
    TextShape("unclosed brackets", unclosed_brackets, 2_000),
    TextShape("nested loops", nested_loops, 200),
    TextShape("leaves of one shape", leaves_of_one_shape, 1_000),
    TextShape("leaves of many shapes", leaves_of_many_shapes, 1_000),
    TextShape("a tuple of one value", tuple_of_one_value, 10_000),
    TextShape("elements of a tuple", elements_of_a_tuple, 2_000),
    TextShape("one long computation", one_long_computation, 5_000),
    TextShape("many computations", many_computations, 1_000),
    TextShape("calls that double", calls_that_double, 500),
    TextShape("many loops", many_loops, 300),
    TextShape("many branches", many_branches, 2_000),
    TextShape("many channels", many_channels, 1_000),
    TextShape("many groups", many_groups, 1_000),
    TextShape("one long list of groups", one_long_group_list, 5_000),
    TextShape("pairs of a permutation", permutation_pairs, 10_000),
    TextShape("shardings", tiled_shardings, 1_000),
    TextShape("the sharding of a tuple", sharding_of_a_tuple, 1_000),
    TextShape("many aliases", many_aliases, 1_000),
    TextShape("many donors", many_donors, 1_000),
    TextShape("long lists of attributes", long_attribute_lists, 10_000),
    TextShape("a long backend_config", long_backend_config, 5_000),
    TextShape("a nested tuple", nested_tuple, 1_000),
    TextShape("nested brackets", nested_brackets, 10_000),
    TextShape("nested operands", nested_operands, 500),
    TextShape("nested computations", nested_computations, 200),
    TextShape("branches in place", branches_in_place, 2000),
    TextShape("roots that disagree", roots_that_disagree, 2000),
    TextShape("stack frames", many_stack_frames, 1_000),
    TextShape("scopes", many_scopes, 2_000),
    TextShape("a long scope", one_long_scope, 10_000),
    TextShape("names defined twice", names_defined_twice, 2_000),
    TextShape("names not defined", names_not_defined, 2_000),
    TextShape("computations not defined", computations_not_defined, 2_000),
    TextShape("computations of one name", computations_of_one_name, 1_000),
    TextShape("lines that are no HLO", lines_that_are_no_hlo, 1_000),
    TextShape("a log with braces", log_with_braces, 5_000),
    TextShape("lines not as printed", lines_not_as_printed, 1_000),
    TextShape("all on one line", one_line, 1_000),
    TextShape("a long constant", long_constant, 20_000),
    TextShape("custom calls", custom_calls, 1_000),
    TextShape("a fusion of many operands", fusion_of_many_operands, 500),
    TextShape("many modules", many_modules, 100),
    TextShape("writes in a chain", writes_in_a_chain, 500),
    TextShape("sums of copies", sums_of_copies, 1_000),
    TextShape("slices of devices", slices_of_devices, 1_000),
    TextShape("many shardings of results", many_shardings_of_results, 1_000),
    TextShape("sums in fusions", sums_in_fusions, 1_000),
    TextShape("histories of a weight", histories_of_a_weight, 500),
    TextShape("loops in bodies of loops", loops_in_bodies_of_loops, 50),
)
