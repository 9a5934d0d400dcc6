import { appendFileSync, closeSync, fstatSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { testFolder } from '../../../test/harness/test-folder.js';
import { type Backlog, type Batch, openBacklog } from './backlog.js';
import type { Problem } from './problems.js';
import { Spool, SpoolFile } from './spool.js';

const MIB = 1024 * 1024;
const ALL = [5_000, 16 * MIB] as const;

let problems: Problem[];
const opened: Spool[] = [];
afterEach(async () => {
  for (const spool of opened.splice(0)) await spool.close();
});
const folder = testFolder('each test');
beforeEach(() => {
  problems = [];
});

async function openSpool({ maxBytes = 100 * MIB } = {}): Promise<Spool> {
  const spool = await Spool.open({ directory: folder(), maxBytes, fsyncMs: undefined }, (problem) =>
    problems.push(problem),
  );
  opened.push(spool);
  return spool;
}

const DAMAGED = /^000000000001\.jsonl\.[\w-]+\.damaged$/;

/** Simulates a restart after `kill -9`: the lock is gone, and nothing was closed. */
async function afterKill(spool: Spool, memoryBytes = 64 * MIB): Promise<Backlog> {
  await spool.close();
  return openBacklog(memoryBytes, await openSpool());
}

/** Returns JSON text of this many bytes. */
function text(n: number, bytes = 20): string {
  return JSON.stringify(String(n).padStart(bytes - 2, '0'));
}

function add(backlog: Backlog, count: number, bytes = 20, first = 0): string[] {
  return Array.from({ length: count }, (_, n) => backlog.add(text(first + n, bytes)));
}

async function takeAll(backlog: Backlog): Promise<Batch[]> {
  const batches: Batch[] = [];
  for (let batch = await backlog.take(...ALL); batch; batch = await backlog.take(...ALL)) batches.push(batch);
  return batches;
}

const textsOf = (batches: readonly Batch[]) => batches.flatMap(({ texts }) => texts);
const numbers = (count: number, bytes = 20) => Array.from({ length: count }, (_, n) => text(n, bytes));
const files = async () => (await readdir(folder())).filter((name) => !name.endsWith('.lock'));

describe('in memory', () => {
  it('a backlog in memory returns events in order, in batches limited by events and bytes', async () => {
    const backlog = openBacklog(MIB, undefined);
    add(backlog, 7);
    expect((await backlog.take(3, MIB))?.texts).toEqual(numbers(3));
    expect((await backlog.take(5_000, 40))?.texts).toEqual([text(3), text(4)]);
    expect((await backlog.take(5_000, 1))?.texts).toEqual([text(5)]);
    expect((await backlog.take(...ALL))?.first).toBe(6);
    expect(await backlog.take(...ALL)).toBeUndefined();
  });

  it('a backlog in memory is full at its byte limit, until events are sent', async () => {
    const backlog = openBacklog(100, undefined);
    expect(add(backlog, 6)).toEqual([...Array(5).fill('memory'), 'full']);
    const batch = await backlog.take(2, MIB);
    expect(add(backlog, 1)).toEqual(['full']);
    if (batch) backlog.settle(batch);
    expect(add(backlog, 3)).toEqual(['memory', 'memory', 'full']);
    expect(backlog.unsent).toBe(5);
  });

  it('a backlog in memory counts bytes, not characters', () => {
    expect(openBacklog(5, undefined).add('"é€"')).toBe('full');
    expect(openBacklog(7, undefined).add('"é€"')).toBe('memory');
  });
});

describe('with a spool', () => {
  it('a spool writes every event to the file when it is added, and empties the file when all are sent', async () => {
    const backlog = openBacklog(64 * MIB, await openSpool());
    expect(add(backlog, 2)).toEqual(['spool', 'spool']);
    expect(await files()).toEqual(['000000000001.jsonl']);
    expect(await readFile(folder('000000000001.jsonl'), 'utf8')).toBe(`${text(0)}\n${text(1)}\n`);
    for (const batch of await takeAll(backlog)) backlog.settle(batch);
    expect(await readFile(folder('000000000001.jsonl'), 'utf8')).toBe('');
    add(backlog, 1);
    expect(await readFile(folder('000000000001.jsonl'), 'utf8')).toBe(`${text(0)}\n`);
    for (const batch of await takeAll(backlog)) backlog.settle(batch);
    backlog.close();
    expect(await files()).toEqual([]);
  });

  it('after a kill, a spool returns all unsent events again, including taken events', async () => {
    const spool = await openSpool();
    const backlog = openBacklog(64 * MIB, spool);
    add(backlog, 10);
    await backlog.take(4, MIB);
    const later = await afterKill(spool);
    expect(later.unsent).toBe(10);
    expect(add(later, 1, 20, 10)).toEqual(['spool']);
    const batches = await takeAll(later);
    expect(textsOf(batches)).toEqual(numbers(11));
    for (const batch of batches) later.settle(batch);
    expect(later.unsent).toBe(0);
    expect(await files()).toEqual(['000000000002.jsonl']);
  });

  it('after a kill, a spool returns only files with unsent events again', async () => {
    const spool = await openSpool();
    const backlog = openBacklog(64 * MIB, spool);
    add(backlog, 30, MIB / 10);
    expect(await files()).toHaveLength(3);
    const [first, second] = await takeAll(backlog);
    if (!first || !second) throw new Error('two batches at least');
    backlog.settle(second);
    expect(await files()).toEqual(['000000000001.jsonl', '000000000003.jsonl']);
    expect(textsOf(await takeAll(await afterKill(spool)))).toHaveLength(20);
  });

  it.each([0, 2])('a spool ignores the incomplete last line of a file with %d events', async (events) => {
    const spool = await openSpool();
    add(openBacklog(64 * MIB, spool), events);
    appendFileSync(folder('000000000001.jsonl'), '{"eventId":"01a2');
    const later = await afterKill(spool);
    expect(later.unsent).toBe(events);
    for (const batch of await takeAll(later)) later.settle(batch);
    expect(await files()).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('a spool returns the readable events of a damaged file, and keeps the file', async () => {
    await writeFile(folder('000000000001.jsonl'), `${text(0)}\n\0\0\0\n${text(1)}\n`);
    const backlog = openBacklog(64 * MIB, await openSpool());
    const batches = await takeAll(backlog);
    expect(textsOf(batches)).toEqual(numbers(2));
    for (const batch of batches) backlog.settle(batch);
    expect(backlog.unsent).toBe(0);
    expect(await files()).toEqual([expect.stringMatching(DAMAGED)]);
    expect(problems).toMatchObject([{ code: 'spool', message: expect.stringContaining('unreadable events (1)') }]);
  });

  it('a spool keeps a damaged file if a later file with the same name is also damaged', async () => {
    for (const content of ['{"torn"\n', '\0\0\n']) {
      await writeFile(folder('000000000001.jsonl'), content);
      const spool = await openSpool();
      await takeAll(openBacklog(64 * MIB, spool));
      await spool.close();
    }
    expect(await files()).toEqual([expect.stringMatching(DAMAGED), expect.stringMatching(DAMAGED)]);
  });

  it('a spool stores events that do not fit into memory, and loads them when they are next', async () => {
    const spool = await openSpool();
    const backlog = openBacklog(2.5 * MIB, spool);
    const count = 80;
    expect(new Set(add(backlog, count, MIB / 10))).toEqual(new Set(['spool']));
    expect(backlog.usedBytes).toBeLessThan(2.5 * MIB);
    const batches = await takeAll(backlog);
    expect(textsOf(batches)).toEqual(numbers(count, MIB / 10));
    for (const batch of batches) backlog.settle(batch);
    backlog.close();
    expect(await files()).toEqual([]);
  });

  it('an event that is added while the newest file is read is not lost', async () => {
    const backlog = openBacklog(1, await openSpool());
    add(backlog, 3);
    const taking = backlog.take(...ALL);
    expect(add(backlog, 1, 20, 3)).toEqual(['spool']);
    const first = await taking;
    expect(first?.texts).toEqual(numbers(3));
    expect((await backlog.take(...ALL))?.texts).toEqual([text(3)]);
  });

  it('when the spool is full, events are stored only in memory, until memory is full, too', async () => {
    const spool = await openSpool({ maxBytes: 63 });
    const backlog = openBacklog(2 * MIB, spool);
    expect(add(backlog, 5)).toEqual(['spool', 'spool', 'spool', 'memory', 'memory']);
    expect(backlog.add(text(0, 2 * MIB))).toBe('full');
    expect(problems).toMatchObject([{ code: 'spool', message: expect.stringContaining('is full (63 bytes)') }]);
    expect(textsOf(await takeAll(backlog))).toEqual(numbers(5));
    expect(textsOf(await takeAll(await afterKill(spool)))).toEqual(numbers(3));
  });

  it('when the spool is full, all memory is available for events without a file', async () => {
    const backlog = openBacklog(3 * MIB, await openSpool({ maxBytes: 4 * MIB }));
    const places = add(backlog, 55, MIB / 10);
    expect(places.filter((place) => place === 'spool').length).toBeGreaterThan(35);
    expect(places).not.toContain('full');
    expect(textsOf(await takeAll(backlog))).toEqual(numbers(55, MIB / 10));
  });

  it('a spool keeps files that temporarily cannot be opened, and reads them later', async () => {
    const spool = await openSpool();
    add(openBacklog(64 * MIB, spool), 3);
    const full = Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    const reading = jest.spyOn(SpoolFile.prototype, 'read').mockRejectedValueOnce(full);
    expect(textsOf(await takeAll(await afterKill(spool)))).toEqual(numbers(3));
    expect(await files()).toEqual(['000000000001.jsonl']);
    expect(problems).toMatchObject([{ message: expect.stringContaining('will be retried (too many open files)') }]);
    reading.mockRestore();
  });

  it('events stay in memory if the folder of the spool cannot be written', async () => {
    const spool = await openSpool();
    // A folder with the file's name causes an error for every user, including root.
    await mkdir(folder('000000000001.jsonl'));
    const backlog = openBacklog(MIB, spool);
    expect(add(backlog, 3)).toEqual(['memory', 'memory', 'memory']);
    expect(problems).toMatchObject([{ code: 'spool', message: expect.stringContaining('cannot be written') }]);
    expect(textsOf(await takeAll(backlog))).toEqual(numbers(3));
  });
});

/** Returns the descriptor that this process has open for the newest file of the spool. */
async function descriptorOf(file: string): Promise<number> {
  const { ino } = await stat(folder(file));
  for (let descriptor = 3; descriptor < 1_024; descriptor += 1) {
    try {
      if (fstatSync(descriptor).ino === ino) return descriptor;
    } catch {
      // This descriptor is not open.
    }
  }
  throw new Error(`${file} is not open`);
}

it('errors of writing and closing a file are reported and not thrown', async () => {
  const backlog = openBacklog(MIB, await openSpool());
  add(backlog, 1);
  closeSync(await descriptorOf('000000000001.jsonl'));
  expect(add(backlog, 1, 20, 1)).toEqual(['memory']);
  expect(problems.map(({ message }) => message)).toEqual([
    expect.stringContaining('cannot be written'),
    expect.stringContaining('cannot be closed'),
  ]);
  expect(textsOf(await takeAll(backlog))).toEqual(numbers(2));
});

describe('the lock of a spool', () => {
  it('the lock of a spool belongs to one process until the process ends', async () => {
    const spool = await openSpool();
    await expect(openSpool()).rejects.toMatchObject({ name: 'EmitterError', code: 'spool_in_use' });
    await spool.close();
    await openSpool();
  });

  it('at most one of several concurrent processes gets the lock of a spool', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => openSpool()));
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeLessThan(2);
  });

  it('the lock of a dead process is removed', async () => {
    // A killed process leaves a socket without a listener. Renaming the socket prevents its removal at close.
    const spool = await openSpool();
    const [lock = ''] = await readdir(folder());
    await rename(folder(lock), folder('dead.lock'));
    await spool.close();
    // Not a lock.
    await writeFile(folder('yarn.lock'), '');
    await openSpool();
    const files = await readdir(folder());
    expect(files).not.toContain('dead.lock');
    expect(files).toContain('yarn.lock');
  });

  it('locking a spool fails if the path is too long', async () => {
    const deep = folder('a-folder-with-a-long-name'.repeat(5));
    const opening = Spool.open({ directory: deep, maxBytes: MIB, fsyncMs: undefined }, () => undefined);
    await expect(opening).rejects.toMatchObject({ code: 'spool_unusable' });
  });
});
