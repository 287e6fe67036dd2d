"""The tables: each version of the projection has its own, and readers read a view."""

OLD = """
CREATE TABLE IF NOT EXISTS turnover_v1 (customer text PRIMARY KEY, euros bigint NOT NULL);
CREATE OR REPLACE VIEW turnover AS SELECT customer, euros::numeric AS euros FROM turnover_v1;
"""
"""What is there: whole euros, because somebody thought that was enough."""

NEW = """
CREATE TABLE IF NOT EXISTS turnover_v2 (customer text PRIMARY KEY, cents bigint NOT NULL, orders bigint NOT NULL);
"""
"""What is to be: in a table of its own."""

SHOW_NEW = """
CREATE OR REPLACE VIEW turnover AS SELECT customer, cents / 100.0 AS euros FROM turnover_v2;
"""
"""Readers see the new one from the commit on."""

RETIRE_OLD = """
DROP TABLE turnover_v1;
"""
"""Once nobody wants to go back."""

FORGET = (
    "DELETE FROM packhorse.watermark WHERE group_id = %(group)s",
    "DELETE FROM packhorse.inbox WHERE group_id = %(group)s",
    "DELETE FROM packhorse.quarantined_message WHERE group_id = %(group)s",
)
"""What the database keeps of a group that is gone for good."""
