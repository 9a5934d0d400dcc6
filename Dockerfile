# Meterline's production images: docker build --target ingest | query | collector | alerts | cli .
# Small non-root images without npm, build tools, and the embedded engine of packages/local-stack.

# Only the files that npm needs, so that other changes do not invalidate the cached installation.
FROM node:24-bookworm-slim AS manifests
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages/api/package.json packages/api/
COPY packages/catalog/package.json packages/catalog/
COPY packages/cli/package.json packages/cli/
COPY packages/client/package.json packages/client/
COPY packages/dashboard/package.json packages/dashboard/
COPY packages/emitter/package.json packages/emitter/
COPY packages/local-stack/package.json packages/local-stack/
COPY packages/service/package.json packages/service/
COPY packages/warehouse/package.json packages/warehouse/
COPY services/alerts/package.json services/alerts/
COPY services/collector/package.json services/collector/
COPY services/ingest/package.json services/ingest/
COPY services/query/package.json services/query/

FROM manifests AS build
RUN npm ci --no-audit --no-fund --ignore-scripts
COPY . .
RUN npx tsc -b services/ingest services/query services/collector services/alerts \
 && npx vite build --logLevel warn packages/dashboard \
 && npx vite build --logLevel warn packages/cli

FROM manifests AS dependencies
# Includes development dependencies: for these workspaces they are only OpenTelemetry's SDK. Those of the root are not installed.
RUN rm -r packages/cli packages/client packages/dashboard packages/emitter packages/local-stack \
 && npm ci --no-audit --no-fund --ignore-scripts \
      --workspace @meterline/ingest --workspace @meterline/query --workspace @meterline/collector --workspace @meterline/alerts

FROM node:24-bookworm-slim AS base
ENV NODE_ENV=production
WORKDIR /app
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack
USER node

FROM base AS runtime
COPY --from=dependencies /app ./
COPY --from=build /app/packages/catalog/dist packages/catalog/dist
COPY --from=build /app/packages/warehouse/dist packages/warehouse/dist
COPY --from=build /app/packages/service/dist packages/service/dist
COPY --from=build /app/packages/api/dist packages/api/dist
COPY clickhouse/migrations clickhouse/migrations

FROM runtime AS ingest
COPY --from=build /app/services/ingest/dist services/ingest/dist
ENV NODE_OPTIONS="--max-old-space-size=1024"
CMD ["node", "services/ingest/dist/main.js"]

FROM runtime AS query
COPY --from=build /app/services/query/dist services/query/dist
COPY --from=build /app/packages/dashboard/dist/page packages/dashboard/dist/page
EXPOSE 8080
CMD ["node", "services/query/dist/main.js"]

FROM runtime AS collector
COPY --from=build /app/services/collector/dist services/collector/dist
EXPOSE 8081
ENV NODE_OPTIONS="--max-old-space-size=1024 --max-semi-space-size=32"
CMD ["node", "services/collector/dist/main.js"]

FROM runtime AS alerts
COPY --from=build /app/services/alerts/dist services/alerts/dist
CMD ["node", "services/alerts/dist/main.js"]

FROM base AS cli
COPY --from=build /app/packages/cli/dist/package ./
ENTRYPOINT ["node", "bin/meterline.js"]
