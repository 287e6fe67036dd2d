"""The pages over HTTP."""
