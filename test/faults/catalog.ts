import { clickhouseCuts, clickhouseHangs, clickhouseKilled, clickhouseSwallows } from './clickhouse-faults.js';
import { clocksOff } from './clock-faults.js';
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
];

const canMount = canMountSmallDisk();

/** Those that this machine allows: some need the right to mount a file system. */
export const FAULTS: readonly Fault[] = ALL_FAULTS.filter(({ needsSmallDisk }) => canMount || !needsSmallDisk);

/** The names of the others. */
export const SKIPPED_FAULTS: readonly string[] = ALL_FAULTS.filter((fault) => !FAULTS.includes(fault)).map(
  ({ name }) => name,
);
