import { execFileSync } from 'node:child_process';
import { closeSync, constants, createReadStream, openSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { openFull } from '../../../test/harness/programs.js';
import { testFolder } from '../../../test/harness/test-folder.js';
import { until } from '../../../test/harness/waiting.js';
import { LogDestination } from './log.js';

const folder = testFolder('each test');

const line = (number: number) => `${JSON.stringify({ number, text: 'x'.repeat(980) })}\n`;
const numberOf = (text: string): number => JSON.parse(text).number;

it('lines of one batch are written in order, before later lines and before the end', async () => {
  const file = folder('log');
  const destination = new LogDestination(openSync(file, 'a'), () => undefined);
  const written = () => readFileSync(file, 'utf8').split('\n').slice(0, -1).map(numberOf);
  for (let number = 0; number < 30; number += 1) destination.write(line(number));
  await until('they are written', () => written().length === 30);
  for (let number = 30; number < 33; number += 1) destination.write(line(number));
  await destination.end(10_000);
  expect(written()).toEqual(Array.from({ length: 33 }, (_, number) => number));
});

it('lines that fit into the buffer are not lost while the disk is full', async () => {
  const fd = openFull();
  const destination = new LogDestination(fd, () => undefined);
  for (let number = 0; number < 100; number += 1) {
    destination.write(line(number));
    // Between two lines the write of the first one fails.
    if (number % 10 === 0) await sleep(1);
  }
  const file = folder('log');
  replaceDescriptor(fd, file);
  await until('all lines are written', () => readFileSync(file, 'utf8').split('\n').length > 100);
  const written = readFileSync(file, 'utf8').trimEnd().split('\n').map(numberOf);
  expect(written).toEqual(Array.from({ length: 100 }, (_, number) => number));
  await destination.end(10_000);
});

it('closing a log does not wait for a full disk', async () => {
  const destination = new LogDestination(openFull(), () => undefined);
  destination.write(line(0));
  // Far longer than any test may take.
  await destination.end(1e9);
  destination.write(line(1));
});

it('a log with a slow reader keeps its first lines, and counts the dropped lines', async () => {
  const path = folder('pipe');
  execFileSync('mkfifo', [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const total = 3_000;
  let lost = 0;
  const destination = new LogDestination(fd, (lines) => {
    lost += lines;
    destination.write(line(total));
  });
  for (let number = 0; number < total; number += 1) destination.write(line(number));

  const reader = createReadStream(path);
  const numbers: number[] = [];
  for await (const text of createInterface({ input: reader })) {
    numbers.push(numberOf(text));
    if (numbers.at(-1) === total) break;
  }
  reader.destroy();
  const kept = numbers.slice(0, -1);
  expect(kept).toEqual(kept.map((_, number) => number));
  expect(kept.length).toBeGreaterThan(1_000);
  expect(kept.length + lost).toBe(total);
  await destination.end(10_000);
});

/** Opens the file as the descriptor, which was another file until now. */
function replaceDescriptor(fd: number, path: string): void {
  closeSync(fd);
  const opened: number[] = [];
  while (opened.at(-1) !== fd) opened.push(openSync(path, 'a'));
  for (const other of opened) if (other !== fd) closeSync(other);
}
