/** Runs the alerts service: evaluates alerts every few seconds and delivers their webhooks, messages and e-mails. */
import { abortable } from '@meterline/catalog';
import {
  checkRedis,
  inTime,
  onceAMinute,
  openAdminServer,
  runService,
  type Service,
  STOP_DEADLINE_MS,
  shared,
  warehouseOptions,
} from '@meterline/service';
import { readRedisStatus } from '@meterline/service/access';
import { AlertStore } from '@meterline/service/alerts';
import { prepareClickHouse } from '@meterline/service/clickhouse';
import { createRegistry, observeStatements, outageGauge } from '@meterline/service/metrics';
import { openQueueConnection, Scheduler } from '@meterline/service/queue';
import type { Tracing } from '@meterline/service/tracing';
import { createWarehouse, LOW_PRIORITY, rollupStateReader } from '@meterline/warehouse';
import { HttpsProxyAgent } from 'https-proxy-agent';
import type { Logger } from 'pino';
import { Deliverer } from './deliverer.js';
import { type Env, readEnv } from './env.js';
import { Evaluator } from './evaluator.js';
import { createAlertMetrics } from './metrics.js';
import { mailSender } from './send-mail.js';

const STATEMENT_TIMEOUT_MS = 15_000;
/** How long a health check waits for Redis. The service stays healthy during a Redis outage. */
const HEALTH_TIMEOUT_MS = 1_500;

async function startService(env: Env, log: Logger, tracing: Tracing): Promise<Service> {
  const { METERLINE_CONSTANTS: constants, QUEUE_PREFIX: prefix } = env;
  const registry = createRegistry('alerts');
  const observe = observeStatements(registry, tracing.tracer);
  const storage = { ...warehouseOptions(env, 'meterline-alerts'), observe };
  await checkRedis(env.REDIS_URL);
  await prepareClickHouse(storage, log);
  const limits = { maxExecutionMs: STATEMENT_TIMEOUT_MS, maxMemoryBytes: env.STATEMENT_MB * 2 ** 20 };
  // Use low priority, because no user waits for an alert.
  const warehouse = createWarehouse({ ...storage, ...limits }).within({ settings: LOW_PRIORITY });

  const connection = openQueueConnection(env.REDIS_URL);
  const alerts = new AlertStore(connection);
  const metrics = createAlertMetrics(registry, alerts.deliveries);
  outageGauge(registry, {
    ClickHouse: () => warehouse.ping(),
    Redis: () => connection.ping().then(() => true),
  });
  const evaluator = new Evaluator({
    ...{ alerts, warehouse, metrics, log },
    readRollupState: rollupStateReader(warehouse),
    pageUrl: env.API_PUBLIC_URL,
  });
  const { ALERT_SMTP_URL: smtpUrl, ALERT_SMTP_FROM: sender } = env;
  const scheduler = new Scheduler({
    connection: openQueueConnection(env.REDIS_URL),
    ...{ prefix, queue: 'meterline-alerts', name: 'evaluation' },
    everyMs: constants.evaluateEveryMs,
    lockMs: constants.lockMs,
    run: () => evaluator.evaluateAll(new Date()),
    onError: onceAMinute((err: unknown) => {
      log.error(
        { event: 'evaluation_queue_error', err },
        'alerts are not evaluated: Redis rejects a command on the queue',
      );
    }),
  });
  const deliverer = new Deliverer({
    ...{ alerts, metrics, log },
    sendMail: smtpUrl && sender ? mailSender(smtpUrl, sender) : undefined,
    outboxEveryMs: constants.outboxEveryMs,
    retryMs: constants.retryMs,
    allowedHosts: env.ALERT_ALLOWED_HOSTS,
    proxyAgent: env.ALERT_PROXY === undefined ? undefined : new HttpsProxyAgent(env.ALERT_PROXY),
  });
  // While Redis is unavailable, commands wait. Concurrent health checks share one read, so that waiting reads do not pile up.
  const redisStatus = shared(() => readRedisStatus(connection));
  const health = async () => {
    const status = await inTime('Redis', redisStatus(), HEALTH_TIMEOUT_MS).catch(() => undefined);
    const healthy = status?.problem === undefined;
    const { lastRun: lastTurn } = evaluator;
    return { healthy, facts: { status: healthy ? 'ok' : 'unhealthy', lastTurn, redisProblem: status?.problem } };
  };
  const admin = await openAdminServer(env, { health, metrics: registry }, log);
  scheduler.run();
  deliverer.run();
  log.info({ event: 'started', adminPort: admin?.port }, 'evaluating alerts');
  return {
    stop: async () => {
      const deadline = AbortSignal.timeout(STOP_DEADLINE_MS);
      try {
        await abortable(Promise.all([scheduler.close(), deliverer.close()]), deadline);
      } catch (error) {
        if (!deadline.aborted) throw error;
        // An attempt may take longer than the deadline. When its claim (lease) expires, the webhook is sent again with the same ID.
        log.warn(
          { event: 'stopped_unfinished' },
          'unfinished webhook deliveries are sent again when their leases expire',
        );
      }
      await admin?.close();
      connection.disconnect();
      await warehouse.close();
    },
  };
}

await runService('meterline-alerts', readEnv, startService);
