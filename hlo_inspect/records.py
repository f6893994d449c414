"""`dataclass` as the standard library has it, in a third of the time: a command that starts makes dozens of such classes.

The standard decorator compiles up to six functions for each class. Here `__init__` alone is compiled, and the other methods are
functions over the names of the fields. It takes the options and fields that this package uses, for classes that do not derive
from one another: `fields`, `replace`, `asdict`, `copy` and `pickle` take them as any others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

C = TypeVar("C", bound=type)

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - for who imports it from here
else:

    def dataclass(cls: C | None = None, /, **options: bool) -> C | Callable[[C], C]:
        """The decorator; `options` are `frozen`, `slots`, `eq` and `repr`."""
        return _record(cls, **options) if cls is not None else partial(_record, **options)


def _record(cls: C, *, frozen: bool = False, slots: bool = False, eq: bool = True, repr: bool = True) -> C:  # noqa: A002 - the standard's name
    """The class as a dataclass."""
    own = vars(cls).keys()
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    fields = dataclasses.fields(made)
    made.__init__ = _initializer(made, fields, frozen=frozen)
    if repr and "__repr__" not in own:
        made.__repr__ = _representation([field.name for field in fields if field.repr])
    if eq:
        values = _values([field.name for field in fields if field.compare])
        if "__eq__" not in own:
            made.__eq__ = _equality(values)
        if "__hash__" not in own:
            made.__hash__ = _hashing(values) if frozen else None
    if frozen:
        made.__setattr__, made.__delattr__ = _refuse_to_assign, _refuse_to_delete
        if slots:
            made.__getstate__, made.__setstate__ = _state, _set_state
    return made  # type: ignore[no-any-return]


def _initializer(cls: type, fields: Sequence[Field[Any]], *, frozen: bool) -> Callable[..., None]:
    """`__init__`, which takes the fields in their order."""
    known: dict[str, Any] = {"_MISSING": MISSING}
    parameters, lines = ["self"], []
    for field in fields:
        name, value, default = field.name, field.name, f"_default_{field.name}"
        if field.default is not MISSING:
            known[default] = field.default
            parameters.append(f"{name}={default}")
        elif field.default_factory is not MISSING:
            known[default] = field.default_factory
            parameters.append(f"{name}=_MISSING")
            value = f"{default}() if {name} is _MISSING else {name}"
        else:
            parameters.append(name)
        if not frozen:
            lines.append(f" self.{name} = {value}")
        elif "__slots__" in vars(cls):
            known[f"_set_{name}"] = getattr(cls, name).__set__
            lines.append(f" _set_{name}(self, {value})")
        else:
            lines.append(f" self.__dict__[{name!r}] = {value}")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"]), known)  # noqa: S102 - of names of fields
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__module__ = cls.__module__
    made.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return made


def _values(names: Sequence[str]) -> Callable[[Any], Any]:
    """The values of these fields, of which two can be compared; of one field its value."""
    return attrgetter(*names) if names else lambda _: ()


def _representation(names: Sequence[str]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:  # noqa: ANN401, N807 - any class
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return recursive_repr("...")(__repr__)


def _equality(values: Callable[[Any], Any]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:  # noqa: ANN401, N807 - any class
        return bool(values(self) == values(other)) if type(other) is type(self) else NotImplemented

    return __eq__


def _hashing(values: Callable[[Any], Any]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:  # noqa: ANN401, N807 - any class
        return hash(values(self))

    return __hash__


def _refuse_to_assign(_self: object, name: str, _value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> dict[str, Any]:  # noqa: ANN401 - any class
    """What `pickle` and `copy` take; those of slots would be assigned."""
    return {name: getattr(self, name) for name in type(self).__dataclass_fields__}


def _set_state(self: object, state: Mapping[str, Any]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)
