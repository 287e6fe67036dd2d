"""Outside effects of jobs: the intent on record before the call, the answer after it, and never called again in silence."""
