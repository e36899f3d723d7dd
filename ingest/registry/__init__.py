"""Records in Confluent's envelope: which schema they were written with, and what they hold.

Which file does what:

    client.py      asks a schema registry over HTTP
    schemas.py     keeps what it answered, on disk, so that a replay decides alike
    avro.py        reads Avro with the schema of whoever wrote it
    avro_rows.py   reads most of it by compiled code
    envelope.py    turns a record in the envelope into the JSON that the topic's mapping reads
"""
