/**
 * Injects faults again and again: `npm run test:faults -- [--rounds 100] [--seed S] [--only fault,fault] [--parallel 4]`, or for a time
 * during steady traffic: `npm run test:faults -- --minutes 60 [--rate 5000] [--seed S]`, where the rate is in events a second.
 *
 * Exits with 0 only if nothing differs and no job is stuck. Ctrl-C ends all processes of the run and removes its files.
 * --brief is the short form that `npm test` uses; --list prints the table of all faults.
 */
import { parseArgs } from 'node:util';
import { markdownTable } from '../harness/programs.js';
import { canMountSmallDisk } from './fixture.js';
import { steadyTraffic } from './steady.js';
import { hasPassed, playAll, type RunResult } from './suite.js';
import { FAULTS, TABLE } from './table.js';

const INTERRUPTED = 130;
const SHOWN_DIFFERENCES = 10;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string' },
    parallel: { type: 'string', default: '4' },
    brief: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    minutes: { type: 'string' },
    rate: { type: 'string', default: '5000' },
  },
});
if (options.list) {
  const rows = TABLE.map(([name, victim, how, doing, also = '']) => [victim, how, doing, name, also]);
  console.log(markdownTable(['victim', 'how', 'while', 'fault', 'also'], rows));
  process.exit();
}
const only = options.only?.split(',');
const [seed, parallel, rate] = [Number(options.seed), Number(options.parallel), Number(options.rate)];
const [minutes, rounds] = [Number(options.minutes ?? 0), options.minutes ? 1 : Number(options.rounds)];
const steady = steadyTraffic({ minutes, rate, log: (line) => console.log(`${elapsedMinutes()} min: ${line}`) });
const chosen = options.minutes ? [steady] : FAULTS.filter(({ name }) => only === undefined || only.includes(name));
if (
  chosen.length === 0 ||
  (only && chosen.length !== only.length) ||
  ![rounds, seed, parallel].every(Number.isSafeInteger) ||
  !(parallel >= 1 && minutes >= 0 && rate > 0)
) {
  const names = FAULTS.map(({ name }) => name).join('|');
  console.error(`usage: npm run test:faults -- [--rounds N] [--seed S] [--parallel N] [--only ${names}]
       npm run test:faults -- --minutes N [--rate EVENTS_PER_SECOND] [--seed S]`);
  process.exit(2);
}

const stop = new AbortController();
const interrupted = () => {
  if (!stop.signal.aborted) console.log('stopping…');
  stop.abort();
};
for (const end of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(end, interrupted);
// The reader of the output may be gone as well; this process must still clean up.
process.stdout.on('error', interrupted);

const canMount = canMountSmallDisk();
const faults = chosen.filter(({ onSmallDisk }) => canMount || !onSmallDisk);
console.log(`seed ${seed}`);
for (const { name } of chosen.filter((fault) => !faults.includes(fault))) {
  console.log(`– ${name}: skipped, because this user may not mount a file system`);
}
try {
  const { signal } = stop;
  const say = (result: RunResult) => console.log(formatResult(result));
  const results = await playAll(faults, { rounds, seed, parallel, brief: options.brief, signal, say });
  const titles = ['fault', 'rounds', 'events', 'differences', 'stuck', 'worst recovery'];
  const rows = [...faults.map(({ name }) => name), 'all'].map((name) => {
    const own = results.filter(({ fault }) => name === 'all' || fault === name);
    const sum = (figure: (run: RunResult) => number) => own.reduce((total, run) => total + figure(run), 0);
    const recovery = seconds(Math.max(0, ...own.map(({ recoveryMs }) => recoveryMs)));
    const wrong = [sum(({ differences }) => differences.length), sum(({ stuck }) => stuck)];
    return [name, own.length, sum(({ events }) => events), ...wrong, recovery];
  });
  console.log(`\n${markdownTable(titles, rows)}`);
  // Printed again, because a run that was right at first and is wrong now appears only here.
  for (const failed of results.filter((result) => !hasPassed(result))) console.log(formatResult(failed));
  process.exitCode = results.every(hasPassed) ? 0 : 1;
} catch (error) {
  if (!stop.signal.aborted) throw error;
  process.exitCode = INTERRUPTED;
}
// Everything is ended by now.
process.exit();

/** One line for a run, followed by what went wrong. */
function formatResult(result: RunResult): string {
  const { fault, seed: own, events, stuck, recoveryMs, differences } = result;
  const repeating = options.minutes ? `--minutes ${minutes} --rate ${rate}` : `--only ${fault} --rounds 1`;
  if (hasPassed(result)) return `✓ ${fault}, seed ${own}: ${events} events, recovered in ${seconds(recoveryMs)}`;
  return [
    `✗ ${fault}, seed ${own}: ${events} events, ${differences.length} differences, ${stuck} stuck`,
    ...differences.slice(0, SHOWN_DIFFERENCES).map((difference) => `  ${difference}`),
    `  to repeat: npm run test:faults -- ${repeating} --seed ${own}${options.brief ? ' --brief' : ''}`,
  ].join('\n');
}

function elapsedMinutes(): string {
  return (performance.now() / 60_000).toFixed(1);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
