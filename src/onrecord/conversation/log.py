"""Log: an append-only sequence whose views never change.

A view is a shared growing list and a length. Appending to the newest view is O(1); appending to an older one copies
the list up to that view. Whatever is cached beside a list (projected bytes, chained digests) is a list parallel to
it, comes along when the list is copied, and never needs to be invalidated, since slots are never rewritten.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar, overload

__all__ = ("Beside", "Log")

T = TypeVar("T")
_blank = object.__new__


class Beside(Protocol):
    """Something parallel to a log's list, kept with it."""

    def cut(self, size: int) -> Beside:
        """An independent copy that covers the first ``size`` items."""
        ...


class _Shared(Generic[T]):
    __slots__ = ("beside", "items")

    def __init__(self, items: list[T], beside: dict[Hashable, Beside]) -> None:
        self.items = items
        self.beside = beside


class Log(Sequence[T]):
    """An immutable view of an append-only list. Safe to append to from several threads; equal by items."""

    __slots__ = ("_shared", "_size")

    def __init__(self, items: Iterable[T] = ()) -> None:
        held = list(items)
        self._shared: _Shared[T] = _Shared(held, {})
        self._size = len(held)

    @classmethod
    def _view(cls, shared: _Shared[T], size: int) -> Log[T]:
        view = cls.__new__(cls)
        view._shared, view._size = shared, size
        return view

    def append(self, item: T) -> Log[T]:
        """A view with one item more."""
        shared, size = self._shared, self._size
        items = shared.items
        if len(items) == size:
            items.append(item)
            # Another thread may have appended in between: the slot is ours only if it holds our item.
            if items[size] is item:
                view: Log[T] = _blank(Log)  # `_view` without its call: this is what every message costs
                view._shared, view._size = shared, size + 1
                return view
        return self.cut(size).append(item)

    def extend(self, more: Iterable[T]) -> Log[T]:
        """A view with several items more."""
        view = self
        for item in more:
            view = view.append(item)
        return view

    def cut(self, size: int) -> Log[T]:
        """A log of its own with the first ``size`` items; what is kept beside the list comes along."""
        beside = {key: kept.cut(size) for key, kept in list(self._shared.beside.items())}
        return self._view(_Shared(self._shared.items[:size], beside), size)

    def upto(self, size: int) -> Log[T]:
        """An older view of the same list: its first ``size`` items."""
        return self._view(self._shared, min(size, self._size))

    def since(self, start: int) -> list[T]:
        """The items from ``start`` on."""
        return self._shared.items[start : self._size]

    def shared_with(self, other: Log[T]) -> int:
        """How many leading items are the very same objects in both. O(1) for views of one list."""
        if self._shared is other._shared:
            return min(self._size, other._size)
        mine, theirs = self._shared.items, other._shared.items
        for i in range(limit := min(self._size, other._size)):
            if mine[i] is not theirs[i]:
                return i
        return limit

    @property
    def beside(self) -> dict[Hashable, Beside]:
        """What is kept parallel to the list behind this view, by key."""
        return self._shared.beside

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        return iter(self._shared.items[: self._size])

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._size)
            if step < 0:  # counted backwards, a stop of -1 means the front and not the last item
                return self._shared.items[: self._size][index]
            return self._shared.items[start:stop:step]
        size = self._size
        if index < 0:
            index += size
        if not 0 <= index < size:
            raise IndexError(index)
        return self._shared.items[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Log):
            return NotImplemented
        if self._size != other._size:
            return False
        if self._shared is other._shared:
            return True
        return self._shared.items[: self._size] == other._shared.items[: self._size]

    # Equal by items, which grow: no key for a dict.
    __hash__ = None  # type: ignore[assignment]  # Python's way to say so, for which type checkers have no type

    def __reduce__(self) -> tuple[type[Log[T]], tuple[list[T]]]:
        """Its items alone go elsewhere: what is kept beside them belongs to this process and is made again."""
        return Log, (self.since(0),)

    def __repr__(self) -> str:
        return f"Log({self._size} items)"
