/** Every fault: what fails, how, and while it does what. `npm run test:faults -- --list` prints it. */
import * as alerts from './alerts.js';
import type { Fixture } from './fixture.js';
import * as injections from './injections.js';
import { queryKilled } from './paging.js';
import * as producers from './producers.js';
import { type FinishedRun, playStream, type RunOptions, type StreamFault } from './stream-run.js';

interface Row {
  readonly victim: string;
  readonly how: string;
  readonly while: string;
  /** Tests of what a run does not look at. */
  readonly also?: string;
}
export interface PlayedRow extends Row {
  readonly name: string;
  /** The others are played once by `npm run test:full`. */
  readonly inNpmTest?: true;
  /** Whether the servers' data must lie on a small disk of their own, which can be filled. */
  readonly onSmallDisk?: true;
  readonly play: Play;
}
type Play = (fixture: Fixture, options: RunOptions, signal: AbortSignal) => Promise<FinishedRun>;

function row(
  name: string,
  [victim, how, doing]: readonly [string, string, string],
  play: Play,
  more: Pick<PlayedRow, 'also' | 'inNpmTest' | 'onSmallDisk'> = {},
): PlayedRow {
  return { name, victim, how, while: doing, play, ...more };
}

const stream =
  (inject: injections.Injection, more: Omit<StreamFault, 'inject'> = {}): Play =>
  (...run) =>
    playStream(...run, { inject, ...more });
const producer =
  (inject: producers.ProducerInjection): Play =>
  (...run) =>
    producers.playProducers(...run, inject);
const alert =
  (inject: alerts.AlertInjection): Play =>
  (...run) =>
    alerts.playAlerts(...run, inject);

const { clickhouseCuts, clickhouseSwallows, redisFull, redisUnreachable, workerFrozen, workersKilled } = injections;
const clickhouseKilled = injections.killed(({ clickhouse }) => clickhouse);
const redisKilled = injections.killed(({ redis }) => redis);
const PAIRS = [
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
] as const;

export const FAULTS: readonly PlayedRow[] = [
  row(
    'worker-killed',
    ['the only worker', 'kill', 'taking, inserting, marking, acknowledging'],
    stream(workersKilled, { workers: 1 }),
    { inNpmTest: true },
  ),
  row(
    'worker-of-two-killed',
    ['one of two workers, or both', 'kill', 'taking, inserting, marking, acknowledging'],
    stream(workersKilled),
  ),
  row(
    'worker-frozen',
    ['one of two workers', 'freeze, longer than its locks', 'inserting, acknowledging'],
    stream(workerFrozen),
  ),
  row(
    'sealer-frozen',
    ['maintainer', 'freeze', 'sealing, between its two watermarks'],
    stream(injections.sealerFrozen, { workers: 1, proxied: 'clickhouse' }),
  ),
  row(
    'maintainer-stopped',
    ['maintainer', 'kill or freeze', 'recomputing, before rows or before marks are cleared'],
    stream(injections.maintainerStopped, { workers: 1, proxied: 'clickhouse' }),
  ),
  row('clickhouse-killed', ['ClickHouse', 'kill', 'inserting, sealing, answering'], stream(clickhouseKilled), {
    inNpmTest: true,
    also: 'log, health, metrics, stopping: e2e/outages',
  }),
  row(
    'clickhouse-hangs',
    ['ClickHouse', 'hang, for a while or for ever', 'inserting, marking'],
    stream(injections.clickhouseHangs, { proxied: 'clickhouse' }),
  ),
  row(
    'clickhouse-cuts',
    ['ClickHouse', 'reset in the middle of a body', 'inserting, marking'],
    stream(clickhouseCuts, { proxied: 'clickhouse' }),
  ),
  row(
    'clickhouse-swallows',
    ['ClickHouse', 'lose the response to an insert that succeeded', 'inserting, marking'],
    stream(clickhouseSwallows, { proxied: 'clickhouse' }),
  ),
  row('redis-killed', ['Redis', 'kill', 'taking, acknowledging'], stream(redisKilled), {
    inNpmTest: true,
    also: 'log, health, metrics, stopping: e2e/outages',
  }),
  row(
    'redis-unreachable',
    ['Redis', 'freeze, hang or refuse', 'taking, acknowledging'],
    stream(redisUnreachable, { proxied: 'redis' }),
    { also: 'connections that fall silent for ever: e2e/silent-redis' },
  ),
  row('redis-full', ['Redis', 'full', 'taking, adding'], stream(redisFull), { also: 'responses: e2e/full-redis' }),
  row('disk-full', ['ClickHouse and Redis', 'full disk', 'inserting, adding'], stream(injections.diskFull), {
    onSmallDisk: true,
  }),
  row(
    'clocks-off',
    ['clocks of workers and API', 'two days ahead and behind', 'taking, sealing, answering'],
    stream(injections.clocksOff),
  ),
  row('query-killed', ['query service', 'kill', 'paging'], stream(queryKilled)),
  row(
    'everything-terminated',
    ['services and servers', 'SIGTERM, one after the other or at once', 'inserting, answering'],
    stream(injections.everythingTerminated),
    { also: 'exit code and jobs given back: e2e/outages' },
  ),
  row(
    'two-at-once',
    ['two of these', 'at once', 'inserting, paging'],
    stream(injections.together(PAIRS), { proxied: 'both' }),
  ),
  row('producer-killed', ['producer', 'kill', 'recording'], producer(producers.killed), { inNpmTest: true }),
  row(
    'producer-cut-off',
    ['producer', 'hang, refuse, reset or silence for ever', 'recording'],
    producer(producers.cutOff),
  ),
  row(
    'producer-cut-off-and-killed',
    ['producer', 'kill while nothing gets through', 'recording'],
    producer(producers.cutOffAndKilled),
    { inNpmTest: true },
  ),
  row('producer-frozen', ['producer', 'freeze', 'recording'], producer(producers.frozen), { inNpmTest: true }),
  row('producer-terminated', ['producer', 'SIGTERM', 'recording'], producer(producers.terminated), { inNpmTest: true }),
  row('collector-killed', ['collector', 'kill', 'collecting'], producer(producers.collectorKilled), {
    inNpmTest: true,
    also: 'SIGTERM: collector/stop',
  }),
  row('collector-redis-killed', ['Redis of the collector', 'kill', 'collecting'], producer(producers.redisKilled)),
  row('alerts-killed', ['alerts service', 'kill', 'judging, between mark and job, delivering'], alert(alerts.killed), {
    inNpmTest: true,
    also: 'each point by itself: e2e/alerts',
  }),
  row('alerts-redis-killed', ['Redis', 'kill', 'judging, delivering'], alert(alerts.redisKilled), { inNpmTest: true }),
  row('receiver-fails', ['receiver of webhooks', 'refuse, hang or cut', 'delivering'], alert(alerts.receiverFails), {
    inNpmTest: true,
  }),
];

/** Tests of their own look at these. */
const ELSEWHERE: readonly Row[] = [
  {
    victim: 'Redis of the collector',
    how: 'full, replica, slow, silent, not durable',
    while: 'collecting',
    also: 'status, code and memory: collector/outages',
  },
  {
    victim: 'Redis master',
    how: 'kill, freeze, replaced by Sentinels',
    while: 'collecting',
    also: 'e2e/redis-failures; what replicas=1 promises: e2e/redis-sentinel',
  },
  {
    victim: 'query service',
    how: 'without ClickHouse or Redis',
    while: 'answering',
    also: 'status, code and log: contract/outages',
  },
];

export const TABLE: readonly (Row & Partial<PlayedRow>)[] = [...FAULTS, ...ELSEWHERE];
