export type { Counters } from './counters.js';
export { type Emitter, openEmitter } from './emitter.js';
export { EmitterError } from './errors.js';
export type { EventToRecord } from './event-text.js';
export type { EmitterOptions, SpoolOptions } from './options.js';
export type { Problem } from './problem.js';
export type { UsageToSum } from './sums.js';
export type { GbSecondsDimension, RunningTimer, Workload } from './timers.js';
