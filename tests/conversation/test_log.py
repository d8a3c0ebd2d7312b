"""A log's views never change; appending to the newest is cheap; what hangs beside it is cut along."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.conversation.log import Log

pytestmark = pytest.mark.unit


def test_a_view_keeps_its_items_when_others_append() -> None:
    """Newer views see more; older ones see what they saw."""
    empty: Log[int] = Log()
    one = empty.append(1)
    two = one.append(2)
    three = two.append(3)
    assert [list(view) for view in (empty, one, two, three)] == [[], [1], [1, 2], [1, 2, 3]]


def test_appending_to_an_older_view_is_a_branch() -> None:
    """Neither branch sees the other's items."""
    trunk = Log([1, 2])
    left = trunk.append(3)
    right = trunk.append(4)
    assert (list(left), list(right), list(trunk)) == ([1, 2, 3], [1, 2, 4], [1, 2])
    assert (left.shared_with(right), left.shared_with(trunk)) == (2, 2)


def test_a_log_is_a_sequence() -> None:
    """Indices, slices, membership and iteration as a list has them."""
    plain = list(range(10))
    log = Log(plain).append(10).upto(10)
    for index in (*range(-10, 10),):
        assert log[index] == plain[index]
    for start in (None, -20, -3, 0, 2, 9, 20):
        for stop in (None, -20, -3, 0, 2, 9, 20):
            for step in (None, 1, 2, -1, -3):
                assert log[start:stop:step] == plain[start:stop:step]
    assert (len(log), 9 in log, 10 in log, log.index(4), list(reversed(log))) == (10, True, False, 4, plain[::-1])
    assert (log.since(7), log.since(12), list(log.upto(3)), list(log.upto(30))) == ([7, 8, 9], [], [0, 1, 2], plain)
    for outside in (10, -11, 99):
        with pytest.raises(IndexError):
            log[outside]
    assert repr(log) == "Log(10 items)"


def test_logs_are_equal_by_their_items() -> None:
    """Views of one list, or of several; to nothing else, and with no hash."""
    one, other = Log([1, 2]).append(3), Log([1, 2, 3, 4]).upto(3)
    assert one == other
    assert one != other.append(5)
    assert one != one.upto(2)
    assert one.upto(2).append(9) != one
    assert one != [1, 2, 3]
    with pytest.raises(TypeError):
        hash(one)


class Doubled:
    """Something parallel to a list: twice each item."""

    def __init__(self, items: list[int]) -> None:
        self.items = items

    def cut(self, size: int) -> "Doubled":
        return Doubled(self.items[:size])


def test_what_hangs_beside_a_log_is_cut_along() -> None:
    """A branch has a copy for what both share, and the trunk's stays as it is."""
    log = Log([1, 2, 3])
    log.beside["twice"] = Doubled([2, 4, 6])
    newer = log.append(4)
    assert newer.beside is log.beside
    branch = log.upto(2).append(9)
    kept = branch.beside["twice"]
    assert isinstance(kept, Doubled)
    assert kept.items == [2, 4]
    kept.items.append(18)
    trunk = log.beside["twice"]
    assert isinstance(trunk, Doubled)
    assert trunk.items == [2, 4, 6]


def test_a_cut_is_a_log_of_its_own() -> None:
    """Appending to it never touches where it came from."""
    log = Log([1, 2, 3])
    cut = log.cut(2)
    assert (list(cut.append(9)), list(log), list(cut)) == ([1, 2, 9], [1, 2, 3], [1, 2])
    assert log.cut(3) == log


@given(st.lists(st.tuples(st.integers(0, 30), st.integers()), max_size=40))
def test_views_never_change_whatever_is_appended_where(appends: list[tuple[int, int]]) -> None:
    """Any view may be the next one to grow: all of them keep showing what they showed."""
    views: list[tuple[Log[int], list[int]]] = [(Log(), [])]
    for place, item in appends:
        log, items = views[place % len(views)]
        views.append((log.append(item), [*items, item]))
    assert [list(log) for log, _ in views] == [items for _, items in views]


def together(work: Callable[[int], Any], threads: int = 8) -> list[Any]:
    """What real threads make of it, all let go at once."""
    barrier = threading.Barrier(threads)

    def begin(n: int) -> Any:
        barrier.wait()
        return work(n)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def test_threads_that_append_to_one_view_get_views_of_their_own() -> None:
    """Hammered from eight threads, a shared view never changes and nobody sees another's item."""
    for _ in range(30):
        trunk = Log(range(5))

        def grow(n: int, trunk: Log[int] = trunk) -> tuple[list[int], Log[int]]:
            mine, view = list(range(5)), trunk
            for k in range(100):
                view = view.append(n * 1000 + k)
                mine.append(n * 1000 + k)
            return mine, view

        for mine, view in together(grow):
            assert list(view) == mine
        assert list(trunk) == list(range(5))


def test_readers_see_a_view_that_stands_still_while_others_append() -> None:
    """Iteration, length and slices of a view are the same before, during and after."""
    trunk = Log(range(200))
    newest = [trunk]

    def work(n: int) -> bool:
        if n == 0:
            for k in range(3000):
                newest[0] = newest[0].append(k)
            return True
        return all(list(trunk) == list(range(200)) and trunk[-1] == 199 and len(trunk) == 200 for _ in range(150))

    assert all(together(work))
    assert len(newest[0]) == 3200


class Raced(list[Any]):
    """A list in which another thread's item always comes first."""

    def append(self, item: Any) -> None:
        super().append("another's")
        super().append(item)


def test_an_append_that_comes_second_gets_a_list_of_its_own() -> None:
    """Its item is in its view, and the other one's is not."""
    log: Log[Any] = Log([1])
    log._shared.items = Raced(log._shared.items)
    mine = log.append("mine")
    assert (list(mine), list(log)) == ([1, "mine"], [1])
    assert mine._shared is not log._shared


def test_threads_that_append_equal_items_still_part() -> None:
    """The very same object from every thread: each view holds it once."""
    item = object()
    trunk: Log[object] = Log()
    for view in together(lambda _: trunk.append(item)):
        assert list(view) == [item]
        assert len(view.append(1)) == 2
    assert len(trunk) == 0
