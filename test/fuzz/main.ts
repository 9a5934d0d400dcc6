/**
 * Sends the product what no honest client would: `npm run test:fuzz -- [--requests 40000] [--events 40000] [--seed S] [--only fuzz]…`.
 *
 * Exits with 0 only if everything held. Ctrl-C ends all processes of the run and removes its files. --json adds the table
 * as one line of JSON; `npm test` uses it with fewer requests and events.
 */
import { inspect, parseArgs } from 'node:util';
import { markdownTable } from '../harness/table.js';
import { bytesFuzz } from './bytes.js';
import { eventsFuzz } from './events.js';
import { jobsFuzz } from './jobs.js';
import { requestsFuzz } from './requests.js';
import { grantsFuzz, producerFuzz } from './rights.js';
import { FuzzSite } from './site.js';

/** The last two try every command of a producer and every statement of each user of ClickHouse. */
const FUZZES = [requestsFuzz, bytesFuzz, jobsFuzz, eventsFuzz, producerFuzz, grantsFuzz];

const INTERRUPTED = 130;

const { values: options } = parseArgs({
  options: {
    requests: { type: 'string', default: '40000' },
    events: { type: 'string', default: '40000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string', multiple: true },
    json: { type: 'boolean', default: false },
  },
});
const fuzzes = FUZZES.filter(({ name }) => options.only === undefined || options.only.includes(name));
const [requests, events, seed] = [Number(options.requests), Number(options.events), Number(options.seed)];

if (fuzzes.length === 0 || ![requests, events, seed].every(Number.isSafeInteger)) {
  console.error(
    `usage: npm run test:fuzz -- [--requests N] [--events N] [--seed S] [--only ${FUZZES.map(({ name }) => name).join('|')}]`,
  );
  process.exit(2);
}

console.log(`seed ${seed}`);
const site = await FuzzSite.open();
const interrupted = async () => {
  console.log('stopping…');
  await site.close();
  process.exit(INTERRUPTED);
};
// `disconnect`: the test that started this process is gone.
for (const end of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect'] as const) process.once(end, () => void interrupted());
process.channel?.unref();

const rows: { fuzz: string; sent: string; stood: string; holds: boolean }[] = [];
try {
  for (const { name, what, run } of fuzzes) {
    try {
      rows.push({ fuzz: name, ...(await run({ site, seed, requests, events })), holds: true });
      console.log(`✓ ${name}: ${what}`);
    } catch (error) {
      rows.push({ fuzz: name, sent: what, stood: 'does not hold', holds: false });
      const repeat = `npm run test:fuzz -- --only ${name} --seed ${seed} --requests ${requests} --events ${events}`;
      console.log(`✗ ${name}: ${inspect(error)}\n  to repeat: ${repeat}`);
    }
  }
} finally {
  await site.close();
}

console.log(
  `\n${markdownTable(
    ['fuzz', 'sent', 'how it stood'],
    rows.map(({ fuzz, sent, stood }) => [fuzz, sent, stood]),
  )}`,
);
if (options.json) console.log(JSON.stringify(rows));
process.exitCode = rows.every(({ holds }) => holds) ? 0 : 1;
