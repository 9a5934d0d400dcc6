/** Runs the query service: connects to ClickHouse and Redis, builds the API, and opens the ports. */
import { fileURLToPath } from 'node:url';
import { builtPage, hostService } from '@meterline/api';
import { runService, type Service, warehouseOptions } from '@meterline/service';
import { REDIS_PREFIX } from '@meterline/service/access';
import { AlertStore } from '@meterline/service/alerts';
import { prepareClickHouse, registerCatalog } from '@meterline/service/clickhouse';
import { openCatalog } from '@meterline/service/files';
import { observeStatements, outageGauge } from '@meterline/service/metrics';
import type { Tracing } from '@meterline/service/tracing';
import { ViewStore } from '@meterline/service/views';
import { createWarehouse, readProcessors, rollupStateReader, type Warehouse } from '@meterline/warehouse';
import type { Logger } from 'pino';
import { Admission, type AdmissionLimits, permitGauges } from './admission/admission.js';
import { createApp } from './app.js';
import { type Env, readEnv } from './env.js';
import { StoredGroups } from './metrics/pages.js';
import { measuredCache } from './metrics/response-cache.js';

/** The relative path from the compiled file is the same in the repository and in the container image. */
const PAGE_FOLDER = fileURLToPath(new URL('../../../packages/dashboard/dist/page', import.meta.url));

function startService(env: Env, log: Logger, tracing: Tracing): Promise<Service> {
  const { METERLINE_CONSTANTS: constants } = env;
  const outage = 'requests with an API key get 503 until it does';
  const options = { name: 'query', log, tracing, outage } as const;
  return hostService(env, options, async (host) => {
    const { registry, redis, keys, rates, observeDenial } = host;
    const observe = observeStatements(registry, tracing.tracer);
    const storage = { ...warehouseOptions(env, 'meterline-query'), observe };
    await openCatalog(env.CATALOG);
    await prepareClickHouse(storage, log);
    const warehouse = createWarehouse({
      ...storage,
      maxExecutionMs: constants.statementMs,
      maxMemoryBytes: env.STATEMENT_MB * 2 ** 20,
    });
    host.onClose(() => warehouse.close());
    await registerCatalog(storage, warehouse);
    outageGauge(registry, {
      // Use a ping, because a statement would be counted and traced each time the metrics are scraped.
      ClickHouse: () => warehouse.ping(),
      Redis: () => keys.ping().then(() => true),
    });
    const admission = new Admission({
      limits: await admissionLimits(env, warehouse),
      rates,
      warehouse,
      observeDenial,
    });
    permitGauges(registry, admission);
    const app = createApp({
      ...host,
      warehouse,
      readRollupState: rollupStateReader(warehouse, constants.eventsOnly > 0),
      cache: measuredCache(registry, constants.cacheBytes),
      storedGroups: new StoredGroups(redis, REDIS_PREFIX, constants.maxStoredGroups),
      admission,
      maxInFlightBytes: constants.maxInFlightBytes,
      alerts: new AlertStore(redis),
      views: new ViewStore(redis),
      allowedHosts: env.ALERT_ALLOWED_HOSTS,
      sendsMail: env.ALERT_SMTP_FROM !== undefined,
      pageUrl: env.PUBLIC_URL,
      cursorSecret: env.CURSOR_SECRET,
      collectorUrl: env.COLLECTOR_URL,
      frameAncestors: env.FRAME_ANCESTORS,
      pageFolder: builtPage(PAGE_FOLDER, log),
    });
    return { app };
  });
}

/** Half of the permits are reserved for short statements. With two permits per processor, each long statement has a processor of its own. */
const STATEMENTS_PER_PROCESSOR = 2;
const MIN_STATEMENTS = 4;
/** An account's statements count as long if their average time is longer: ten times the time of a dashboard's query. */
const LONG_STATEMENT_MS = 250;

const ACCOUNTS_WAITING = 10;

/** docs/operations.md, "Many tenants", explains the choice of these limits. */
async function admissionLimits(
  { METERLINE_CONSTANTS: constants }: Env,
  warehouse: Warehouse,
): Promise<AdmissionLimits> {
  return {
    process:
      constants.statements || Math.max(MIN_STATEMENTS, STATEMENTS_PER_PROCESSOR * (await readProcessors(warehouse))),
    account: constants.accountStatements,
    caller: constants.callerStatements,
    longMs: LONG_STATEMENT_MS,
    maxWaitMs: constants.maxWaitMs,
    maxWaitingOfAccount: constants.maxWaiting,
    maxWaiting: ACCOUNTS_WAITING * constants.maxWaiting,
  };
}

await runService('meterline-query', readEnv, startService);
