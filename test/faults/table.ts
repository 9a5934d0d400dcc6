/**
 * Every fault: what fails, how, and while it does what. A row with a name is played by `npm run test:faults`; `weight` is its share of the
 * rounds. README.md has the same table, which a test compares with this one.
 */
import * as alerts from './alerts.js';
import { queryKilled } from './paging.js';
import * as producers from './producers.js';
import type { StreamFault } from './round.js';
import * as strikes from './strikes.js';

const { clickhouseCuts, clickhouseSwallows, redisFull, redisUnreachable, workerFrozen, workersKilled } = strikes;
const clickhouseKilled = strikes.killed(({ clickhouse }) => clickhouse);
const redisKilled = strikes.killed(({ redis }) => redis);

interface Row {
  readonly victim: string;
  readonly how: string;
  readonly while: string;
  /** Tests of what a round does not look at. */
  readonly also?: string;
}
interface PlayedRow extends Row {
  readonly name: string;
  readonly weight: number;
  /** The others are played once by `npm run test:full`. */
  readonly inNpmTest?: true;
  /** Whether the servers' data must lie on a small disk of their own, which can be filled. */
  readonly onSmallDisk?: true;
  readonly play:
    | StreamFault
    | { readonly producers: producers.ProducerStrike }
    | { readonly alerts: alerts.AlertStrike };
}

