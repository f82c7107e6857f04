"""What tests of displays share: drawing a display, and reading what was drawn."""


def drawn(display, ax=None, **options):
    """The axes, after the display was drawn in them (which it was already, where nothing else is wanted)."""
    if display.ax_ is None or ax is not None or options:
        assert display.plot(ax, **options) is display
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()
    return display.ax_


def drawn_panels(display, ax=None):
    """All axes of a display of several panels, after it was drawn."""
    drawn(display, ax)
    return display.axes_


def texts(ax):
    """The labels of the legend."""
    return [t.get_text() for t in ax.get_legend().get_texts()]
