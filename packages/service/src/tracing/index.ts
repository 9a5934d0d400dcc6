export { EnvError } from '../environment.js';
export { readTracingSettings, type TracingSettings } from './settings.js';
export { eachObserver, statementSpans } from './statement-spans.js';
export { noTracing, startTracing, type Tracing } from './tracing.js';
export { tracingTrouble } from './trouble.js';
