"""The HTTP service: a running pipeline, or a saved store, for clients without Kafka and for people.

Every request comes the same way to its endpoint, and its answer goes back so:

    app.py              the service as a whole: the guarded application, and its server
    server.py           a thread and an event loop of uvicorn's connections, and who gets in
    connection.py       one connection: what a client may send, and how long it may take
    security.py         the guard: tokens, hosts, origins; exchange.py: bodies, and the load of all
    routes.py           the table of endpoints, of which openapi.py makes its document
    messages.py         what requests and answers hold; media.py: in which forms they come
    problems.py         errors (RFC 9457); context.py: what endpoints share, limits for instance

Questions, /v1/degree/7 for instance, are answered by the pipeline's thread between two batches
(`ingest/pipeline/graph_requests.py`), many at once:

    queries.py          the endpoints
    query_codecs.py     bodies as they come, answers as they leave: JSON, msgpack, Arrow
    query_queue.py      from the event loop to the pipeline's thread and back
    answering.py        in that thread: questions of one kind are one call of the graph
    cursors.py          long answers in pages

Updates go to the log that the pipeline reads, and are waited for where a client wants that:

    updates.py          the endpoint
    update_codecs.py    a body as records of the log; arrow_input.py: Arrow, not trusted
    writer.py           what many clients send, with one sync

What takes long is computed from a copy of the graph, in the service's own threads, and given up
when nobody waits for it any more (jobs.py):

    graph_figures.py    /v1/graph                   snapshot.py         /v1/snapshot, in the forms
    runs.py             /v1/run: algorithms                             of snapshot_forms.py
    distributions.py    what the page shows of all  neighborhood.py     … and of one vertex

Events are told to all who watch: events.py has the watchers, sampling.py what happens. live_page.py
serves the page, whose files are in page/; health.py is for orchestrators and Prometheus; stored.py
serves a saved store. Requires the extra [serve].
"""
