"""The relay beside other carriers, on one real broker and database: rates, latencies, costs, as ratios of one run."""
