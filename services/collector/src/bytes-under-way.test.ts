import { expect, it } from '@jest/globals';
import { BytesUnderWay } from './bytes-under-way.js';

const refusal = (status: number, code: string) => expect.objectContaining({ status, code });

it('one account has a quarter, and all together no more than there is', () => {
  const bytes = new BytesUnderWay(1_000);
  const first = bytes.open('a');
  first.take(200);
  expect(() => bytes.open('a').take(51)).toThrow(refusal(429, 'too_much_under_way'));
  for (const account of ['b', 'c', 'd']) bytes.open(account).take(250);
  expect(() => bytes.open('e').take(51)).toThrow(refusal(503, 'server_busy'));
  expect(bytes.total).toBe(950);
  first.release();
  first.release();
  expect(bytes.total).toBe(750);
  bytes.open('e').take(250);
});

it('an answer is held however much there is: its events are durable already', () => {
  const bytes = new BytesUnderWay(100);
  const holding = bytes.open('a');
  holding.become(1_000);
  expect(bytes.total).toBe(1_000);
  expect(() => bytes.open('b')).toThrow(refusal(503, 'server_busy'));
  holding.release();
  expect(bytes.total).toBe(0);
});

it('what is taken after the release is not counted: nobody would give it back', () => {
  const bytes = new BytesUnderWay(1_000);
  const holding = bytes.open('a');
  holding.take(100);
  holding.release();
  holding.take(100);
  holding.become(50);
  expect(bytes.total).toBe(0);
});

it('what a body becomes is held if there is room for it', () => {
  const bytes = new BytesUnderWay(400);
  const holding = bytes.open('a');
  holding.take(20);
  holding.resize(100);
  const other = bytes.open('a');
  expect(() => other.resize(1)).toThrow(refusal(429, 'too_much_under_way'));
  expect(bytes.total).toBe(100);
  holding.resize(30);
  other.resize(70);
  expect(bytes.total).toBe(100);
});
