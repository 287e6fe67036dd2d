"""The processor beside loops written by hand and other libraries, on one real broker and database, as ratios of one run."""
