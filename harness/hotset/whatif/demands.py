"""Demands of a transaction, learned from two measured windows: one on the slow storage, one fast.

Of the fast window it is known how busy the CPU was, what its requests to the flash take when
nobody is in the way (the flash's promise), and what the users waited for. From these follow the
stations of the closed network (see ``network``):

- *CPU*: as many servers as cores, as far as the set-up can keep them busy. Programs that hand each
  request to one another leave a core idle now and then although somebody waits for it. How much of
  the cores can be used is what makes the network's result what was measured.
- *flash, log*: a request's time on an idle flash, less the kernel's CPU time, which is a part of a
  device's latency and has its station already. Until the flash's own limit nobody waits here. A
  flush of the log is slower than promised by the factor by which requests for data are.
- *slow storage*: its IOPS by queue depth; how many reads a transaction takes makes the baseline
  come to what it measured. With a cache it takes fewer, where the log went to flash with it: as
  many as give the baseline its throughput with its log there.
- *locks*: a user is blocked for a share of the time that grows with the number of others, as each
  of them may hold the row (A. Thomasian, "Two-phase locking performance and its thrashing
  behavior", ACM TODS 18(4), 1993). Those who are blocked are at no station.

What a cache has the slow storage do in the background (promotions, write-backs; see ``traffic``)
keeps nobody waiting by itself, but leaves the users less of the slow storage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, floor

from hotset.reports.model.windows import Repeat

from .network import Load, Solution, Station, solve, throughput
from .traffic import Traffic

CPU, FLASH, ORIGIN, LOCKS = "CPU", "flash, log", "slow storage", "locks"
_BISECTIONS = 30
_ROUNDS = 4
"""Rounds of fitting the fast window and the reads in turn: each hardly moves the other."""
_ATOM = 1e-7
_BLOCKED_MAX = 0.9
_CLOSE = 1e-4
WRITES_ASSUMED = 0.35
"""Share of writes to the data disk, where a run counted none: as in the published demo."""
_FULL = 0.01
"""With less than that left for the users, the background holds all back."""
_LEFT_MIN = 1e-6
"""Least share of the slow storage left for the users: a station has a rate."""
_BUSY = 0.5
"""Least use of the CPU: with less, the cores were idle because nothing needed them."""


@dataclass(frozen=True, slots=True)
class FlashPromise:
    """Time of one request of 8 KiB on an idle flash, in seconds, and its limit of reads a
    second."""

    read_s: float
    write_s: float
    iops: float


@dataclass(frozen=True, slots=True)
class Requests:
    """To the data disk, for each transaction."""

    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class Demands:
    """The demands of a transaction. Any kind of TPC-C's counts, as it is in TPM.

    :ivar cpu_s: of one core.
    :ivar cores_used: the share of the cores that the set-up can keep busy.
    :ivar flash_s: at the flash and for the log, when nobody is in the way and without CPU.
    :ivar flash_rate: transactions a second that the flash can do at most; 0: not known.
    :ivar origin_reads: of the slow storage, random ones of a page, without a cache.
    :ivar cached_reads: the same with one that hits nothing, and the log where it is then.
    :ivar blocked: the share of a user's time that it waits for locks, for each other user.
    :ivar writes_share: of the requests to the data disk.
    """

    cpu_s: float
    cores_used: float
    flash_s: float
    flash_rate: float
    origin_reads: float
    cached_reads: float
    blocked: float
    writes_share: float


@dataclass(frozen=True, slots=True)
class SetUp:
    """Who shares what.

    :ivar iops: of the slow storage with 1, 2, 3 … requests at it.
    :ivar traffic: of the cache, where something is cached; None: it causes none.
    """

    users: int
    cores: int
    iops: tuple[float, ...]
    traffic: Traffic | None = None


def active_users(demands: Demands, users: int) -> float:
    """Count the users who are not blocked, on average."""
    return users * (1 - min(_BLOCKED_MAX, demands.blocked * (users - 1)))


def throughput_of(demands: Demands, setup: SetUp, hit_ratio: float) -> float:
    """Transactions a second: as many as leave the slow storage time for what their number makes
    it do in the background."""
    behind = background(demands, setup, hit_ratio)

    def beyond(rate: float) -> float:
        left = 1 - rate * behind / max(setup.iops)
        return _throughput(demands, setup, hit_ratio, left) - rate

    alone = _throughput(demands, setup, hit_ratio, 1.0)
    if behind <= 0:
        return alone
    return _crossing(beyond, min(alone, max(setup.iops) / behind), alone)


def _crossing(beyond: Callable[[float], float], high: float, low_value: float) -> float:
    """Where a falling function that is ``low_value`` at 0 reaches zero, at ``high`` at the most
    (regula falsi, as Illinois mends it)."""
    low, low_left = 0.0, low_value
    high_left = beyond(high)
    if high_left >= 0:
        return high
    guess, above = high, True
    for _ in range(_BISECTIONS):
        guess, before = low + (high - low) * low_left / (low_left - high_left), guess
        if abs(guess - before) <= _CLOSE * guess:
            break
        value = beyond(guess)
        again = above is (value < 0)
        above = value < 0
        if above:
            high, high_left = guess, value
            low_left /= 2 if again else 1
        else:
            low, low_left = guess, value
            high_left /= 2 if again else 1
    return guess


def _throughput(demands: Demands, setup: SetUp, hit_ratio: float, left: float) -> float:
    """:param left: the share of the slow storage that is the users'."""
    stations = _stations(demands, setup, hit_ratio, left)
    active = active_users(demands, setup.users)
    fewer, part = max(1, floor(active)), active - floor(active)
    rate = throughput(stations, 0.0, fewer)
    if part <= 0 or active <= 1:
        return rate * min(1.0, active)
    return rate * (1 - part) + throughput(stations, 0.0, fewer + 1) * part


