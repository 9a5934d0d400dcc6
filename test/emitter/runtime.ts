/** A producer as a process, and its journal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { programArguments } from '../program.js';

export const producerSettings = z.object({
  url: z.string(),
  prefix: z.string(),
  /** For a collector. */
  apiKey: z.string().optional(),
  account: z.string(),
  /** The name of this process; its events are called `<run>-0`, `<run>-1` and so on. */
  run: z.string(),
  journal: z.string(),
  /** The folder of the spool, if there is one. */
  spool: z.string().optional(),
});
export type ProducerSettings = z.output<typeof producerSettings>;

/** What a producer has said so far. */
export interface Journal {
  /** How many of its events `record` has taken. One more may have been taken before the journal said so. */
  readonly recorded: number;
  /** How many of its first events are accepted. */
  readonly accepted: number;
  readonly problems: readonly string[];
}

export class Runtime {
  readonly settings: ProducerSettings;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown[]>;

  constructor(settings: ProducerSettings) {
    this.settings = settings;
    this.#child = spawn(process.execPath, [...programArguments('test/emitter/producer'), JSON.stringify(settings)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#exited = once(this.#child, 'exit');
  }

  async journal(): Promise<Journal> {
    const text = await readFile(this.settings.journal, 'utf8').catch(() => '');
    const lines = text.split('\n');
    const last = (word: string) => Number(lines.findLast((line) => line.startsWith(word))?.split(' ')[1] ?? 0);
    return {
      recorded: last('recorded'),
      accepted: last('accepted'),
      problems: lines.filter((line) => line.startsWith('problem')),
    };
  }

  get isTerminated(): boolean {
    return this.#child.signalCode === 'SIGTERM';
  }

  /** SIGSTOP and SIGCONT return at once. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Sends the signal and waits for the end. @returns the exit code, or the signal that has ended it */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<unknown> {
    this.#child.kill(signal);
    return this.#ended();
  }

  /** Asks it to close its emitter, and waits. @returns the same */
  async finish(): Promise<unknown> {
    this.#child.send('finish');
    return this.#ended();
  }

  async #ended(): Promise<unknown> {
    const [code, signal] = await this.#exited;
    return signal ?? code;
  }
}
