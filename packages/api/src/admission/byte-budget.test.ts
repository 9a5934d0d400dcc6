import { expect, it } from '@jest/globals';
import { ByteBudget } from './byte-budget.js';

const denied = (status: number, code: string) => expect.objectContaining({ status, code });

/** Reserves bytes for a request that is being processed. */
function busy(budget: ByteBudget, account: string, bytes: number) {
  const reservation = budget.open(account);
  reservation.resize(bytes);
  reservation.state = 'in progress';
  return reservation;
}

it('the byte budget gives one account at most its share, and all accounts at most the total', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  const first = busy(budget, 'a', 200);
  expect(() => budget.open('a').resize(51)).toThrow(denied(429, 'too_many_bytes_in_flight'));
  for (const account of ['b', 'c', 'd']) busy(budget, account, 250);
  expect(() => budget.open('e').resize(51)).toThrow(denied(503, 'server_busy'));
  expect(budget.total).toBe(950);
  first.release();
  first.release();
  expect(budget.total).toBe(750);
  budget.open('e').resize(250);
});

it('the byte budget counts a response even above the limits, because its events are already durable', () => {
  const budget = new ByteBudget(100, 1 / 4);
  const reservation = busy(budget, 'a', 0);
  reservation.become(1_000);
  expect(budget.total).toBe(1_000);
  expect(() => budget.open('b')).toThrow(denied(503, 'server_busy'));
  reservation.release();
  expect(budget.total).toBe(0);
});

it('the byte budget ignores changes of a released reservation', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  const reservation = budget.open('a');
  reservation.resize(100);
  reservation.release();
  reservation.resize(100);
  reservation.become(50);
  expect(budget.total).toBe(0);
});

it('the byte budget cancels the oldest waiting request of the account with the most bytes to make room for another account', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  const held = ['a', 'b', 'c', 'd'].map((account) => busy(budget, account, 150));
  const waiting = ['a', 'b', 'b', 'c'].map((account) => {
    const reservation = budget.open(account);
    reservation.resize(account === 'b' ? 45 : 100);
    return reservation;
  });
  // a and c have 250 each, b has 240, d has 150; ten bytes are left.
  expect(budget.total).toBe(990 - 100);
  busy(budget, 'e', 110);
  expect(waiting.map(({ signal }) => signal.aborted)).toEqual([false, false, false, false]);
  budget.open('e').resize(30);
  expect(waiting.map(({ signal }) => signal.aborted)).toEqual([true, false, false, false]);
  expect(waiting[0]?.signal.reason).toEqual(denied(503, 'server_busy'));
  expect(held.map(({ signal }) => signal.aborted)).toEqual([false, false, false, false]);
  expect(budget.total).toBe(930);
});

it('the byte budget cancels waiting requests of an account, newest first, if a request that is being processed needs the room', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  const [first, ...others] = [0, 1, 2, 3].map(() => {
    const reservation = budget.open('a');
    reservation.resize(60);
    return reservation;
  });
  const responding = busy(budget, 'a', 0);
  responding.become(10);
  responding.state = 'responding';
  expect(() => first?.resize(100)).toThrow(denied(429, 'too_many_bytes_in_flight'));
  if (first) first.state = 'in progress';
  first?.resize(160);
  expect(others.map(({ signal }) => signal.aborted)).toEqual([false, true, true]);
  expect(responding.signal.aborted).toBe(false);
  expect(() => first?.resize(241)).toThrow(denied(429, 'too_many_bytes_in_flight'));
});

it('the byte budget rejects a request that announces more bytes than the rest of the share of its account', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  busy(budget, 'a', 200);
  expect(() => budget.open('a', 51)).toThrow(denied(429, 'too_many_bytes_in_flight'));
  expect(budget.open('a', 50).bytes).toBe(0);
});

it('the byte budget cancels no request for an account that would then have the most bytes itself', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  const waiting = ['a', 'b', 'c', 'd', 'e'].map((account) => {
    const reservation = budget.open(account);
    reservation.resize(200);
    return reservation;
  });
  expect(() => budget.open('f').resize(200)).toThrow(denied(503, 'server_busy'));
  expect(() => budget.open('a').resize(10)).toThrow(denied(503, 'server_busy'));
  expect(waiting.some(({ signal }) => signal.aborted)).toBe(false);
  budget.open('f').resize(199);
  expect(waiting.filter(({ signal }) => signal.aborted)).toHaveLength(1);
});