def solve_network(demands: Demands, setup: SetUp, hit_ratio: float) -> Solution:
    """Solve as :func:`throughput_of` does, with the load of the stations while the nearest whole
    number of users is active. Those who are blocked are a load of their own."""
    active = active_users(demands, setup.users)
    rate = throughput_of(demands, setup, hit_ratio)
    left = 1 - rate * background(demands, setup, hit_ratio) / max(setup.iops)
    stations = _stations(demands, setup, hit_ratio, left)
    loads = solve(stations, 0.0, max(1, round(active))).loads
    blocked = setup.users - active
    more = [Load(LOCKS, min(1.0, blocked), blocked)] if blocked else []
    if left < _FULL and all(load.name != ORIGIN for load in loads):
        # Nobody reads it, and yet it can take no more of what is written back.
        more.append(Load(ORIGIN, 1.0, float(setup.users)))
    return Solution(rate, setup.users / rate, (*loads, *more))


def waiting_time(demands: Demands, setup: SetUp, hit_ratio: float) -> float:
    """Return the work at the slow storage that a transaction's users wait for, in random reads of a
    page: what misses, and with write-through every write that hits."""
    if hit_ratio <= 0:
        return demands.origin_reads
    reads = demands.cached_reads * (1 - hit_ratio)
    if setup.traffic is not None and setup.traffic.write_through:
        reads += demands.cached_reads * demands.writes_share * hit_ratio
    return reads


def background(demands: Demands, setup: SetUp, hit_ratio: float) -> float:
    """Return the background work of the slow storage for the cache in each transaction, in random
    reads of a page. A hit ratio of 0 is without a cache."""
    if setup.traffic is None or hit_ratio <= 0:
        return 0.0
    moved = setup.traffic.at(hit_ratio)
    promoted = (1 - hit_ratio) * moved.promoted
    written = demands.writes_share * hit_ratio * moved.written_back
    return demands.cached_reads * (promoted + written) * setup.traffic.cost


def _stations(demands: Demands, setup: SetUp, hit_ratio: float, left: float) -> list[Station]:
    """Without one that a transaction does not visit."""
    stations = []
    if demands.cpu_s > 0:
        usable = demands.cores_used * setup.cores
        busy = (min(n, usable) for n in range(1, ceil(usable) + 1))
        stations.append(Station(CPU, tuple(seconds / demands.cpu_s for seconds in busy)))
    if demands.flash_s > 0:
        # One user alone never waits for the flash's limit.
        limit = max(demands.flash_rate or float("inf"), 1 / demands.flash_s)
        each = (min(n / demands.flash_s, limit) for n in range(1, setup.users + 1))
        stations.append(Station(FLASH, tuple(each)))
    reads = waiting_time(demands, setup, hit_ratio)
    if reads > 0:
        users = max(left, _LEFT_MIN)
        stations.append(Station(ORIGIN, tuple(iops * users / reads for iops in setup.iops)))
    return stations


