"""``hotset top``: the accelerated disks and the workload, live on a full screen."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    HostOption,
    OptionalDsn,
    PasswordFileOption,
    ServerOption,
    asking_here,
    password_of,
)

if TYPE_CHECKING:
    from hotset.monitoring.top import Feed

_LOOK_S = 0.1
"""How long a key or a new window size may wait."""


def top(
    interval: Annotated[
        float,
        typer.Argument(metavar="INTERVAL", min=0.2, help="Seconds between readings."),
    ] = 1.0,
    machine: HostOption = "local",
    engine: ServerOption = "postgres",
    dsn: OptionalDsn = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Watch all accelerated disks of a machine live; with --dsn, the database as well.

    Shows hit ratios (now, over the last minute and since the start), requests, and dirty and used
    blocks. Keys: q quits, s sorts, ? shows help.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise typer.BadParameter("top needs a terminal; `hotset tier watch` prints lines instead")
    from hotset.core.machines import names as machines
    from hotset.databases import connect
    from hotset.monitoring.top import Feed, Watch
    from hotset.operations import activity

    with ExitStack() as stack:
        opened = stack.enter_context(machines.open_machine(machine))
        server = None
        if dsn is not None:
            with asking_here():
                database = connect.database(engine, dsn, password_of(password_file))
            server = stack.enter_context(closing(database.administer()))
        watch = Watch(lambda: activity.disks(opened), server, interval, activity.running)
        feed = Feed(watch, interval)
        try:
            with feed:
                _show(feed, f"{machine}  every {interval:g} s")
        except KeyboardInterrupt:
            # How one ends it, too; nothing was made that would have to be taken down.
            raise typer.Exit(0) from None


def _show(feed: Feed, title: str) -> None:
    """Draw what is new, until `q`.

    :raises Exception: what ended the readings.
    """
    from rich.console import Console
    from rich.live import Live

    from hotset.monitoring import top_view

    console, order, help_, drawn = Console(), 0, False, None
    with _keys() as key, Live(console=console, screen=True, auto_refresh=False) as live:
        while feed.error is None:
            picture, (width, height) = feed.picture, console.size
            wanted = (picture, order, help_, width, height)
            if wanted != drawn:
                live.update(
                    top_view.screen(picture, top_view.ORDERS[order], title, width, height, help_),
                    refresh=True,
                )
                drawn = wanted
            match key():
                case "q":
                    return
                case "s":
                    order = (order + 1) % len(top_view.ORDERS)
                case "?":
                    help_ = not help_
    raise feed.error


@contextmanager
def _keys() -> Iterator[Callable[[], str]]:
    """Keys as they are pressed, without a line's end; Ctrl-C stays a signal. Empty: none came."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def key() -> str:
        ready, _, _ = select.select([terminal], [], [], _LOOK_S)
        if not ready:
            return ""
        # One that is no letter comes as several bytes, taken together: it is none of ours. None at
        # all: the terminal is gone.
        return os.read(terminal, 32).decode(errors="replace") or "q"

    tty.setcbreak(terminal)
    try:
        yield key
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
