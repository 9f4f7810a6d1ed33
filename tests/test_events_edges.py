"""Events that several listeners share, and events made by hand."""

from toolcrib.call import CallKey, CallState
from toolcrib.events import StatusChanged, TextDelta
from toolcrib.sink import EventLog, EventSink, Subscription


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
