import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';

const coverage = z.object({ result: z.array(z.object({ url: z.string() })) });

export interface Loaded<Run> {
  readonly run: Run;
  /** Those out of node_modules. */
  readonly packages: ReadonlySet<string>;
  /** How many, in packages and outside. */
  readonly files: number;
}

/**
 * What a process of Node has loaded. The list is V8's coverage report, which adds 12 ms to a run of 480 ms; the debugger's list
 * adds 110 ms.
 * @param run starts the process with these variables, and resolves when it has ended
 */
export async function loadedBy<Run>(run: (env: Record<string, string>) => Promise<Run>): Promise<Loaded<Run>> {
  const reports = await mkdtemp(join(tmpdir(), 'meterline-loading-'));
  try {
    const ended = await run({ NODE_V8_COVERAGE: reports });
    const [report = ''] = await readdir(reports);
    const { result } = coverage.parse(JSON.parse(await readFile(join(reports, report), 'utf8')));
    const files = result.map(({ url }) => url).filter((url) => url.startsWith('file:'));
    const packages = files.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]);
    return { run: ended, packages: new Set(packages.filter((name) => name !== undefined)), files: files.length };
  } finally {
    await rm(reports, { recursive: true });
  }
}
