/** SIGTERM for everything, as at a reboot or a deployment. */
import type { Fault } from './fault.js';
import { pause } from './waiting.js';

export const everythingTerminated: Fault = {
  name: 'everything-terminated',
  injects: 'SIGTERM of workers and API, and of their servers after them or at the same moment; then all start again',
  workers: 2,
  proxied: 'nothing',
  weight: 10,
  redis: 'server',
  strike: async ({ site, workers, random, signal, complain }) => {
    const services = Promise.all([workers.stop(), site.query.stop()]);
    const stopServers = () => Promise.all([site.clickhouse.stop(), site.redis.stop()]);
    if (random.chance(0.5)) await Promise.all([services, stopServers()]);
    const exitCodes = (await services).flat();
    if (exitCodes.some((code) => code !== 0)) complain(`SIGTERM ended services with ${exitCodes.join(', ')}`);
    await stopServers();

    await pause(random.integer(0, 1_000), signal);
    await Promise.all([site.clickhouse.start(), site.redis.start()]);
    await Promise.all([workers.start(2), site.startQuery()]);
  },
};
