# The store with Kafka and metrics, for compose.yaml. CPU only.
FROM python:3.12-slim
RUN useradd --create-home lpma && install --directory --owner lpma /state
COPY pyproject.toml README.md LICENSE /src/
COPY lpma /src/lpma
COPY algorithms /src/algorithms
COPY ingest /src/ingest
RUN pip install --no-cache-dir "/src[kafka,metrics]" && rm -r /src
USER lpma
# Compiled kernels are kept beside the state, so that only the first start compiles.
ENV NUMBA_CACHE_DIR=/state/compiled
VOLUME /state
ENTRYPOINT ["lpma"]
CMD ["--help"]
