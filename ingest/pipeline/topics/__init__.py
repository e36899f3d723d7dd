"""How the records of a topic are read, one by itself or many at once. Which file does what:

base.py     what a reader of a topic does; of records that their source decodes itself
rows.py     rows in our own forms or by a mapping, also in Confluent's envelope
tables.py   changes of a table: the last of a row counts, or the sum over the rows
readers.py  the readers of a stream: one a topic, chosen by how its records are read
"""
