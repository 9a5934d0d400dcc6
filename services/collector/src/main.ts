/** The collector as a process. */
import { collectGarbageLate, runService } from '@meterline/service';
import { readEnv } from './env.js';
import { startService } from './start.js';

collectGarbageLate();
await runService('meterline-collector', readEnv, startService);
