"""One assigned partition: state, events, orders, and the pure function between them."""
