"""The times of a run: since 1970, by a clock that is not set while it is under way."""

import time


class Clock:
    """Begins with the computer's time and goes on by itself: a rate over a window must not depend
    on when its time server corrects the computer."""

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._epoch + time.monotonic()
