"""Jobs: work that is accepted in a transaction, done once by a worker under a lease, and never stuck out of sight."""
