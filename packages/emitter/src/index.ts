export { type Emitter, openEmitter } from './emitter.js';
export type { EventToRecord } from './event.js';
export type { EmitterOptions, SpoolOptions } from './options.js';
export type { Counters } from './problems.js';
export { EmitterError, type Problem } from './problems.js';
export type { GbSecondsDimension, RunningTimer, UsageToSum, Workload } from './sums.js';
