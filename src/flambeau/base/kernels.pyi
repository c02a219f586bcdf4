"""Written by tools/stubs.py."""

# ruff: noqa
# mypy: ignore-errors

from typing import Any

from flambeau.base.enums import (
    Bind as Bind,
    Conv as Conv,
    Distribution as Distribution,
    Draw as Draw,
    Element as Element,
    Field as Field,
    Form as Form,
    Lapack as Lapack,
    Library as Library,
    Op as Op,
    Order as Order,
    Out as Out,
    Polynomial as Polynomial,
    Product as Product,
    Recurrence as Recurrence,
    Segment as Segment,
    Sharing as Sharing,
    Sign as Sign,
    Slot as Slot,
    Step as Step,
    Transform as Transform,
    Way as Way,
)

ELEMENTS: Any
ORDERED: Any

def element(*args: Any, **kwargs: Any) -> Any: ...
def find(*args: Any, **kwargs: Any) -> Any: ...
def given(*args: Any, **kwargs: Any) -> Any: ...
def named(*args: Any, **kwargs: Any) -> Any: ...
def __getattr__(name: str) -> Any: ...
