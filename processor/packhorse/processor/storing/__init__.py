"""The processor's tables: statements, rows, and the adapters that execute them."""
