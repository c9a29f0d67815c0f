"""`relance play`: a seat at a table in a terminal.

What is seen is made by pure functions from the state (`glyphs`, `drawing`, `choices`, `story`, `recap`, `catalogue`);
screens only ask the client library, call these, and pass keys on.
"""

from relance.play.app import PlayOptions, light_background, play
from relance.play.glyphs import glyphs_for

__all__ = ["PlayOptions", "glyphs_for", "light_background", "play"]
