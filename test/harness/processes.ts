/** What Linux says of processes. Undefined where the system does not report it. */
import { readFileSync } from 'node:fs';

/** The memory that the process has resident, or the most that it ever had, in MiB. Source: proc_pid_status(5). */
export function residentMiB(pid: number, which: 'VmRSS' | 'VmHWM'): number | undefined {
  const kib = new RegExp(`^${which}:\\s+(\\d+) kB$`, 'm').exec(fileOf(pid, 'status') ?? '')?.[1];
  return kib === undefined ? undefined : Number(kib) / 1024;
}

/** Linux gives processor time to programs in hundredths of a second on every platform (USER_HZ). */
const MS_PER_TICK = 10;

/** The processor time that the process has taken so far, in milliseconds. Source: proc_pid_stat(5). */
export function processorMs(pid: number): number | undefined {
  // The second field, the name, may hold anything; after it come the state, as field 3, and the times, as 14 and 15.
  const fields = fileOf(pid, 'stat')?.split(') ').at(-1)?.split(' ');
  return fields && (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

function fileOf(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return undefined;
  }
}
