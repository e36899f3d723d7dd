"""A database that is simulated, as change data capture tells of it.

`database` is a table whose rows come, change and go, and the history of that. `envelopes` writes a
history as Debezium's connectors do, in their forms. `expected` says which edges a graph must hold
when the table does. Nothing here reads an envelope: what does is what the tests are of.
"""
