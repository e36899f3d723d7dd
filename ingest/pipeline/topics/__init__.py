"""How the records of a topic are read, by themselves or many at once. One reader a topic has:

base.py     what a reader of a topic does
rows.py     rows in our own forms or by a mapping, also in Confluent's envelope
tables.py   changes of a table, the last of which counts, or the sum over its rows
decoded.py  records that the source decodes itself, as those of an edge feed
readers.py  chooses the reader of each topic of a stream
"""
