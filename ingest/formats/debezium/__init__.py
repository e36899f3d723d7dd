"""Change events of Debezium: what they say of a table's rows, and what the graph is to do.

    changes.py    one event, by every rule; the others come to the same
    rows.py       many at once, as columns
    values.py     what columns hold, and what a schema says of them

Rows that share their ends are remembered in `ingest/state/table_rows.py`. The oracle is a simulated
database, `tests/support/cdc`.
"""
