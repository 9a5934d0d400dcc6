/** The alerts service as a process. */
import { runService } from '@meterline/service';
import { readEnv } from './env.js';
import { startService } from './start.js';

await runService('meterline-alerts', readEnv, startService);
