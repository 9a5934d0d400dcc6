export type { Counters } from './counters.js';
export { type Emitter, openEmitter } from './emitter.js';
export type { EventToRecord } from './event.js';
export type { EmitterOptions, SpoolOptions } from './options.js';
export { EmitterError, type Problem } from './problems.js';
export type { UsageToSum } from './sums.js';
export type { GbSecondsDimension, RunningTimer, Workload } from './timers.js';