def learn(
    slow: Repeat,
    quick: Repeat,
    setup: SetUp,
    flash: FlashPromise | None,
    requests: Requests | None = None,
    log_moved: float = 1.0,
) -> Demands:
    """Fit the demands so that the network yields what both windows measured.

    :param setup: the one they were measured in.
    :param flash: None: how fast it is when nobody waits is not known.
    :param requests: to the data disk for each transaction, where they were counted; else as many
        as the baseline's throughput tells, as if all were reads.
    :param log_moved: how many times as much the baseline does with its log on flash.
    """
    demands = Demands(
        cpu_s=_cpu(quick) * setup.cores * 60 / quick.tpm,
        cores_used=1.0,
        flash_s=0.0,
        flash_rate=0.0,
        origin_reads=0.0,
        cached_reads=0.0,
        blocked=_blocked_share(quick, slow, setup.users),
        writes_share=_writes_share(slow, requests),
    )
    before = demands

    def with_reads(each: float) -> float:
        return throughput_of(replace(demands, origin_reads=each), setup, 0)

    for _ in range(_ROUNDS):
        reads = _fit(with_reads, slow.tpm / 60)
        cached = reads if log_moved == 1 else _fit(with_reads, slow.tpm / 60 * log_moved)
        start = replace(before, origin_reads=reads, cached_reads=cached)
        if flash is not None:
            start = _with_flash(start, quick, flash, requests or Requests(reads, 0.0))
        demands = _fast(start, quick, setup)
    return demands


def _cpu(window: Repeat) -> float:
    """Return the CPU share of an experiment's window, which has it."""
    assert window.server_cpu is not None
    return window.server_cpu


def _fast(demands: Demands, quick: Repeat, setup: SetUp) -> Demands:
    """With demands that give the network the throughput of the fast window."""
    wanted = quick.tpm / 60
    hit_ratio = 1.0 if quick.hit_ratio is None else quick.hit_ratio
    if wanted * background(demands, setup, hit_ratio) >= max(setup.iops):
        # What is assumed of the cache cannot have been: not while that much was done.
        setup = replace(setup, traffic=None)

    def rate_with(**changed: float) -> float:
        return throughput_of(replace(demands, **changed), setup, hit_ratio)

    if rate_with() <= wanted:
        return _with_less(demands, rate_with, wanted)
    if demands.flash_rate == 0 or _cpu(quick) < _BUSY:
        # Nothing tells what the rest of the time is: as if nobody shared it.
        seconds = _fit(lambda flash_s: rate_with(flash_s=flash_s), wanted)
        return replace(demands, flash_s=seconds)
    used = lowest(_ATOM, 1.0, lambda cores: rate_with(cores_used=cores) >= wanted)
    return replace(demands, cores_used=used)


def _with_less(demands: Demands, rate_with: Callable[..., float], wanted: float) -> Demands:
    """The CPU that was busy was more than the users could have waited for: it was busy while they
    waited for the flash, or for nobody."""
    if rate_with(flash_s=0.0) >= wanted:
        return replace(demands, flash_s=_fit(lambda flash_s: rate_with(flash_s=flash_s), wanted))
    needed = _fit(lambda cpu_s: rate_with(flash_s=0.0, cpu_s=cpu_s), wanted)
    return replace(demands, flash_s=0.0, cpu_s=needed)


def _with_flash(
    demands: Demands, quick: Repeat, flash: FlashPromise, requests: Requests
) -> Demands:
    """With a transaction's seconds at an idle flash, CPU left out, and how many a second it can
    do."""
    seconds = requests.reads * flash.read_s + requests.writes * flash.write_s
    if quick.time is not None and (data := quick.time.data_read + quick.time.data_write) > 0:
        seconds *= 1 + quick.time.log / data
    kernel_s = demands.cpu_s * (quick.server_system or 0) / max(_cpu(quick), _ATOM)
    rate = flash.iops / (requests.reads + requests.writes)
    return replace(demands, flash_s=max(_ATOM, seconds - kernel_s), flash_rate=rate)


def _writes_share(slow: Repeat, requests: Requests | None) -> float:
    """Estimate the share of writes, by the cached device or the baseline's slow storage."""
    if requests is not None and (counted := requests.reads + requests.writes) > 0:
        return requests.writes / counted
    origin = next((device for device in slow.devices if device.name == "origin"), None)
    if origin is not None and (counted := origin.read.iops + origin.write.iops) > 0:
        return origin.write.iops / counted
    return WRITES_ASSUMED


def _blocked_share(quick: Repeat, slow: Repeat, users: int) -> float:
    """By each other user."""
    time = quick.time or slow.time
    return time.lock / (users - 1) if time is not None and users > 1 else 0.0


def _fit(rate: Callable[[float], float], wanted: float) -> float:
    """The argument, above 0, at which a throughput that falls with it is the wanted one."""
    low, high = _ATOM, 1.0
    while rate(high) > wanted:
        low, high = high, high * 2
    return lowest(low, high, lambda value: rate(value) <= wanted)


def lowest(low: float, high: float, holds: Callable[[float], bool]) -> float:
    """The lowest number from ``low`` on for which something holds, as it does from there on to
    ``high``."""
    if holds(low):
        return low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
