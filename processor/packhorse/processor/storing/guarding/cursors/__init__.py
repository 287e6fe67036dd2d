"""Cursors by which every query of a handler comes."""
