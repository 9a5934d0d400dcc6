/**
 * Attacks the service: `npm run test:attack -- [--requests 40000] [--events 40000] [--seed S] [--only attack]…`.
 *
 * Exits with 0 only if everything held. Ctrl-C ends all processes of the run and removes its files. --json adds the table
 * as one line of JSON; `npm test` uses it with fewer requests and events.
 */
import { inspect, parseArgs } from 'node:util';
import { SeededRandom } from '../faults/seeded-random.js';
import { ATTACKS } from './catalog.js';
import { Findings } from './findings.js';
import { AttackSite } from './site.js';

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
const attacks = ATTACKS.filter(({ name }) => options.only === undefined || options.only.includes(name));
const [requests, events, seed] = [Number(options.requests), Number(options.events), Number(options.seed)];

if (attacks.length === 0 || ![requests, events, seed].every(Number.isSafeInteger)) {
  console.error(
    `usage: npm run test:attack -- [--requests N] [--events N] [--seed S] [--only ${ATTACKS.map(({ name }) => name).join('|')}]`,
  );
  process.exit(2);
}

interface Row {
  readonly attack: string;
  readonly sent: string;
  readonly stood: string;
  readonly faults: number;
}

console.log(`seed ${seed}`);
const site = await AttackSite.open();
const interrupted = async () => {
  console.log('stopping…');
  await site.close();
  process.exit(INTERRUPTED);
};
// `disconnect`: the test that started this process is gone.
for (const end of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect'] as const) process.once(end, () => void interrupted());
process.channel?.unref();

const rows: Row[] = [];
try {
  for (const { name, what, run } of attacks) {
    const findings = new Findings();
    const random = new SeededRandom(seed);
    const { sent, stood } = await run({ site, random, requests, events, findings }).catch((error: unknown) => {
      findings.add('the attack broke off', inspect(error));
      return { sent: what, stood: 'broke off' };
    });
    rows.push({ attack: name, sent, stood, faults: findings.count });
    console.log([`${findings.count === 0 ? '✓' : '✗'} ${name}: ${what}`, ...findings.lines()].join('\n'));
    if (findings.count > 0) console.log(`  to repeat: npm run test:attack -- --only ${name} --seed ${seed}`);
  }
} finally {
  await site.close();
}

console.log('\n| attack | sent | how it stood | faults |\n|---|---|---|---:|');
for (const { attack, sent, stood, faults } of rows) console.log(`| \`${attack}\` | ${sent} | ${stood} | ${faults} |`);
if (options.json) console.log(JSON.stringify(rows));
process.exitCode = rows.every(({ faults }) => faults === 0) ? 0 : 1;
