/** The resident memory of a process under attack. Source: Linux, proc_pid_status(5). */
import { readFileSync } from 'node:fs';
import type { Findings } from './findings.js';

/** Remembers what a process has when the attack begins. */
export class MemoryWatch {
  readonly #pid: number;
  readonly #before: number | undefined;

  constructor(pid: number) {
    this.#pid = pid;
    this.#before = mebibytes(pid, 'VmRSS');
  }

  /** For people. More than the bound above the beginning, at any moment, is a fault; so is a process that is gone. */
  judged(boundMiB: number, findings: Findings): string {
    const peak = mebibytes(this.#pid, 'VmHWM');
    if (this.#before === undefined) return 'memory is not reported here';
    if (peak === undefined) {
      findings.add('the process has ended');
      return 'the process has ended';
    }
    if (peak > this.#before + boundMiB) findings.add(`memory: from ${this.#before} to ${peak} MiB`);
    return `${this.#before} MiB, at most ${peak} MiB`;
  }
}

/** Undefined where the system does not report it. */
function mebibytes(pid: number, name: 'VmRSS' | 'VmHWM'): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kibibytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
    return kibibytes === undefined ? undefined : Math.round(Number(kibibytes) / 1024);
  } catch {
    return undefined;
  }
}
