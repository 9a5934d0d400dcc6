/** Formats the results of a campaign for people. */
import type { Fault } from './fault.js';
import type { RoundResult } from './round.js';
import { isClean } from './verdict.js';

const SHOWN_MARKS = 5;

export interface FaultSummary {
  readonly fault: string;
  readonly rounds: number;
  readonly events: number;
  readonly lost: number;
  readonly doubled: number;
  readonly stuck: number;
  readonly worstRecoverySeconds: number;
  /** Rounds with a complaint: an exit code that is not 0, an answer that differs, a round that broke off. */
  readonly complaints: number;
}

export function hasPassed(result: RoundResult): boolean {
  return isClean(result) && result.stuck === 0;
}

/** A row for each fault, in the catalog's order. */
export function summarise(faults: readonly Fault[], results: readonly RoundResult[]): FaultSummary[] {
  return faults.map(({ name }) => {
    const rounds = results.filter(({ fault }) => fault === name);
    const sum = (figure: (round: RoundResult) => number) => rounds.reduce((total, round) => total + figure(round), 0);
    return {
      fault: name,
      rounds: rounds.length,
      events: sum(({ events }) => events),
      lost: sum(({ lost }) => lost.length),
      doubled: sum(({ doubled }) => doubled.length),
      stuck: sum(({ stuck }) => stuck),
      worstRecoverySeconds: Math.max(0, ...rounds.map(({ recoveryMs }) => recoveryMs / 1_000)),
      complaints: rounds.filter(({ complaints }) => complaints.length > 0).length,
    };
  });
}

/** A Markdown table, so that it can be pasted. */
export function formatTable(summaries: readonly FaultSummary[]): string {
  const total = (figure: (row: FaultSummary) => number) => summaries.reduce((sum, row) => sum + figure(row), 0);
  const worst = Math.max(0, ...summaries.map(({ worstRecoverySeconds }) => worstRecoverySeconds));
  const rows = [
    ['fault', 'rounds', 'events', 'lost', 'doubled', 'stuck', 'worst recovery'],
    ...summaries.map((row) => [
      row.fault,
      ...[row.rounds, row.events, row.lost, row.doubled, row.stuck].map(count),
      seconds(row.worstRecoverySeconds),
    ]),
    [
      'all',
      ...[
        total(({ rounds }) => rounds),
        total(({ events }) => events),
        total(({ lost }) => lost),
        total(({ doubled }) => doubled),
        total(({ stuck }) => stuck),
      ].map(count),
      seconds(worst),
    ],
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`;
  const [head = [], ...body] = rows.map(line);
  const rule = `|${widths.map((width, column) => (column === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [head, rule, ...body].join('\n');
}

/** One line for a round, followed by what went wrong. */
export function formatResult(result: RoundResult, brief: boolean): string {
  const { fault, seed, events, lost, doubled, stuck, recoveryMs, complaints } = result;
  if (hasPassed(result)) {
    return `✓ ${fault}, seed ${seed}: ${count(events)} events, recovered in ${seconds(recoveryMs / 1_000)}`;
  }
  return [
    `✗ ${fault}, seed ${seed}: ${count(events)} events, ${lost.length} lost, ${doubled.length} doubled, ${stuck} stuck`,
    ...(lost.length > 0 ? [`  lost: ${some(lost)}`] : []),
    ...(doubled.length > 0 ? [`  doubled: ${some(doubled)}`] : []),
    ...complaints.map((complaint) => `  ${complaint}`),
    `  to repeat: npm run test:faults -- --only ${fault} --rounds 1 --seed ${seed}${brief ? ' --brief' : ''}`,
  ].join('\n');
}

function some(marks: readonly string[]): string {
  const rest = marks.length - SHOWN_MARKS;
  return marks.slice(0, SHOWN_MARKS).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

function count(number: number): string {
  return number.toLocaleString('en-US');
}

function seconds(number: number): string {
  return `${number.toFixed(1)} s`;
}
