/** Every fault: what fails, how, and while it does what. `npm run test:faults -- --list` prints it. */
import * as alerts from './alerts.js';
import * as injections from './injections.js';
import * as producers from './producers.js';
import { type Injection, playStream, type StreamFault } from './stream-run.js';
import type { Fault } from './suite.js';

type Play = Fault['play'];

const stream =
  (inject: Injection, more: Omit<StreamFault, 'inject'> = {}): Play =>
  (run) =>
    playStream(run, { inject, ...more });
const producer =
  (inject: producers.ProducerInjection): Play =>
  (run) =>
    producers.playProducers(run, inject);
const alert =
  (inject: alerts.AlertInjection, to?: readonly string[]): Play =>
  (run) =>
    alerts.playAlerts(run, inject, to);

const { clickhouseCuts, clickhouseSwallows, queryKilled, redisFull, redisUnreachable } = injections;
const { workerFrozen, workersKilled } = injections;
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

/** By the names of the faults. */
const PLAYS = {
  'worker-killed': stream(workersKilled, { workers: 1 }),
  'worker-of-two-killed': stream(workersKilled, { workers: 2 }),
  'worker-frozen': stream(workerFrozen, { workers: 2 }),
  'sealer-frozen': stream(injections.sealerFrozen, { workers: 1, proxied: 'clickhouse' }),
  'maintainer-stopped': stream(injections.maintainerStopped, { workers: 1, proxied: 'clickhouse' }),
  'clickhouse-killed': stream(clickhouseKilled),
  'clickhouse-hangs': stream(injections.clickhouseHangs, { proxied: 'clickhouse' }),
  'clickhouse-cuts': stream(clickhouseCuts, { proxied: 'clickhouse' }),
  'clickhouse-swallows': stream(clickhouseSwallows, { proxied: 'clickhouse' }),
  'redis-killed': stream(redisKilled),
  'redis-unreachable': stream(redisUnreachable, { proxied: 'redis' }),
  'redis-full': stream(redisFull),
  'disk-full': stream(injections.diskFull),
  'clocks-off': stream(injections.clocksOff),
  'query-killed': stream(queryKilled),
  'everything-terminated': stream(injections.everythingTerminated),
  'two-at-once': stream(injections.together(PAIRS), { proxied: 'both' }),
  'producer-killed': producer(producers.killed),
  'producer-cut-off': producer(producers.cutOff),
  'producer-cut-off-and-killed': producer(producers.cutOffAndKilled),
  'producer-frozen': producer(producers.frozen),
  'producer-terminated': producer(producers.terminated),
  'collector-killed': producer(producers.collectorKilled),
  'collector-redis-killed': producer(redisKilled),
  'alerts-killed': alert(alerts.killed),
  'alerts-redis-killed': alert(redisKilled),
  'receiver-fails': alert(alerts.receiverFails),
  'mail-server-down': alert(alerts.mailServerDown, alerts.RECIPIENTS.slice(0, 2)),
  'mail-server-slow': alert(alerts.mailServerSlow, alerts.RECIPIENTS.slice(0, 2)),
  'recipient-rejected': alert(alerts.recipientRejected, alerts.RECIPIENTS),
};

type Row = readonly [name: keyof typeof PLAYS | '', victim: string, how: string, doing: string, also?: string];

/** Rows without a name have tests of their own, as others have for what a run does not look at. */
export const TABLE: readonly Row[] = [
  ['worker-killed', 'the only worker', 'kill', 'taking, inserting, marking, acknowledging'],
  ['worker-of-two-killed', 'one of two workers, or both', 'kill', 'taking, inserting, marking, acknowledging'],
  ['worker-frozen', 'one of two workers', 'freeze, longer than its locks', 'inserting, acknowledging'],
  ['sealer-frozen', 'maintainer', 'freeze', 'sealing, between its two watermarks'],
  ['maintainer-stopped', 'maintainer', 'kill or freeze', 'recomputing, before rows or before marks are cleared'],
  ['clickhouse-killed', 'ClickHouse', 'kill', 'inserting, sealing, answering', 'log, health, metrics: e2e/outages'],
  ['clickhouse-hangs', 'ClickHouse', 'hang, for a while or for ever', 'inserting, marking'],
  ['clickhouse-cuts', 'ClickHouse', 'reset in the middle of a body', 'inserting, marking'],
  ['clickhouse-swallows', 'ClickHouse', 'lose the response to an insert that succeeded', 'inserting, marking'],
  ['redis-killed', 'Redis', 'kill', 'taking, acknowledging', 'log, health, metrics: e2e/outages'],
  ['redis-unreachable', 'Redis', 'freeze, hang or refuse', 'taking, acknowledging', 'silence for ever: e2e/outages'],
  ['redis-full', 'Redis', 'full', 'taking, adding', 'responses: e2e/redis'],
  ['disk-full', 'ClickHouse and Redis', 'full disk', 'inserting, adding'],
  ['clocks-off', 'clocks of workers and API', 'two days ahead and behind', 'taking, sealing, answering'],
  ['query-killed', 'query service', 'kill', 'paging'],
  ['everything-terminated', 'services and servers', 'SIGTERM, one after the other or at once', 'inserting, answering'],
  ['two-at-once', 'two of these', 'at once', 'inserting, paging'],
  ['producer-killed', 'producer', 'kill', 'recording'],
  ['producer-cut-off', 'producer', 'hang, refuse, reset or silence for ever', 'recording'],
  ['producer-cut-off-and-killed', 'producer', 'kill while nothing gets through', 'recording'],
  ['producer-frozen', 'producer', 'freeze', 'recording'],
  ['producer-terminated', 'producer', 'SIGTERM', 'recording'],
  ['collector-killed', 'collector', 'kill', 'collecting', 'SIGTERM: collector/collector'],
  ['collector-redis-killed', 'Redis of the collector', 'kill', 'collecting'],
  [
    'alerts-killed',
    'alerts service',
    'kill',
    'judging, between mark and delivery, delivering',
    'between the two, by itself: e2e/alerts',
  ],
  ['alerts-redis-killed', 'Redis', 'kill', 'judging, delivering'],
  ['receiver-fails', 'receiver of webhooks', 'refuse, hang or cut', 'delivering'],
  ['mail-server-down', 'mail server', 'refuse connections', 'delivering'],
  ['mail-server-slow', 'mail server', 'hang', 'delivering'],
  ['recipient-rejected', 'mail server', 'reject one recipient, defer others for a while', 'delivering'],
  ['', 'Redis of the collector', 'full, replica, slow, silent, not durable', 'collecting', 'collector/outages'],
  ['', 'Redis master', 'kill, freeze, replaced by Sentinels', 'collecting', 'e2e/outages, e2e/redis'],
  ['', 'query service', 'without ClickHouse or Redis', 'answering', 'contract/outages'],
];

export const FAULTS: readonly Fault[] = Object.entries(PLAYS).map(([name, play]) => {
  const [, victim, how, doing] = TABLE.find(([fault]) => fault === name) ?? [];
  return { name, what: `${victim}: ${how}, while ${doing}`, onSmallDisk: name === 'disk-full', play };
});
