/** Figures as a table for people and as JSON for programs that compare runs. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { markdownTable } from '../harness/table.js';
import type { Figure, Unit } from './figure.js';
import type { Machine } from './machine.js';

export interface Report {
  readonly machine: Machine;
  readonly events: number;
  readonly startedAt: string;
  readonly seconds: number;
  /** Each with the name of its bench. */
  readonly figures: readonly (Figure & { readonly bench: string })[];
}

const TITLES = ['bench', 'measured', 'figure', 'beside', 'reach', ''] as const;

export function formatReport({ machine, events, seconds, figures }: Report): string {
  const rows = figures.map((figure) => [
    figure.bench,
    figure.note ? `${figure.what} (${figure.note})` : figure.what,
    amount(figure.value, figure.unit),
    (figure.beside ?? []).map(({ what, value, unit }) => `${what} ${amount(value, unit)}`).join('; '),
    figure.reach?.text ?? '–',
    figure.reach ? (figure.reach.met ? 'reached' : 'MISSED') : '',
  ]);
  return `${describe(machine, events, seconds)}\n\n${markdownTable(TITLES, rows)}`;
}

function describe(
  { cores, processor, memoryGiB, platform, node, loadAtStart }: Machine,
  events: number,
  seconds: number,
) {
  return (
    `${cores} cores (${processor}), ${memoryGiB} GiB, ${platform}, Node ${node}; load average ${loadAtStart} before the run; ` +
    `${events.toLocaleString('en')} events; ${Math.round(seconds)} s in all. Medians.`
  );
}

function amount(value: number, unit: Unit): string {
  const digits = value >= 100 || unit === 'errors' ? 0 : value >= 10 ? 1 : 2;
  const text = value.toLocaleString('en', { maximumFractionDigits: digits });
  return unit === '×' ? `${text}×` : `${text} ${unit}`;
}

export async function writeReport(file: string, report: Report): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(report, null, 2)}\n`);
}
