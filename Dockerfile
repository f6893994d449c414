# docker build --tag hlo-inspect . && docker run --rm --volume "$PWD:/work" hlo-inspect summary dumps
# The first stage has a compiler for the native reader; the second has the program alone.
FROM python:3.12 AS build
ARG EXTRAS=""
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY configs configs
COPY hlo_inspect hlo_inspect
COPY hlo_inspect_explorer hlo_inspect_explorer
RUN python -m venv /opt/hlo-inspect && /opt/hlo-inspect/bin/pip install --no-cache-dir ".${EXTRAS:+[$EXTRAS]}"

FROM python:3.12-slim
COPY --from=build /opt/hlo-inspect /opt/hlo-inspect
ENV PATH=/opt/hlo-inspect/bin:$PATH HOME=/tmp
USER 10001:10001
WORKDIR /work
ENTRYPOINT ["hlo-inspect"]
CMD ["--help"]
