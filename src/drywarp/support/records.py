"""`dataclass`, whose methods are compiled when they are first called.

The standard one compiles five or six functions for each class at import, which was a third of what the imports of a
short run took, most of it for classes and methods that the run never uses. Here a class gets its fields and slots at
once, and stubs in place of its methods: the first call of one replaces it. All but `__init__` are the standard ones.

Two limits: no `InitVar`, and a class and its bases are all of this kind or all of the standard kind.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
_MISSING, _MADE = dataclasses.MISSING, object()

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, order=False, kw_only=False):
        """As `dataclasses.dataclass`."""

        def made(cls):
            if cls.__doc__ is None:
                cls.__doc__ = cls.__name__  # else the standard module works out a signature for it
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
            _add_stubs(cls, frozen, eq, order)
            if frozen:
                _freeze(cls)
            return cls

        return made if cls is None else made(cls)


def _add_stubs(cls: Any, frozen: bool, eq: bool, order: bool) -> None:
    """Give a class stubs of the methods that it does not define itself."""
    own = cls.__dict__
    if "__init__" not in own:
        cls.__init__ = _stub(cls, "__init__", frozen)
    names = ["__repr__"] * ("__repr__" not in own) + ["__eq__"] * (eq and "__eq__" not in own) + [*_ORDER] * order
    hashed = own.get("__hash__") is not None
    if eq and frozen and not hashed:
        names.append("__hash__")
    elif eq and not hashed:
        cls.__hash__ = None
    for name in names:
        setattr(cls, name, _stub(cls, name, frozen))


def _stub(cls: Any, name: str, frozen: bool) -> Any:
    def stub(self: Any, *given: Any, **named: Any) -> Any:
        written = _initializer(cls, frozen) if name == "__init__" else _standard(cls, name)
        setattr(cls, name, written)
        return written(self, *given, **named)

    stub.__name__, stub.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return stub


def _standard(cls: Any, name: str) -> Any:
    """The standard module's method for a class of the same fields: it does not depend on which class has it."""
    fields = dataclasses.fields(cls)
    body: dict[str, Any] = {each.name: each for each in fields}
    body["__annotations__"] = {each.name: each.type for each in fields}
    body |= {"__doc__": cls.__doc__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    like: Any = dataclasses.dataclass(
        init=False,
        repr=name == "__repr__",
        eq=name == "__eq__" or name in _ORDER,
        order=name in _ORDER,
        unsafe_hash=name == "__hash__",
    )(type(cls.__name__, (), body))
    return like.__dict__[name]


def _initializer(cls: Any, frozen: bool) -> Any:
    """The `__init__` that sets the fields, and that calls `__post_init__` if there is one."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_MADE": _MADE}
    plain, named, body = ["self"], list[str](), list[str]()
    slots = "__slots__" in cls.__dict__
    for each in dataclasses.fields(cls):
        name, made = each.name, each.default_factory is not _MISSING
        known[f"_default_{name}"] = each.default_factory if made else each.default
        value = f"_default_{name}() if {name} is _MADE else {name}" if made else name
        if each.init:
            default = "=_MADE" if made else f"=_default_{name}" if each.default is not _MISSING else ""
            (named if each.kw_only else plain).append(name + default)
        elif made or (slots and each.default is not _MISSING):
            value = f"_default_{name}()" if made else f"_default_{name}"
        else:
            continue
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    takes = ", ".join([*plain, *["*"] * bool(named), *named])
    exec(f"def __init__({takes}):\n  " + "\n  ".join(body or ["pass"]), known)
    written = known["__init__"]
    written.__qualname__ = f"{cls.__qualname__}.__init__"
    return written


def _freeze(cls: Any) -> None:
    """Refuse assignments to the fields, as the standard module does; slots are pickled past that."""
    names = frozenset(each.name for each in dataclasses.fields(cls))

    def refuse_set(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def refuse_del(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = refuse_set, refuse_del
    if "__slots__" in cls.__dict__ and "__getstate__" not in cls.__dict__:
        cls.__getstate__, cls.__setstate__ = _state, _restore


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
