"""From deliveries to durable results: batches, lanes, handlers, faults."""
