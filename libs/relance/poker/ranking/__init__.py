"""Rankings of hands: `RANKINGS[name].best(hole, board)`, bigger is better, None = no qualifying low."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from relance.poker.ranking.ace_low import AceToFive, Badugi
from relance.poker.ranking.five import club_rankings
from relance.poker.ranking.high import Omaha, Standard
from relance.poker.ranking.low import DeuceToSeven, EightOrBetter, OmahaEight
from relance.poker.ranking.suits import Draw32, SokoFourCard

__all__ = ["RANKINGS", "Ranking"]


class Ranking(Protocol):
    """One way to rank hands. Cards are numbers 0 to 51 and distinct; scores compare within one ranking only."""

    @property
    def name(self) -> str:
        """Key in RANKINGS."""

    def best(self, hole: Sequence[int], board: Sequence[int]) -> int | None:
        """Score of the best hand, bigger is better; None when no hand qualifies (H5)."""

    def describe(self, hole: Sequence[int], board: Sequence[int]) -> str:
        """The best hand in the field's words."""


_ALL: tuple[Ranking, ...] = (
    Standard("standard"),
    Omaha("omaha"),
    EightOrBetter("eight_or_better"),
    OmahaEight("omaha_eight"),
    DeuceToSeven("deuce_to_seven"),
    Draw32("draw32"),
    SokoFourCard("soko_four_card"),
    *club_rankings(),
    AceToFive("razz"),
    Badugi("badugi"),
)

RANKINGS: Mapping[str, Ranking] = {ranking.name: ranking for ranking in _ALL}
"""Every ranking by its name, which is what a game's row names."""
