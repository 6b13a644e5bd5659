"""An animated picture of the idea: a value travels through the factors of CHORD until every position has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from paramixer.links import Chord

LENGTH, START = 16, 15
# A long sequence to say what is saved.
_LONG = 16384
_WIDTH, _TOP, _LEFT, _STEP, _ROW = 640, 74, 106, 28, 66
# The colors of the factors, readable on both backgrounds.
_COLORS = ("#e0a100", "#3f8fd2", "#3fa65b", "#9a6fd0", "#d9603b")
# Seconds of one round, and where in it, in percent, each factor begins and how long it takes.
_SECONDS, _BEGIN, _TAKES = 11, 3, 16

_STYLE = """
.back { fill: #ffffff; stroke: #d5dbdf } text { fill: #1d2730; font: 17px system-ui, "DejaVu Sans", sans-serif }
.small { font-size: 15px; fill: #5c6a74 } .title { font-size: 19px; font-weight: 600 } .empty { fill: #ccd4d9 }
@media (prefers-color-scheme: dark) {
  .back { fill: #161d22; stroke: #2c373e } text { fill: #e6ecef } .small { fill: #a3b1ba } .empty { fill: #3a464e }
}
.link { fill: none; stroke-width: 2.2; stroke-dasharray: 1 } .again { stroke-width: 1; opacity: 0.28 }
"""


@dataclass(frozen=True)
class Hop:
    """A value goes from one position to another in a factor."""

    factor: int
    source: int
    target: int
    is_first: bool
    """Whether no earlier hop of the factor reached the target, which did not have the value before."""


def follow(length: int = LENGTH, start: int = START) -> tuple[list[set[int]], list[Hop]]:
    """Return which positions have the value before the first factor and after each, and every hop.

    Position i of a factor's output reads from i + offset, so that a value goes from j to j - offset.
    """
    reached, hops = [{start}], []
    for factor, offsets in enumerate(Chord().offsets(length).tolist()):
        now: set[int] = set()
        for source in sorted(reached[-1], reverse=True):
            for offset in offsets:
                target = (source - offset) % length
                hops.append(Hop(factor, source, target, target not in now | reached[-1] or source == target))
                now.add(target)
        reached.append(now)
    return reached, hops


def draw_travel(path: Path) -> None:
    """Draw the picture: CSS alone moves it; it stands still, complete, where motion is not wanted."""
    reached, hops = follow()
    long = f"{_LONG:,}".replace(",", " ")
    looks = Chord().offsets(_LONG)
    height = _TOP + _ROW * (len(reached) - 1) + 90
    title = f"A value at position {START} travels to all {LENGTH} positions"
    still = f"After {len(reached) - 1} factors of CHORD all {LENGTH} positions have read the value of position {START}."
    parts = [
        f'<rect class="back" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="10"/>',
        _text(_WIDTH / 2, 32, title, "title", "middle"),
        *(_draw_link(hop) for hop in sorted(hops, key=lambda hop: hop.is_first)),
        *(part for row, positions in enumerate(reached) for part in _draw_row(row, positions)),
        *(_text(_x(i), _y(len(reached) - 1) + 28, str(i), "small", "middle") for i in range(LENGTH)),
        _text(_WIDTH / 2, height - 36, f"Among {long} positions each reads {looks.numel()} values,", "small", "middle"),
        _text(
            _WIDTH / 2, height - 15, f"in {len(looks)} factors. With attention each reads {long}.", "small", "middle"
        ),
    ]
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-labelledby="title"><title id="title">{title}. {still}</title>\n'
        f"<style>{_STYLE}{_move(len(reached))}</style>\n"
        f'<clipPath id="ring"><rect x="{_x(0) - 14}" y="0" width="{_STEP * (LENGTH - 1) + 28}" height="{height}"/>'
        f"</clipPath>\n" + "\n".join(parts) + "\n</svg>\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg, encoding="utf-8")


def _move(rows: int) -> str:
    """Return the rules of the animation, for readers who have not asked for less motion."""
    rules = []
    for row in range(1, rows):
        begin = _BEGIN + (row - 1) * (_TAKES + 5)
        end = begin + _TAKES
        rules += [
            f"@keyframes go{row} {{ 0%, {begin}% {{ stroke-dashoffset: 1 }} {end}%, 100% {{ stroke-dashoffset: 0 }} }}",
            f"@keyframes show{row} {{ 0%, {end - 2}% {{ opacity: 0 }} {end + 1}%, 100% {{ opacity: 1 }} }}",
            f".go{row} {{ animation: go{row} {_SECONDS}s linear infinite }}",
            f".show{row} {{ animation: show{row} {_SECONDS}s linear infinite }}",
        ]
    return "@media (prefers-reduced-motion: no-preference) {\n" + "\n".join(rules) + "\n}\n"


def _draw_row(row: int, positions: set[int]) -> Iterable[str]:
    name = "input" if row == 0 else f"factor {row}"
    yield _text(18, _y(row) + 6, name)
    shown = f' class="show{row}"' if row else ""
    yield f"<g{shown}>{_text(_WIDTH - 18, _y(row) + 6, f'{len(positions)} of {LENGTH}', '', 'end')}</g>"
    for i in range(LENGTH):
        yield f'<circle class="empty" cx="{_x(i)}" cy="{_y(row)}" r="5"/>'
        if i in positions:
            yield f'<circle{shown} fill="{_COLORS[row]}" cx="{_x(i)}" cy="{_y(row)}" r="8"/>'


def _draw_link(hop: Hop) -> str:
    """Return a curve; one across the ends of the ring leaves on one side and comes in on the other."""
    row, again = hop.factor + 1, "" if hop.is_first else " again"
    wide = LENGTH if hop.target > hop.source else 0
    curves = [(hop.source, hop.target - wide), *([(hop.source + wide, hop.target)] if wide else [])]
    top, down = _y(row - 1) + 9, _y(row) - 9
    middle = (top + down) / 2
    return "".join(
        f'<path class="link go{row}{again}" pathLength="1" stroke="{_COLORS[row]}" clip-path="url(#ring)" '
        f'd="M{_x(a)} {top}C{_x(a)} {middle} {_x(b)} {middle} {_x(b)} {down}"/>'
        for a, b in curves
    )


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{words}</text>'


def _x(position: int) -> int:
    return _LEFT + _STEP * position


def _y(row: int) -> int:
    return _TOP + _ROW * row
