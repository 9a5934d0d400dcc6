import { expect, it } from '@jest/globals';
import { ATTEMPTS } from './deliverer.js';
import { readEnv } from './env.js';

it('the attempts to deliver a webhook are spread over 24 hours', () => {
  const { retryMs } = readEnv({}).METERLINE_CONSTANTS;
  const waits = Array.from({ length: ATTEMPTS - 1 }, (_, attempt) => retryMs * 2 ** attempt);
  const hours = waits.reduce((sum, wait) => sum + wait, 0) / 3_600_000;
  expect(hours).toBeCloseTo(24, 1);
});

it('a list of allowed hosts that has something else than hosts is refused', () => {
  expect(() => readEnv({ ALERT_ALLOWED_HOSTS: 'https://a' })).toThrow('ALERT_ALLOWED_HOSTS must list hosts');
});
