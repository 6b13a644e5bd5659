"""Prepared sequences: the cache, Arrow files, memory."""
