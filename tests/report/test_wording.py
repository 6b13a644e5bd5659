"""Text on a page: every character is visible."""

from __future__ import annotations

from paramixer.report.wording import show_invisible


def test_invisible_characters_get_a_sign():
    assert show_invisible("plain text, שלום") == "plain text, שלום"
    assert show_invisible("a\nb\tc") == "a⏎b⇥c"
    assert show_invisible("a\u202eb") == "a⟨U+202E⟩b"
    assert show_invisible("\u200b") == "⟨U+200B⟩"
    assert show_invisible("\u00a0 ") == "⟨U+00A0 U+0020⟩"
    assert show_invisible("") == "⟨⟩"
    assert show_invisible("\u2800") == "⟨U+2800⟩"
