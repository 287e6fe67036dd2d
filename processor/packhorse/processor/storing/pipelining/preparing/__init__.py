"""What is prepared on a connection, by psycopg and beside it."""
