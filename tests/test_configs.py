from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hlo_inspect import configs
from hlo_inspect.errors import Location, UsageError


def error_of(text: str) -> tuple[int | None, int | None, str]:
    with pytest.raises(UsageError) as caught:
        configs.parse(text, "some.yaml")
    assert caught.value.path == "some.yaml"
    return caught.value.line, caught.value.column, caught.value.message


def value(written: str) -> configs.Node:
    return configs.parse(f"a: {written}", "some.yaml").fields(allowed=("a",))["a"]


def test_nodes_have_kind_line_and_column() -> None:
    root = configs.parse("name: x\nlist:\n  - 1\n  - {deep: true}\nnothing:\n", "some.yaml")
    assert [(key.scalar, node.kind) for key, node in root.entries()] == [
        ("name", "text"),
        ("list", "list"),
        ("nothing", "null"),
    ]
    first, second = root.fields(allowed=("name", "list", "nothing"))["list"].items()
    assert (first.kind, first.scalar, first.line, first.column) == ("number", "1", 3, 5)
    key, inner = second.entries()[0]
    assert (key.scalar, key.location) == ("deep", Location("some.yaml", 4, 6))
    assert (inner.kind, inner.location) == ("bool", Location("some.yaml", 4, 12))


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("3", "number"),
        ("-0.5", "number"),
        ("1e12", "number"),
        ("0", "number"),
        ("010", "text"),
        ("0o7", "text"),
        ("0x1F", "text"),
        ("1_000", "text"),
        ("1:30", "text"),
        (".inf", "text"),
        ("2024-01-31", "text"),
        ("true", "bool"),
        ("True", "text"),
        ("yes", "text"),
        ("no", "text"),
        ("null", "null"),
        ("~", "null"),
        ("", "null"),
        ("'3'", "text"),
        ('"true"', "text"),
        ("''", "text"),
        ("2x8", "text"),
    ],
)
def test_the_kind_of_a_scalar_follows_its_spelling(written: str, kind: str) -> None:
    node = value(written)
    assert node.kind == kind
    assert node.scalar == written.strip("'\"")


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        ("a: 1\nb: 2\na: 3\n", (3, 1), "duplicate key 'a'; the first is on line 1"),
        ("a: {b: 1, 'b': 2}", (1, 11), "duplicate key 'b'; the first is on line 1"),
        ("a: &x 1\n", (1, 4), "an anchor (&name) or tag (!name) is not allowed"),
        ("a: !!int 1\n", (1, 4), "an anchor (&name) or tag (!name) is not allowed"),
        ("a: !!python/object/apply:os.system [ls]\n", (1, 4), "an anchor (&name) or tag (!name) is not allowed"),
        ("a: != 3\n", (1, 4), "text that begins with & or ! needs quotes"),
        ("b:\n  a: *x\n", (2, 6), "an alias (*name) is not allowed"),
        ("a: 1\n---\nb: 2\n", (3, 1), "a second YAML document is not allowed; use one file for each"),
        ("? [1]\n: 2\n", (1, 3), "a key must be text, not a list or mapping"),
        ("a: >= 3\n", (1, 5), "text that begins with > or | needs quotes"),
        ("a: [1, 2\n", (2, 1), "not valid YAML"),
        ("a: 1\n b: 2\n", (2, 3), "not valid YAML"),
        ("a: 1\nb: \x07\n", (2, 4), "not valid YAML"),
        ("[" * 30 + "]" * 30, (1, 21), "the value is nested more than 20 levels deep"),
        ("", (None, None), "is empty"),
        ("# a comment\n", (None, None), "is empty"),
    ],
)
def test_refused_yaml_is_an_error_with_its_position(text: str, place: tuple[int | None, int | None], part: str) -> None:
    line, column, message = error_of(text)
    assert (line, column) == place
    assert part in message


def test_an_error_shows_the_key_but_not_the_value() -> None:
    with pytest.raises(UsageError) as caught:
        configs.parse("a: 1\nbb: *x\n", "some.yaml")
    assert str(caught.value).splitlines()[1:] == ["  bb:", "      ^"]


