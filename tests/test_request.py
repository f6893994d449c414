"""The options of a request: one list for commands, keywords of Python and other processes."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

import click
import pytest

import hlo_inspect
from hlo_inspect.cli.commands import COMMANDS, find_command
from hlo_inspect.request import OPTIONS, Request
from tests.calling import call_text

DATA = Path(__file__).parent / "data"
TEXT = "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(p)\n}\n"
READING = ("summary", "params", "collectives", "time", "memory", "check", "diff", "list", "report", "show")


def flags(command: str) -> dict[str, click.Option]:
    offered = find_command(command)
    assert offered is not None
    return {flag: option for option in offered.params if isinstance(option, click.Option) for flag in option.opts}


@pytest.mark.parametrize("command", READING)
def test_a_command_offers_the_options_that_it_takes(command: str) -> None:
    offered = flags(command)
    for option in OPTIONS:
        takes_it = not option.info.commands or command in option.info.commands
        assert not option.info.flags or (option.flag in offered) == takes_it, option.name


@pytest.mark.parametrize("command", READING)
def test_command_line_options_have_defaults_and_help_of_the_request(command: str) -> None:
    for flag, option in flags(command).items():
        field = next((field for field in OPTIONS if field.flag == flag), None)
        if field is not None:
            assert option.help == field.info.help
            assert option.name == field.name
            assert option.multiple == field.is_many
            assert (() if option.multiple else option.get_default(click.Context(click.Command(command)))) in (field.default, ())


def test_each_option_has_help_and_refers_to_known_names() -> None:
    assert [option.name for option in OPTIONS if not option.info.help] == []
    takers = {command for option in OPTIONS for command in option.info.commands}
    assert takers <= COMMANDS.keys()
    assert {option.info.needs for option in OPTIONS} - {""} <= {option.name for option in OPTIONS}


@pytest.mark.parametrize("function", [hlo_inspect.inspect, hlo_inspect.inspect_all])
def test_python_keywords_are_the_options(function: object) -> None:
    assert callable(function)
    parameters = list(signature(function).parameters)
    assert parameters == ["source", *(option.name for option in OPTIONS)]
    assert all(f"  {option.name}: {option.info.help}" in (function.__doc__ or "") for option in OPTIONS)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"profil": "h100-sxm"}, "there is no option 'profil'; did you mean 'profile'"),
        ({"quik": True}, "there is no option 'quik'; did you mean 'quick'"),
        ({"passes": "collectives", "depth": 3}, "collectives takes no option 'depth', which is one of show"),
        (
            {"passes": "optimizer", "quick": True},
            "optimizer takes no option 'quick', which is one of summary, params, memory, list, show",
        ),
        ({"passes": "collectives", "alpha": "d0=1"}, "--alpha needs --cost-model"),
        ({"platform": "gpus"}, "--platform is one of cpu, gpu, tpu, not 'gpus'"),
        ({"passes": "show", "name": "n", "depth": -1}, "--depth is 0 or more, not -1"),
        ({"jobs": 0}, "--jobs is 1 or more, not 0"),
    ],
)
def test_an_invalid_option_is_a_usage_error(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(hlo_inspect.UsageError, match=message):
        hlo_inspect.inspect(TEXT, **keywords)  # type: ignore[arg-type]


def test_an_alias_takes_the_options_of_its_pass() -> None:
    assert hlo_inspect.inspect(TEXT, "parameters", quick=True).left_out_rules == ("undonated-parameter",)


def test_source_may_be_a_keyword() -> None:
    assert hlo_inspect.inspect(source=TEXT, passes="params").facts["params.count"] == 1  # type: ignore[call-arg]


def test_other_processes_receive_the_same_options() -> None:
    """Mesh axes have the user's names in every process."""
    files = [DATA / f"cpu/{name}.after.txt" for name in ("adamw_step", "scan_fsdp", "collectives")]
    arguments = ("collectives", *map(str, files), "--mesh", "data=2,model=4", "--format", "json", "--phases", "names")
    single, parallel = call_text(*arguments), call_text(*arguments, "-j", "2")
    assert single.stdout == parallel.stdout
    assert '"data"' in single.stdout


def test_given_lists_the_options_that_differ_from_their_defaults() -> None:
    request = Request("memory", quick=True, profile=("h100-sxm",), what_if=(), jobs=1)
    assert [option.flag for option in request.given()] == ["passes", "--quick", "--profile"]
    assert request.profiles == ("h100-sxm",)
    assert (Request(profile="a").profiles, Request(what_if="b=2x").changes, Request("c").pass_names) == (
        ("a",),
        ("b=2x",),
        ("c",),
    )
