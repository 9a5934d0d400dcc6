import { describe, expect, it } from '@jest/globals';
import type { PricedEvent } from '@meterline/warehouse';
import fc from 'fast-check';
import { RecentPayloads } from './recent-payloads.js';

const EVENT: PricedEvent = {
  eventId: '0190c5e4-7b1a-7def-8abc-000000000001',
  accountId: 'acme',
  workspace: 'prod',
  resourceType: 'sandbox',
  resourceName: 'builder',
  resourceUuid: 'u-1',
  billingDimension: 'sandbox_compute_runtime_gbs',
  usage: 1_000_000_000n,
  timestamp: Date.UTC(2026, 0, 1, 10, 30),
  revision: 0,
  voided: false,
  cost: 11_500_000n,
  priceRevision: 0,
  priceBook: 0,
};

/** Event number n. */
function numbered(n: number): PricedEvent {
  return { ...EVENT, eventId: `0190c5e4-7b1a-7def-8abc-${n.toString(16).padStart(12, '0')}` };
}

describe('a conflict', () => {
  it.each([
    ['workspace', { workspace: 'dev' }],
    ['resourceName', { resourceName: 'runner' }],
    ['resourceUuid', { resourceUuid: '' }],
    ['billingDimension', { billingDimension: 'agent_compute_runtime_gbs' }],
    ['usage', { usage: 1_000_000_001n }],
    ['usage beyond 32 bits', { usage: 1_000_000_000n + (1n << 40n) }],
    ['timestamp within its hour', { timestamp: EVENT.timestamp + 1 }],
    ['void', { voided: true }],
  ] as const)('is another %s under the same revision', (_, changes) => {
    const recent = new RecentPayloads();
    expect(recent.conflicts(EVENT)).toBe(false);
    expect(recent.conflicts({ ...EVENT, ...changes })).toBe(true);
  });

  it.each([
    ['the same event again', {}],
    ['another price for it', { cost: 1n, priceBook: 7 }],
    ['a higher revision', { revision: 1, usage: 5n }],
    ['the same id in another account', { accountId: 'other', usage: 5n }],
    ['the same id in another hour', { timestamp: EVENT.timestamp + 3_600_000, usage: 5n }],
  ] as const)('is not %s', (_, changes) => {
    const recent = new RecentPayloads();
    recent.conflicts(EVENT);
    expect(recent.conflicts({ ...EVENT, ...changes })).toBe(false);
  });

  it('is told once for a revision of an event, however often its payloads come', () => {
    const recent = new RecentPayloads();
    const other = { ...EVENT, usage: 5n };
    const told = [EVENT, other, EVENT, other, { ...EVENT, usage: 6n }].map((event) => recent.conflicts(event));
    expect(told).toEqual([false, true, false, false, false]);
  });
});

describe('the memory', () => {
  it('holds five events a line, and forgets the one that was not seen for longest', () => {
    const recent = new RecentPayloads(1);
    for (const n of [1, 2, 3, 4, 5, 1, 6]) recent.conflicts(numbered(n));
    const changed = (n: number) => recent.conflicts({ ...numbered(n), usage: 5n });
    expect([6, 1, 5, 4, 3].map(changed)).toEqual([true, true, true, true, true]);
    expect(changed(2)).toBe(false);
  });

  it('holds nearly all of the latest three events for every two lines, in whatever line they are', () => {
    const recent = new RecentPayloads(4_096);
    for (let n = 0; n < 6_144; n += 1) recent.conflicts(numbered(n));
    let found = 0;
    for (let n = 0; n < 500; n += 1) if (recent.conflicts({ ...numbered(n), usage: 5n })) found += 1;
    expect(found).toBeGreaterThan(470);
  });

  it('finds as many conflicts as a map without bounds, as long as nothing is forgotten', () => {
    const arrival = fc.record({ id: fc.nat(30), revision: fc.nat(1), usage: fc.bigInt(0n, 2n) });
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 99 }), (arrivals) => {
        const recent = new RecentPayloads();
        const found = arrivals.filter(({ id, ...changes }) => recent.conflicts({ ...numbered(id), ...changes }));
        const usages = new Map<string, Set<bigint>>();
        for (const { id, revision, usage } of arrivals) {
          const identity = `${id}/${revision}`;
          usages.set(identity, (usages.get(identity) ?? new Set()).add(usage));
        }
        expect(found).toHaveLength([...usages.values()].filter(({ size }) => size > 1).length);
      }),
    );
  });

  it('takes ten thousand different events for different', () => {
    const recent = new RecentPayloads();
    let conflicts = 0;
    for (let n = 0; n < 10_000; n += 1) if (recent.conflicts({ ...numbered(n), usage: BigInt(n) })) conflicts += 1;
    expect(conflicts).toBe(0);
  });
});
