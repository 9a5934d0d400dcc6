/**
 * How long the `meterline` command takes to start, as a multiple of a bare `node -e 0`: `--help` to its end, and `metrics` until its
 * request arrives. Median of twenty rounds; the commands take turns, so that a busy moment of the machine meets all of them.
 *
 * Usage: npm run bench:command
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

const ROUNDS = 20;
const BIN = fileURLToPath(new URL('../../packages/cli/bin/meterline.js', import.meta.url));
const COMMANDS = [
  { name: 'node -e 0', args: ['-e', '0'] },
  { name: 'meterline --help', args: [BIN, '--help'], goal: 1.5 },
  {
    name: 'meterline metrics, to its request',
    args: [BIN, 'metrics', '--since', '7d'],
    endsWithRequest: true,
    goal: 2.5,
  },
];

const server = createServer((_request, response) => response.writeHead(401).end()).listen(0, '127.0.0.1');
await once(server, 'listening');
const env = {
  ...process.env,
  METERLINE_API_URL: `http://127.0.0.1:${server.address().port}`,
  METERLINE_API_KEY: 'mlk_bench',
  METERLINE_ACCOUNT: 'bench',
};

const times = COMMANDS.map(() => []);
// The first round fills the caches, and does not count.
for (let round = 0; round <= ROUNDS; round += 1) {
  for (const [index, command] of COMMANDS.entries()) {
    const time = await measure(command);
    if (round > 0) times[index].push(time);
  }
}
server.close();

if (process.env.NODE_EXTRA_CA_CERTS) {
  console.log('NODE_EXTRA_CA_CERTS is set: every start of Node reads it, and without it the multiples are larger');
}
const [bare] = times.map(median);
for (const [index, { name, goal }] of COMMANDS.entries()) {
  const time = median(times[index]);
  const ratio = time / bare;
  const reach = goal === undefined ? '' : `${ratio.toFixed(2)}× of ≤ ${goal}×  ${ratio <= goal ? 'reached' : 'MISSED'}`;
  console.log(`${name.padEnd(35)} ${time.toFixed(0).padStart(5)} ms  ${reach}`);
}

/** Milliseconds to the end of the process, or until its request has arrived. */
async function measure({ args, endsWithRequest = false }) {
  const requested = once(server, 'request');
  const begun = performance.now();
  const child = spawn(process.execPath, args, { env, stdio: 'ignore' });
  const ended = once(child, 'exit');
  const failed = async () => Promise.reject(new Error(`no request came: ${await ended}`));
  await (endsWithRequest ? Promise.race([requested, ended.then(failed)]) : ended);
  const time = performance.now() - begun;
  await ended;
  return time;
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
