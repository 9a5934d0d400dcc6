/**
 * Injects faults, round after round: `npm run test:faults -- [--rounds 100] [--seed S] [--only fault,fault] [--lanes 4]
 * [--redis cluster]`. On a Redis Cluster there are two queues, and other faults.
 *
 * Exits with 0 only if nothing was lost, doubled or stuck. Ctrl-C ends all processes of the run and removes its files.
 * --brief is the short form that `npm test` uses; --json adds the table as one line of JSON.
 */
import { parseArgs } from 'node:util';
import { runCampaign } from './campaign.js';
import { CLUSTER_FAULTS, FAULTS, SKIPPED_FAULTS } from './catalog.js';
import { formatResult, formatTable, hasPassed, summarise } from './report.js';
import type { RoundResult } from './round.js';

const INTERRUPTED = 130;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string' },
    lanes: { type: 'string', default: '4' },
    redis: { type: 'string', default: 'server' },
    brief: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const only = options.only?.split(',');
const onCluster = options.redis === 'cluster';
const known = onCluster ? CLUSTER_FAULTS : FAULTS;
const faults = known.filter(({ name }) => only === undefined || only.includes(name));
const [rounds, seed, lanes] = [Number(options.rounds), Number(options.seed), Number(options.lanes)];

if (
  !/^(server|cluster)$/.test(options.redis) ||
  faults.length === 0 ||
  (only && faults.length < only.length) ||
  ![rounds, seed, lanes].every(Number.isSafeInteger) ||
  lanes < 1
) {
  console.error(
    `usage: npm run test:faults -- [--redis cluster] [--rounds N] [--seed S] [--lanes N] [--only ${known.map(({ name }) => name).join('|')}]`,
  );
  process.exit(2);
}

const stop = new AbortController();
const interrupted = () => {
  if (!stop.signal.aborted) console.log('stopping…');
  stop.abort();
};
// `disconnect`: the test that started this process is gone.
for (const end of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect'] as const) process.on(end, interrupted);
process.channel?.unref();
// The reader of the output may be gone as well; this process must still clean up.
process.stdout.on('error', interrupted);

console.log(`seed ${seed}`);
for (const name of SKIPPED_FAULTS) console.log(`– ${name}: skipped, because this user may not mount a file system`);
try {
  const { brief } = options;
  const onResult = (result: RoundResult) => console.log(formatResult(result, brief));
  const results = await runCampaign({ rounds, seed, faults, lanes, onCluster, brief, onResult }, stop.signal);
  const summaries = summarise(faults, results);
  console.log(`\n${formatTable(summaries)}`);
  // Printed again, because a round that was right at first and is wrong now appears only here.
  for (const failed of results.filter((result) => !hasPassed(result))) console.log(formatResult(failed, brief));
  if (options.json) console.log(JSON.stringify(summaries));
  process.exitCode = results.every(hasPassed) ? 0 : 1;
} catch (error) {
  if (!stop.signal.aborted) throw error;
  process.exitCode = INTERRUPTED;
}
// Everything is ended by now. A Cluster client of ioredis that is disconnected while it asks for slots goes on asking for ever.
process.exit();
