/** Processes whose clocks are wrong. Those of ClickHouse and Redis are right. */
import { fileURLToPath } from 'node:url';
import type { ServiceEnvironment } from '../services.js';
import type { Fault } from './fault.js';
import { pause } from './waiting.js';

const PRELOADED = fileURLToPath(new URL('skewed-clock.mjs', import.meta.url));
const TWO_DAYS_MS = 2 * 86_400_000;

export const clocksOff: Fault = {
  name: 'clocks-off',
  injects:
    'workers and API are started again with clocks two days ahead and two days behind, and later with right ones',
  workers: 2,
  proxied: 'nothing',
  weight: 8,
  strike: async ({ site, workers, random, brief, signal, complain }) => {
    const restarted = async (api: ServiceEnvironment, ...each: readonly ServiceEnvironment[]) => {
      const codes = [...(await workers.stop()), await site.query.stop()];
      if (codes.some((code) => code !== 0)) complain(`SIGTERM ended services with ${codes.join(', ')}`);
      await Promise.all([site.startQuery(api), ...each.map((env) => workers.start(1, env))]);
    };
    await restarted(offBy(random.pick([-1, 1])), offBy(-1), offBy(1));
    await pause(brief ? 500 : random.integer(500, 4_000), signal);
    await restarted({}, {}, {});
  },
};

function offBy(times: number): ServiceEnvironment {
  return { NODE_OPTIONS: `--import=${PRELOADED}`, METERLINE_TEST_CLOCK_OFFSET_MS: String(times * TWO_DAYS_MS) };
}