@pytest.mark.parametrize(
    "text",
    [
        "root:$6$secret:19000:0:99999:7:::\ndaemon:*:19000\n",
        "-----BEGIN KEY-----\nsecret\nsecret\n-----END KEY-----\n",
        "TOKEN=secret\nOTHER=secret\n",
        "token: secret\npassword: {deep: secret}\n",
        "password: secret: secret\n",
        "a: [secret, secret\n",
        "a: 'secret\n",
        '{"token": "secret"}',
        "- token: secret\n",
        "a: secret\n\tb: secret\n",
        'x: "\\secret"\n',
    ],
)
def test_errors_print_no_values(text: str) -> None:
    """A file that was named by mistake may hold secrets."""
    with pytest.raises(UsageError) as caught:
        configs.parse(text, "some.yaml").fields(allowed=("checks",))
    assert "secret" not in str(caught.value)


def test_a_file_above_1_mib_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("a: 1\n" * 250_000)
    with pytest.raises(UsageError, match="is larger than 1 MiB"):
        configs.read(path)


def test_reading_is_the_same_with_and_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: 1\nb:\n  - {c: 'x'}\n  - |\n    text\nd: ~\n"
    by_libyaml = configs.parse(text, "some.yaml")
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert str(configs.parse(text, "some.yaml")) == str(by_libyaml)


def test_errors_about_keys_list_allowed_or_missing_keys() -> None:
    node = configs.parse("name: x\npeek: 3\n", "some.yaml")
    with pytest.raises(UsageError) as caught:
        node.fields(allowed=("name", "peak"))
    assert caught.value.location == Location("some.yaml", 2, 1)
    assert caught.value.message == "unknown key 'peek'; the keys are name, peak; did you mean 'peak'?"
    with pytest.raises(UsageError) as caught:
        node.fields(allowed=("name", "peek", "a", "b"), required=("a", "name", "b"))
    assert caught.value.location == Location("some.yaml", 1, 1)
    assert caught.value.message == "missing keys: a, b"


@pytest.mark.parametrize(
    ("written", "getter", "message"),
    [
        ("3", "text", "expected a value of kind text, found number; put text in quotes"),
        ("true", "text", "expected a value of kind text, found bool; put text in quotes"),
        ("[1]", "text", "expected a value of kind text, found list"),
        ("", "text", "expected a value of kind text, found null"),
        ("x", "items", "expected a value of kind list, found text"),
        ("[1]", "entries", "expected a value of kind mapping, found list"),
    ],
)
def test_getters_refuse_other_kinds(written: str, getter: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        getattr(value(written), getter)()
    assert caught.value.message == message
    assert caught.value.line == 1


def test_a_choice_must_be_one_of_the_options() -> None:
    assert value("warning").choice(("error", "warning")) == "warning"
    with pytest.raises(UsageError) as caught:
        value("warn").choice(("error", "warning"))
    assert caught.value.message == "'warn' is not one of error, warning; did you mean 'warning'?"


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        configs.read(tmp_path / "absent.yaml")
    assert caught.value.message == "cannot be read: No such file or directory"
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"a: caf\xe9\n")
    with pytest.raises(UsageError) as caught:
        configs.read(latin)
    assert (caught.value.message, caught.value.path) == ("is not UTF-8 text (byte 6); save it as UTF-8", str(latin))


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_bytes("\ufeffa: 1\r\nb: 2\r\n".encode())
    (_, first), (_, second) = configs.read(path).entries()
    assert (first.scalar, first.line, first.column) == ("1", 1, 4)
    assert (second.scalar, second.line, second.column) == ("2", 2, 4)


def test_shipped_files_are_beside_the_package_in_a_source_checkout() -> None:
    root = Path(configs.__file__).parent.parent
    assert configs.shipped_configs("hardware") == root / "configs" / "hardware"


def test_shipped_files_are_inside_the_package_when_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "hlo_inspect"
    (package / "configs" / "checks").mkdir(parents=True)
    monkeypatch.setattr(configs, "__file__", str(package / "configs.py"))
    assert configs.shipped_configs("checks") == package / "configs" / "checks"
