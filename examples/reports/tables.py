"""The application's own tables: what was sold, and what reports were asked for."""

SALES = """
CREATE TABLE IF NOT EXISTS sale (id bigint PRIMARY KEY, sold_on date NOT NULL, region text NOT NULL, cents bigint NOT NULL);
INSERT INTO sale (id, sold_on, region, cents)
SELECT n, date '2025-01-01' + (n * 7919 % 365)::int, (ARRAY['north', 'south', 'east', 'west'])[1 + n % 4], n * 104729 % 50000
FROM generate_series(1, 20000) AS n
ON CONFLICT DO NOTHING;
CREATE INDEX IF NOT EXISTS sale_day ON sale (sold_on);
"""
"""Made of numbers that look like chance and are the same each time."""

REPORTS = """
CREATE TABLE IF NOT EXISTS report (job_id uuid PRIMARY KEY, person text NOT NULL, title text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(), csv text);
CREATE INDEX IF NOT EXISTS report_person ON report (person, asked_at DESC);
"""

ASK = "INSERT INTO report (job_id, person, title) VALUES (%s, %s, %s)"
"""In the transaction that submits the job: neither is there without the other."""
FILL = "UPDATE report SET csv = %s WHERE job_id = %s"
"""In the transaction of the job's success: a report that is ready is there, and one that is not is not."""
TITLE = "SELECT title FROM report WHERE job_id = %s AND person = %s"
CSV = "SELECT csv FROM report WHERE job_id = %s AND person = %s"
MINE = "SELECT job_id, title FROM report WHERE person = %s ORDER BY asked_at DESC LIMIT 20"
MONTH = """
SELECT region, count(*), sum(cents) FROM sale
WHERE sold_on >= make_date(%(year)s, %(month)s, 1) AND sold_on < make_date(%(year)s, %(month)s, 1) + interval '1 month'
GROUP BY region ORDER BY region
"""
