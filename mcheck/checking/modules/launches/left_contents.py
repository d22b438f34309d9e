"""What a launch leaves in the words by which its clusters synchronise: a counter that the last cluster resets, flags,
turns, the counter and the generation of a barrier.

*What is claimed.* In every execution of the launch that has no race and ends, these words hold the same values in the
end, and of all other bytes whose contents the launch, or the module, gives, those that are not named as lost hold what
they held.

*Why it holds.* Each cluster is executed alone, and what it does is shown to be the same in every execution but for the
order in which clusters count themselves; so no other instruction writes any of these bytes.

* Clusters that count themselves (``mcheck.checking.modules.pairs.counted_grid``, conditions 1 to 3): the atomics of all
  clusters are morally strong, so each reads the write just before it in coherence order (8.10.3). The last number is
  drawn by the last one of them, and what the thread that has drawn it does to the word comes after that in program
  order, hence in coherence order (8.10.1, 8.10.4). Nobody else accesses the word. Every cluster, if it is the last one,
  must leave the same value.
* Signals (``mcheck.simt.grid.signals.signal_order``): each signal of a word falls into a phase, and every signal of one
  phase is ordered before every one of the next, so the last write in coherence order is one of the last phase: its only
  signal, or the last of its additions, which leaves their sum. If clusters ask whether they are the last ones, that
  must be the same for every choice of those that are. A word from which each cluster draws one ticket has counted all.

Whether the launch ends, and whether clusters that it waits for are resident, is for the answer about it to say.
"""

from __future__ import annotations

from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import InputError, Unsupported
from mcheck.checking.modules.pairs.counted_grid import find_representatives
from mcheck.checking.modules.pairs.signalled_grid import find_signals
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.grid.pairs.known_words import with_value
from mcheck.simt.grid.pairs.reduction import NotReducible

LEFT_SECONDS = 20.0
"""Time for what one launch leaves in memory."""


def ended_launch(module: Module, launch: Launch, limit: Limit) -> Launch | None:
    """The launch with the contents that its buffers have when it has ended, and without those of variables that it may
    have changed; ``None`` if that is not known. Raises ``TimeOut``.
    """
    for argue in (_by_counter, _by_signals):
        share = limit.share(LEFT_SECONDS)
        try:
            found = argue(module, launch, share)
        except (NotReducible, Unsupported, InputError):
            continue
        except TimeOut:
            limit.check()
            continue
        if found is not None:
            return found
    return None


def _by_counter(module: Module, launch: Launch, limit: Limit) -> Launch | None:
    found = find_representatives(module, launch, limit)
    return None if found.left is None else with_value(found.launch, found.counter, found.left)


def _by_signals(module: Module, launch: Launch, limit: Limit) -> Launch | None:
    found = find_signals(module, launch, limit)
    ended = found.launch
    for word, value in found.left.items():
        if value is None:
            return None
        ended = with_value(ended, word, value)
    return ended
