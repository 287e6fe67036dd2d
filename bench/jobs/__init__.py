"""Jobs beside procrastinate, DBOS and Celery, on one real database, broker and Redis-compatible server, as ratios of one run."""
