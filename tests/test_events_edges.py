"""Events that several listeners share, and events made by hand."""

import asyncio
import copy
import pickle
import threading
from collections.abc import Iterator

import pytest

from toolcrib import Effect, Toolbox, tool
from toolcrib.call import CallKey, CallState
from toolcrib.events import Event, StatusChanged, TextDelta, event_to_dict
from toolcrib.sink import CallbackSubscription, EventLog, EventSink, Subscription


async def test_joining_deltas_for_one_reader_changes_nothing_for_another() -> None:
    sink = EventSink(lambda: 0.0)
    log, slow = EventLog(), Subscription(limit=1)
    sink.add(log)
    sink.add(slow)
    for n in range(5):
        sink.emit("r", TextDelta(str(n)))
    assert [event.text for event in log.events if isinstance(event, TextDelta)] == ["0", "1", "2", "3", "4"]


def test_an_event_that_was_not_emitted_yet_can_be_shown_and_compared() -> None:
    """Folds, tests and debuggers meet events that were made by hand."""
    made = StatusChanged(CallKey("r", 1, 0), "t", CallState.DOING)
    assert "StatusChanged" in repr(made)
    assert made == StatusChanged(CallKey("r", 1, 0), "t", CallState.DOING)
    assert made != TextDelta("x")


@pytest.mark.parametrize("given", ['{"n": 1, "names": ["a"]}', {"n": 1, "names": ["a"]}])
async def test_arguments_are_there_whoever_looks_at_an_event_and_how(given: str | dict[str, object]) -> None:
    @tool(effect=Effect.READ, secrets=())
    async def count(n: int, names: list[str]) -> int:
        return n

    async def begun() -> StatusChanged:
        log = box.subscribe(EventLog())
        await box.call("count", given)
        box.unsubscribe(log)
        event = next(event for event in log.events if getattr(event, "state", "") == CallState.DOING)
        assert isinstance(event, StatusChanged)
        return event

    box, params = Toolbox([count]), {"n": 1, "names": ["a"]}
    assert (await begun()).params == params
    assert event_to_dict(await begun())["params"] == params
    assert repr(params) in repr(await begun())
    for made in (copy.copy(await begun()), pickle.loads(pickle.dumps(await begun()))):
        assert (made.params, made.unread) == (params, None)
    with pytest.raises(AttributeError, match="'StatusChanged' object has no attribute 'arguments'"):
        getattr(await begun(), "arguments")  # noqa: B009 - a type checker knows it


class _Interrupted(Subscription):
    """One to which another thread adds an event between the reader's last look and its waiting."""

    late: Iterator[Event] = iter(())

    def _new_waiter(self) -> asyncio.Future[None]:
        for event in self.late:
            self.put(event)
            break
        return super()._new_waiter()


async def test_an_event_that_comes_while_its_reader_lies_down_is_read_at_once() -> None:
    subscription = _Interrupted()
    subscription.late = iter([TextDelta("one"), TextDelta("two")])
    for word in ("one", "two"):
        (event,) = await asyncio.wait_for(subscription.more(), 1)
        assert event == TextDelta(word)
        (await subscription.more()).popleft()


def test_nobody_waits_for_a_listener_that_was_closed() -> None:
    """Else each end of its toolbox would take `FLUSH_SECONDS`."""
    before, seen = set(threading.enumerate()), list[Event]()
    listener = CallbackSubscription(seen.append)
    listener.put(TextDelta("one"))
    listener.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert listener.flush(1)
    listener.put(TextDelta("two"))
    assert not listener.flush(60)
    assert seen == [TextDelta("one")]
