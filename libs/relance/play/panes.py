"""The parts of a table's screen: the drawing, and the story with the talk in it."""

from __future__ import annotations

from collections import deque

from rich.text import Text
from textual import events
from textual.widgets import RichLog, Static

from relance.play.drawing import Scene, draw_table

STORY_LINES = 1000


class Felt(Static):
    """The table's drawing, as large as there is room."""

    scene: Scene | None = None
    _waiting = ""

    def __init__(self) -> None:
        super().__init__(id="felt")

    def show(self, scene: Scene) -> None:
        """Draw another scene."""
        self.scene = scene
        self.refresh()

    def wait(self, text: str) -> None:
        """There is nothing to draw yet, and why."""
        self._waiting = text
        self.refresh()

    def render(self) -> Text:
        if self.scene is None:
            return Text(self._waiting)
        return draw_table(self.scene, self.size.width, self.size.height)


class Story(RichLog):
    """What happened and what was said, line by line, wrapped anew when there is more or less room."""

    can_focus = False

    def __init__(self) -> None:
        super().__init__(id="story", wrap=True, max_lines=STORY_LINES, min_width=10)
        self._told: deque[tuple[Text, bool]] = deque(maxlen=STORY_LINES)
        self._wide = 0
        self.talk_only = False

    def tell(self, text: Text, *, talk: bool = False) -> None:
        """One more line."""
        self._told.append((text, talk))
        if talk or not self.talk_only:
            self.write(text)

    def only_talk(self, only: bool) -> None:
        """Show what was said, and nothing else; or all."""
        self.talk_only = only
        self._again()

    def on_resize(self, event: events.Resize) -> None:
        before, self._wide = self._wide, event.size.width
        if before not in {0, self._wide}:
            self._again()

    def _again(self) -> None:
        self.clear()
        for text, talk in self._told:
            if talk or not self.talk_only:
                self.write(text)
