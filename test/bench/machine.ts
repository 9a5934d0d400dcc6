/** The machine on which the figures were measured. */
import { readFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';

export interface Machine {
  readonly cores: number;
  readonly processor: string;
  readonly memoryGiB: number;
  readonly platform: string;
  readonly node: string;
  /** The load average of the last minute before the run, which shows other work on the machine. */
  readonly loadAtStart: number;
}

export function describeMachine(): Machine {
  return {
    cores: cpus().length,
    processor: cpus()[0]?.model ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    loadAtStart: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

/** The most memory that the process ever had resident, in bytes; undefined where the system does not report it. */
export function peakResidentBytes(pid: number): number | undefined {
  try {
    const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  } catch {
    return undefined;
  }
}

/** Linux gives processor time to programs in hundredths of a second on every platform (USER_HZ). */
const MS_PER_TICK = 10;

/** The processor time that the process has taken so far, in milliseconds; undefined where the system does not report it. */
export function processorMs(pid: number): number | undefined {
  try {
    // The second field, the name, may hold anything; after it come the state, as field 3, and the times, as 14 and 15.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
  } catch {
    return undefined;
  }
}
