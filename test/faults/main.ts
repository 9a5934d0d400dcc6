/**
 * Injects faults again and again: `npm run test:faults -- [--rounds 100] [--seed S] [--only fault,fault] [--lanes 4]`.
 *
 * Exits with 0 only if nothing was lost, doubled or stuck. Ctrl-C ends all processes of the run and removes its files.
 * --brief is the short form that `npm test` uses; --list prints the table of all faults.
 */
import { parseArgs } from 'node:util';
import { markdownTable } from '../harness/table.js';
import { canMountSmallDisk } from './small-disk.js';
import type { RunResult } from './stream-run.js';
import { hasPassed, playAll } from './suite.js';
import { FAULTS, TABLE } from './table.js';

const INTERRUPTED = 130;
const SHOWN_MARKS = 5;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string' },
    lanes: { type: 'string', default: '4' },
    brief: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
});
if (options.list) {
  const rows = TABLE.map(({ name = '', inNpmTest, also = '', ...row }) => [
    ...[row.victim, row.how, row.while],
    ...[inNpmTest ? `${name} •` : name, also],
  ]);
  console.log(markdownTable(['victim', 'how', 'while', 'fault', 'also'], rows));
  process.exit();
}
const only = options.only?.split(',');
const chosen = FAULTS.filter(({ name }) => only === undefined || only.includes(name));
const [rounds, seed, lanes] = [Number(options.rounds), Number(options.seed), Number(options.lanes)];
if (
  chosen.length === 0 ||
  (only && chosen.length < only.length) ||
  ![rounds, seed, lanes].every(Number.isSafeInteger) ||
  lanes < 1
) {
  const names = FAULTS.map(({ name }) => name).join('|');
  console.error(`usage: npm run test:faults -- [--rounds N] [--seed S] [--lanes N] [--only ${names}]`);
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
  const results = await playAll(faults, { rounds, seed, lanes, brief: options.brief, signal, say });
  const summaries = faults.map(({ name }) =>
    summaryOf(
      results.filter(({ fault }) => fault === name),
      name,
    ),
  );
  const all = summaryOf(results, 'all');
  const titles = ['fault', 'rounds', 'events', 'lost', 'doubled', 'stuck', 'complaints', 'worst recovery'];
  console.log(
    `\n${markdownTable(
      titles,
      [...summaries, all].map((summary) => Object.values(summary)),
    )}`,
  );
  // Printed again, because a run that was right at first and is wrong now appears only here.
  for (const failed of results.filter((result) => !hasPassed(result))) console.log(formatResult(failed));
  process.exitCode = results.every(hasPassed) ? 0 : 1;
} catch (error) {
  if (!stop.signal.aborted) throw error;
  process.exitCode = INTERRUPTED;
}
// Everything is ended by now.
process.exit();

function summaryOf(results: readonly RunResult[], fault: string) {
  const sum = (figure: (run: RunResult) => number) => results.reduce((total, run) => total + figure(run), 0);
  return {
    fault,
    rounds: results.length,
    events: sum(({ events }) => events),
    lost: sum(({ lost }) => lost.length),
    doubled: sum(({ doubled }) => doubled.length),
    stuck: sum(({ stuck }) => stuck),
    complaints: sum(({ complaints }) => complaints.length),
    worstRecovery: seconds(Math.max(0, ...results.map(({ recoveryMs }) => recoveryMs))),
  };
}

/** One line for a run, followed by what went wrong. */
function formatResult(result: RunResult): string {
  const { fault, seed: own, events, lost, doubled, stuck, recoveryMs, complaints } = result;
  if (hasPassed(result)) return `✓ ${fault}, seed ${own}: ${events} events, recovered in ${seconds(recoveryMs)}`;
  const some = (marks: readonly string[]) => `${marks.slice(0, SHOWN_MARKS).join(', ')} of ${marks.length}`;
  return [
    `✗ ${fault}, seed ${own}: ${events} events, ${lost.length} lost, ${doubled.length} doubled, ${stuck} stuck`,
    ...(lost.length > 0 ? [`  lost: ${some(lost)}`] : []),
    ...(doubled.length > 0 ? [`  doubled: ${some(doubled)}`] : []),
    ...complaints.map((complaint) => `  ${complaint}`),
    `  to repeat: npm run test:faults -- --only ${fault} --rounds 1 --seed ${own}${options.brief ? ' --brief' : ''}`,
  ].join('\n');
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