export const TABLE = [
  {
    ...{ name: 'worker-killed', weight: 14, inNpmTest: true, play: { workers: 1, strike: workersKilled } },
    ...{ victim: 'the only worker', how: 'kill', while: 'taking, inserting, marking, acknowledging' },
  },
  {
    ...{ name: 'worker-of-two-killed', weight: 14, play: { strike: workersKilled } },
    ...{ victim: 'one of two workers, or both', how: 'kill', while: 'taking, inserting, marking, acknowledging' },
  },
  {
    ...{ name: 'worker-frozen', weight: 10, play: { strike: workerFrozen } },
    ...{ victim: 'one of two workers', how: 'freeze, longer than its locks', while: 'inserting, acknowledging' },
  },
  {
    ...{ name: 'sealer-frozen', weight: 8, play: { workers: 1, proxied: 'clickhouse', strike: strikes.sealerFrozen } },
    ...{ victim: 'maintainer', how: 'freeze', while: 'sealing, between its two watermarks' },
  },
  {
    name: 'maintainer-stopped',
    ...{ weight: 8, play: { workers: 1, proxied: 'clickhouse', strike: strikes.maintainerStopped } },
    ...{ victim: 'maintainer', how: 'kill or freeze', while: 'recomputing, before rows or before marks are cleared' },
  },
  {
    ...{ name: 'clickhouse-killed', weight: 14, inNpmTest: true, play: { strike: clickhouseKilled } },
    ...{ victim: 'ClickHouse', how: 'kill', while: 'inserting, sealing, answering' },
    also: 'log, health, metrics, stopping: `e2e/outages`',
  },
  {
    ...{ name: 'clickhouse-hangs', weight: 8, play: { proxied: 'clickhouse', strike: strikes.clickhouseHangs } },
    ...{ victim: 'ClickHouse', how: 'hang, for a while or for ever', while: 'inserting, marking' },
  },
  {
    ...{ name: 'clickhouse-cuts', weight: 12, play: { proxied: 'clickhouse', strike: clickhouseCuts } },
    ...{ victim: 'ClickHouse', how: 'reset in the middle of a body', while: 'inserting, marking' },
  },
  {
    ...{ name: 'clickhouse-swallows', weight: 12, play: { proxied: 'clickhouse', strike: clickhouseSwallows } },
    ...{ victim: 'ClickHouse', how: 'lose the response to an insert that succeeded', while: 'inserting, marking' },
  },
  {
    ...{ name: 'redis-killed', weight: 14, inNpmTest: true, play: { strike: redisKilled } },
    ...{ victim: 'Redis', how: 'kill', while: 'taking, acknowledging' },
    also: 'log, health, metrics, stopping: `e2e/outages`',
  },
  {
    ...{ name: 'redis-unreachable', weight: 6, play: { proxied: 'redis', strike: redisUnreachable } },
    ...{ victim: 'Redis', how: 'freeze, hang or refuse', while: 'taking, acknowledging' },
    also: 'connections that fall silent for ever: `e2e/silent-redis`',
  },
  {
    ...{ name: 'redis-full', weight: 6, play: { strike: redisFull } },
    ...{ victim: 'Redis', how: 'full', while: 'taking, adding', also: 'responses: `e2e/full-redis`' },
  },
  {
    ...{ name: 'disk-full', weight: 5, onSmallDisk: true, play: { strike: strikes.diskFull } },
    ...{ victim: 'ClickHouse and Redis', how: 'full disk', while: 'inserting, adding' },
  },
  {
    ...{ name: 'clocks-off', weight: 8, play: { strike: strikes.clocksOff } },
    ...{ victim: 'clocks of workers and API', how: 'two days ahead and behind', while: 'taking, sealing, answering' },
  },
  {
    ...{ name: 'query-killed', weight: 10, play: { strike: queryKilled } },
    ...{ victim: 'query service', how: 'kill', while: 'paging' },
  },
  {
    ...{ name: 'everything-terminated', weight: 10, play: { strike: strikes.everythingTerminated } },
    ...{
      victim: 'services and servers',
      how: 'SIGTERM, one after the other or at once',
      while: 'inserting, answering',
    },
    also: 'exit code and jobs given back: `e2e/outages`',
  },
  {
    ...{ name: 'two-at-once', weight: 22, victim: 'two of these', how: 'at once', while: 'inserting, paging' },
    play: {
      proxied: 'both',
      strike: strikes.together([
        [workersKilled, clickhouseKilled],
        [workersKilled, redisKilled],
        [workersKilled, redisFull],
        [workersKilled, clickhouseSwallows],
        [workerFrozen, clickhouseCuts],
        [workerFrozen, clickhouseKilled],
        [clickhouseKilled, redisKilled],
        [clickhouseKilled, queryKilled],
        [clickhouseKilled, redisUnreachable],
        [redisFull, clickhouseKilled],
        [queryKilled, workersKilled],
      ]),
    },
  },
  {
    ...{ name: 'producer-killed', weight: 14, inNpmTest: true, play: { producers: producers.killed } },
    ...{ victim: 'producer', how: 'kill', while: 'recording' },
  },
  {
    ...{ name: 'producer-cut-off', weight: 8, play: { producers: producers.cutOff } },
    ...{ victim: 'producer', how: 'hang, refuse, reset or silence for ever', while: 'recording' },
  },
  {
    ...{
      name: 'producer-cut-off-and-killed',
      weight: 8,
      inNpmTest: true,
      play: { producers: producers.cutOffAndKilled },
    },
    ...{ victim: 'producer', how: 'kill while nothing gets through', while: 'recording' },
  },
  {
    ...{ name: 'producer-frozen', weight: 6, inNpmTest: true, play: { producers: producers.frozen } },
    ...{ victim: 'producer', how: 'freeze', while: 'recording' },
  },
  {
    ...{ name: 'producer-terminated', weight: 6, inNpmTest: true, play: { producers: producers.terminated } },
    ...{ victim: 'producer', how: 'SIGTERM', while: 'recording' },
  },
  {
    ...{ name: 'collector-killed', weight: 10, inNpmTest: true, play: { producers: producers.collectorKilled } },
    ...{ victim: 'collector', how: 'kill', while: 'collecting', also: 'SIGTERM: `collector/stop`' },
  },
  {
    ...{ name: 'collector-redis-killed', weight: 8, play: { producers: producers.redisKilled } },
    ...{ victim: 'Redis of the collector', how: 'kill', while: 'collecting' },
  },
  {
    ...{ name: 'alerts-killed', weight: 8, inNpmTest: true, play: { alerts: alerts.killed } },
    ...{ victim: 'alerts service', how: 'kill', while: 'judging, between mark and job, delivering' },
    also: 'each point by itself: `e2e/alerts`',
  },
  {
    ...{ name: 'alerts-redis-killed', weight: 6, inNpmTest: true, play: { alerts: alerts.redisKilled } },
    ...{ victim: 'Redis', how: 'kill', while: 'judging, delivering' },
  },
  {
    ...{ name: 'receiver-fails', weight: 6, inNpmTest: true, play: { alerts: alerts.receiverFails } },
    ...{ victim: 'receiver of webhooks', how: 'refuse, hang or cut', while: 'delivering' },
  },
  {
    ...{ victim: 'Redis of the collector', how: 'full, replica, slow, silent, not durable', while: 'collecting' },
    also: 'status, code and memory: `collector/outages`',
  },
  {
    ...{ victim: 'Redis master', how: 'kill, freeze, replaced by Sentinels', while: 'collecting' },
    also: '`e2e/redis-failures`; what `replicas=1` promises: `e2e/redis-sentinel`',
  },
  {
    ...{ victim: 'query service', how: 'without ClickHouse or Redis', while: 'answering' },
    also: 'status, code and log: `contract/outages`',
  },
] as const satisfies readonly (Row | PlayedRow)[];

export const FAULTS: readonly PlayedRow[] = TABLE.flatMap((row) => ('name' in row ? [row] : []));
