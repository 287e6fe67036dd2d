"""Statements whose result nobody reads, sent without waiting for each."""
