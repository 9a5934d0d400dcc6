import { expect, it } from '@jest/globals';
import { pino } from 'pino';
import { Outage } from './outage.js';

function openOutage() {
  const lines: Record<string, unknown>[] = [];
  let now = 1_000_000;
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const outage = new Outage(log, 'ClickHouse', 'jobs wait', () => now);
  /** A failure every second. */
  const failFor = (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      outage.failed(new Error('away'));
      now += 1_000;
    }
  };
  return { outage, lines, failFor };
}

it('an outage is logged with its cause, and once a minute while it lasts', () => {
  const { outage, lines, failFor } = openOutage();
  failFor(600);
  expect(outage.isOn).toBe(true);
  expect(lines[0]).toMatchObject({ event: 'outage', server: 'ClickHouse', failures: 1, err: { message: 'away' } });
  expect(lines.map(({ seconds }) => seconds)).toEqual([0, 60, 120, 180, 240, 300, 360, 420, 480, 540]);
});

it('an outage logs its end once, with its length', () => {
  const { outage, lines, failFor } = openOutage();
  failFor(10);
  outage.recovered();
  outage.recovered();
  expect(outage.isOn).toBe(false);
  expect(lines.slice(1)).toMatchObject([{ event: 'outage_over', failures: 10, seconds: 10 }]);
});

it('an outage logs nothing for a server that was never away', () => {
  const { outage, lines } = openOutage();
  outage.recovered();
  expect([outage.isOn, lines]).toEqual([false, []]);
});

it('an outage logs the next one again, even within the same minute', () => {
  const { outage, lines, failFor } = openOutage();
  failFor(2);
  outage.recovered();
  failFor(2);
  expect(lines.map(({ event, failures }) => [event, failures])).toEqual([
    ['outage', 1],
    ['outage_over', 2],
    ['outage', 1],
  ]);
});
