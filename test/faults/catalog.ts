import { clickhouseCuts, clickhouseHangs, clickhouseKilled, clickhouseSwallows } from './clickhouse-faults.js';
import { clocksOff } from './clock-faults.js';
import { masterFrozen, masterKilled, masterReplaced, workerAndMaster } from './cluster-faults.js';
import { diskFull } from './disk-fault.js';
import type { Fault } from './fault.js';
import { twoAtOnce } from './pair-fault.js';
import { redisFull, redisKilled, redisUnreachable } from './redis-faults.js';
import { repairerStopped } from './repairer-fault.js';
import { sealerFrozen } from './sealer-fault.js';
import { canMountSmallDisk } from './small-disk.js';
import { everythingTerminated } from './termination.js';
import { queryKilled } from './walk-fault.js';
import { workerFrozen, workerKilled, workerOfTwoKilled } from './worker-faults.js';

const ALL_FAULTS: readonly Fault[] = [
  workerKilled,
  workerOfTwoKilled,
  workerFrozen,
  sealerFrozen,
  repairerStopped,
  clickhouseKilled,
  clickhouseHangs,
  clickhouseCuts,
  clickhouseSwallows,
  redisKilled,
  redisUnreachable,
  redisFull,
  diskFull,
  clocksOff,
  queryKilled,
  everythingTerminated,
  twoAtOnce,
  masterKilled,
  masterFrozen,
  workerAndMaster,
  masterReplaced,
];

const canMount = canMountSmallDisk();

const POSSIBLE = ALL_FAULTS.filter(({ needsSmallDisk }) => canMount || !needsSmallDisk);

/** Those that this machine allows where Redis is one server: some need the right to mount a file system. */
export const FAULTS: readonly Fault[] = POSSIBLE.filter(({ redis = 'server' }) => redis === 'server');

/** Those where Redis is a Cluster. */
export const CLUSTER_FAULTS: readonly Fault[] = POSSIBLE.filter(({ redis }) => redis !== 'server');

/** The names of the others. */
export const SKIPPED_FAULTS: readonly string[] = ALL_FAULTS.filter((fault) => !POSSIBLE.includes(fault)).map(
  ({ name }) => name,
);
