import { describe, expect, it } from '@jest/globals';
import { MeterlineError } from '@meterline/client';
import { CommandError } from '../command.js';
import { type Step, walk } from './walk.js';

const PAGES = ['a', 'b', 'c', 'd'];

/** Pages by cursor; each fault is of the reading of that number, from 0, and is met once. */
function reader(...faults: readonly number[]) {
  let reads = 0;
  return async (cursor: string | undefined): Promise<Step<string>> => {
    const isGone = faults.includes(reads);
    reads += 1;
    if (isGone) throw new MeterlineError({ status: 400, code: 'cursor_expired', message: 'gone' });
    const index = Number(cursor ?? 0);
    return { page: PAGES[index] ?? '', nextCursor: index + 1 < PAGES.length ? String(index + 1) : '' };
  };
}

interface Options {
  readonly faults?: readonly number[];
  readonly all?: boolean;
  readonly cursor?: string;
  readonly canDiscard?: boolean;
}

/** What was taken, how often it started again, and how it ended. */
async function taken({ faults = [], all = true, cursor, canDiscard = false }: Options) {
  const pages: string[] = [];
  let restarts = 0;
  const discard = () => {
    pages.length = 0;
  };
  const onRestart = () => {
    restarts += 1;
  };
  try {
    const steps = { read: reader(...faults), onRestart, discard: canDiscard ? discard : undefined };
    for await (const page of walk({ cursor, all, ...steps })) pages.push(page);
    return { pages, restarts };
  } catch (error) {
    return { pages, restarts, message: error instanceof CommandError ? error.message : error };
  }
}

describe('a walk', () => {
  it('reads one page, or all from a cursor on', async () => {
    expect(await taken({ all: false })).toEqual({ pages: ['a'], restarts: 0 });
    expect(await taken({})).toEqual({ pages: PAGES, restarts: 0 });
    expect(await taken({ cursor: '3' })).toEqual({ pages: ['d'], restarts: 0 });
  });

  it('starts again, once, when its answer changes before the second page', async () => {
    expect(await taken({ faults: [1] })).toEqual({ pages: PAGES, restarts: 1 });
    expect(await taken({ faults: [1, 3] })).toEqual({
      pages: [],
      restarts: 1,
      message:
        'the answer changed while its pages were read: run the command again, or end the window earlier with --to',
    });
  });

  it('starts again later too, where what was taken can be taken back', async () => {
    expect(await taken({ faults: [3], canDiscard: true })).toEqual({ pages: PAGES, restarts: 1 });
    expect(await taken({ faults: [3] })).toEqual({
      pages: ['a', 'b', 'c'],
      restarts: 0,
      message: 'the answer changed while its pages were read: 3 pages of it came; run the command again',
    });
  });

  it('from a cursor that is gone says how to begin', async () => {
    expect((await taken({ faults: [0], cursor: '1' })).message).toBe(
      'the answer changed while its pages were read: start again, without --cursor',
    );
  });

  it('leaves every other error alone', async () => {
    const read = async () => {
      throw new TypeError('a defect');
    };
    const next = walk({ cursor: undefined, all: true, read, onRestart: () => undefined }).next();
    await expect(next).rejects.toThrow(TypeError);
  });
});
