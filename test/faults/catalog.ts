import { clickhouseCuts, clickhouseHangs, clickhouseKilled, clickhouseSwallows } from './clickhouse-faults.js';
import type { Fault } from './fault.js';
import { redisKilled, redisUnreachable } from './redis-faults.js';
import { everythingTerminated } from './termination.js';
import { workerFrozen, workerKilled, workerOfTwoKilled } from './worker-faults.js';

export const FAULTS: readonly Fault[] = [
  workerKilled,
  workerOfTwoKilled,
  workerFrozen,
  clickhouseKilled,
  clickhouseHangs,
  clickhouseCuts,
  clickhouseSwallows,
  redisKilled,
  redisUnreachable,
  everythingTerminated,
];
