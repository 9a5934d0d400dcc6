import { type FileHandle, open, readFile } from 'node:fs/promises';

const TAIL_LINES = 12;

/** What one run of a process writes to its log file. */
export class LogFile {
  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
    private readonly start: number,
  ) {}

  static async open(path: string): Promise<LogFile> {
    const handle = await open(path, 'a', 0o600);
    const { size } = await handle.stat();
    return new LogFile(path, handle, size);
  }

  /** To be inherited by the process that is spawned before `close`. */
  get fd(): number {
    return this.handle.fd;
  }

  close(): Promise<void> {
    return this.handle.close();
  }

  /** The last lines since `open`, for an error message. */
  async tail(): Promise<string> {
    const text = (await readFile(this.path)).subarray(this.start).toString('utf8');
    return text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
  }
}
