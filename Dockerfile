# Meterline's production images: docker build --target ingest | query | collector | cli .
# Small, non-root, without development dependencies and without the embedded engine of packages/local-stack.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY . .
# npm install, not npm ci: the lock file lists the optional packages of the platform it was made on alone.
RUN npm install --no-audit --no-fund --ignore-scripts
RUN npx tsc -b packages/cli packages/client services/ingest services/query services/collector && node scripts/build-page.mjs

FROM node:24-bookworm-slim AS runtime
ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages/catalog/package.json packages/catalog/
COPY packages/warehouse/package.json packages/warehouse/
COPY packages/access/package.json packages/access/
COPY packages/service/package.json packages/service/
COPY packages/api/package.json packages/api/
COPY packages/client/package.json packages/client/
COPY packages/operations/package.json packages/operations/
COPY packages/cli/package.json packages/cli/
COPY services/ingest/package.json services/ingest/
COPY services/query/package.json services/query/
COPY services/collector/package.json services/collector/
RUN npm install --omit=dev --no-audit --no-fund --ignore-scripts \
      --workspace @meterline/ingest --workspace @meterline/query --workspace @meterline/collector --workspace @meterline/cli \
 && npm cache clean --force
COPY --from=build /app/packages/catalog/dist packages/catalog/dist
COPY --from=build /app/packages/warehouse/dist packages/warehouse/dist
COPY --from=build /app/packages/access/dist packages/access/dist
COPY --from=build /app/packages/service/dist packages/service/dist
COPY --from=build /app/packages/api/dist packages/api/dist
COPY clickhouse/migrations clickhouse/migrations
USER node

FROM runtime AS ingest
COPY --from=build /app/services/ingest/dist services/ingest/dist
ENV NODE_OPTIONS=--max-old-space-size=1024
CMD ["node", "services/ingest/dist/main.js"]

FROM runtime AS query
COPY --from=build /app/services/query/dist services/query/dist
COPY --from=build /app/packages/dashboard/dist/page packages/dashboard/dist/page
EXPOSE 8080
CMD ["node", "services/query/dist/main.js"]

FROM runtime AS collector
COPY --from=build /app/services/collector/dist services/collector/dist
COPY --from=build /app/packages/dashboard/dist/page packages/dashboard/dist/page
EXPOSE 8081
ENV NODE_OPTIONS=--max-old-space-size=1024
CMD ["node", "services/collector/dist/main.js"]

FROM runtime AS cli
COPY --from=build /app/packages/client/dist packages/client/dist
COPY --from=build /app/packages/operations/dist packages/operations/dist
COPY packages/cli/bin packages/cli/bin
COPY --from=build /app/packages/cli/dist packages/cli/dist
ENTRYPOINT ["node", "packages/cli/bin/meterline.js"]
