/** Waiting for what an attack must lead to. */
import { holdsWithin } from '../faults/waiting.js';
import type { Findings } from './findings.js';

/** Nothing takes as long, even on a machine that does much else. */
export const PATIENCE_MS = 120_000;

/** It is a fault if the condition does not hold in the end. */
export async function mustBecome(what: string, findings: Findings, holds: () => Promise<boolean>): Promise<void> {
  if (!(await holdsWithin(PATIENCE_MS, new AbortController().signal, holds))) findings.add(`not so: ${what}`);
}
