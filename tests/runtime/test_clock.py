"""Clocks."""

from __future__ import annotations

import asyncio

from relance.runtime.clock import Clock, SimulatedClock, SystemClock


async def test_a_simulated_clock_stands_still_until_it_is_moved() -> None:
    clock = SimulatedClock(start_us=5)
    fired: list[tuple[str, int]] = []
    clock.call_later(2.0, lambda: fired.append(("b", clock.now_us())))
    clock.call_later(1.0, lambda: fired.append(("a", clock.now_us())))
    clock.call_later(2.0, lambda: fired.append(("c", clock.now_us())))
    never = clock.call_later(1.5, lambda: fired.append(("never", 0)))
    never.cancel()
    assert (clock.now_us(), clock.monotonic(), clock.next_due()) == (5, 0.0, 1.0)
    await clock.advance(1.999999)
    assert fired == [("a", 1_000_005)]
    await clock.advance(0.000001)
    assert fired == [("a", 1_000_005), ("b", 2_000_005), ("c", 2_000_005)]
    assert clock.next_due() is None
    assert clock.monotonic() == 2.0


async def test_a_sleeper_wakes_at_its_time_and_may_sleep_again_within_one_move() -> None:
    clock = SimulatedClock(start_us=0)
    woken: list[int] = []

    async def sleeper() -> None:
        for _ in range(3):
            await clock.sleep(1)
            woken.append(clock.now_us())

    task = asyncio.create_task(sleeper())
    await clock.advance(2.5)
    assert woken == [1_000_000, 2_000_000]
    await clock.advance(0.5)
    await task
    assert clock.next_due() is None


async def test_a_sleeper_that_is_cancelled_leaves_no_timer() -> None:
    clock = SimulatedClock()
    task = asyncio.create_task(clock.sleep(60))
    await clock.advance(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert clock.next_due() is None


async def test_the_machines_clock_goes_forward_and_calls_back() -> None:
    clock: Clock = SystemClock()
    before, tick = clock.now_us(), clock.monotonic()
    called = asyncio.Event()
    clock.call_later(0.001, called.set)
    await asyncio.wait_for(called.wait(), 5)
    await clock.sleep(0.001)
    assert clock.now_us() >= before + 1000
    assert clock.monotonic() > tick


async def test_a_simulated_timer_a_hair_ahead_does_not_fire_for_ever_at_one_time() -> None:
    clock = SimulatedClock()
    due = clock.monotonic() + 1e-9
    fired: list[float] = []

    def again() -> None:
        fired.append(clock.monotonic())
        if clock.monotonic() < due:
            clock.call_later(due - clock.monotonic(), again)

    clock.call_later(0, again)
    await clock.advance(1)
    assert len(fired) == 2
