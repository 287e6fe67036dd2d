"""Run migrations in the transaction of the connection handed over, or print them; Alembic imports this by its path."""

from alembic import context

from packhorse.core.naming import checked_identifier


def run() -> None:
    """Configure Alembic with the database schema asked for; its version table lives in the same one."""
    attributes = context.config.attributes
    schema = checked_identifier(attributes["schema"], what="database schema")
    if context.is_offline_mode():
        context.configure(
            dialect_name="postgresql",
            dialect_opts={"paramstyle": "named"},  # otherwise every % is printed twice
            version_table_schema=schema,
            output_buffer=attributes["output"],
            transactional_ddl=False,  # whoever prints frames all of it in one transaction
            as_sql=True,
        )
    else:
        context.configure(connection=attributes["connection"], version_table_schema=schema)
    with context.begin_transaction():
        context.run_migrations()


run()
